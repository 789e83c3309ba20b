"""The description of a model and of its shards, as values and exact bytes.

Two documents. ``model.json`` describes an imported model once. ``stage.json`` describes one
contiguous range of its layers and is made on demand for a plan; its weights are a list of
content-addressed chunks cut at tensor boundaries, so stages of different plans share nearly all
of theirs. Both are signed detached, over their exact bytes.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import msgspec

from fleetapp.types import LayerRange

SCHEMA = 1


class Chunk(msgspec.Struct, frozen=True):
    """``size`` bytes at ``offset`` of a file, named by their SHA-256 (hex)."""

    sha256: str
    offset: int
    size: int


class FileEntry(msgspec.Struct, frozen=True):
    """A file of a shard; ``chunks`` cover it without gap or overlap, in order."""

    path: str
    """Relative, forward slashes, no ``..``."""
    size: int
    sha256: str
    chunks: tuple[Chunk, ...]


class Architecture(msgspec.Struct, frozen=True):
    """Shapes and token ids that a runner needs to know without opening the graph."""

    family: str
    layers: int
    hidden_size: int
    vocab_size: int
    kv_heads: tuple[int, ...]
    head_sizes: tuple[int, ...]
    context_length: int
    eos_ids: tuple[int, ...]
    bos_id: int | None
    chat_template: str | None
    windows: tuple[int | None, ...] = ()
    vocab_digest: str = ""
    """SHA-256 over the tokenizer graph: two models with the same one share a vocabulary."""

    def speaks_like(self, other: Architecture) -> bool:
        """Whether the same token ids mean the same; false if that is not known."""
        known = bool(self.vocab_digest) and self.vocab_digest == other.vocab_digest
        return known and self.vocab_size == other.vocab_size


class ModelManifest(msgspec.Struct, frozen=True):
    """One imported model."""

    schema: int
    model_id: str
    revision: str
    source: str
    licence: str
    architecture: Architecture
    quantization: str
    converter: str
    layer_bytes: tuple[int, ...]
    """Weight bytes of each decoder layer."""
    embedding_bytes: int
    head_bytes: int
    files: tuple[FileEntry, ...]


class StageManifest(msgspec.Struct, frozen=True):
    """One shard: layers ``[start, stop)`` and what belongs to a first or last stage."""

    schema: int
    model_id: str
    model_digest: str
    """SHA-256 (hex) of the exact bytes of model.json."""
    architecture: Architecture
    layers: LayerRange
    first: bool
    last: bool
    files: tuple[FileEntry, ...]
    """``stage.xml``, ``stage.bin``; with ``first`` also all files under ``tokenizer/``, with
    ``last`` those of the detokenizer, which hold the vocabulary.
    """

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(f.size for f in self.files)


class Signer(Protocol):
    """Whoever vouches for a manifest (a node's identity or the fleet's authority)."""

    @property
    def spki(self) -> str:
        """Hex SHA-256 of the signer's SubjectPublicKeyInfo."""
        ...

    def sign(self, payload: bytes) -> bytes:
        """Return a detached signature over exactly these bytes."""
        ...


class SignatureFile(msgspec.Struct, frozen=True):
    """Contents of ``model.sig`` and ``stage.sig``: JSON, the signature in base64."""

    signature: bytes
    signer: str
    """Hex SHA-256 of the signer's SubjectPublicKeyInfo."""


def encode_signature(signature: bytes, signer: str) -> bytes:
    """Bytes of a signature file."""
    return msgspec.json.encode(SignatureFile(signature=signature, signer=signer))


def decode_signature(data: bytes) -> SignatureFile:
    """Raises msgspec.ValidationError or DecodeError if the bytes are no signature file."""
    return msgspec.json.decode(data, type=SignatureFile)


def digest(payload: bytes) -> str:
    """SHA-256 in hex; the name of a manifest or chunk."""
    return hashlib.sha256(payload).hexdigest()


def encode(manifest: ModelManifest | StageManifest) -> bytes:
    """Deterministic JSON, indented: what is signed is also what a person can read."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1)


def decode_model(payload: bytes) -> ModelManifest:
    """Raises msgspec.ValidationError or DecodeError if the bytes are not a model manifest."""
    return msgspec.json.decode(payload, type=ModelManifest)


def decode_stage(payload: bytes) -> StageManifest:
    """Raises msgspec.ValidationError or DecodeError if the bytes are not a stage manifest."""
    return msgspec.json.decode(payload, type=StageManifest)
