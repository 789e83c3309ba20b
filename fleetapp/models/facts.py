"""What is known of a model before it runs, gathered from its graph and its configuration files."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from fleetapp.models.manifest import Architecture
from fleetapp.types import ModelId

DEFAULT_CONTEXT = 2048
"""Tokens assumed where a model does not say how many it was trained for."""
_RESERVED = {"con", "prn", "aux", "nul"} | {f"{n}{i}" for n in ("com", "lpt") for i in range(1, 10)}
_LONGEST = 64


class GraphFacts(msgspec.Struct, frozen=True):
    """What a graph says of itself; lists are by layer, sizes in bytes."""

    layers: int
    hidden_size: int
    vocab_size: int
    kv_heads: tuple[int, ...]
    head_sizes: tuple[int, ...]
    layer_bytes: tuple[int, ...]
    embedding_bytes: int
    head_bytes: int
    cuttable: tuple[int, ...]
    """Layers before which the graph can be cut."""
    weight_types: tuple[tuple[str, int], ...]
    """Bytes of constants by element type, largest first."""


class Description(msgspec.Struct, frozen=True):
    """What files beside the graph say: a GGUF header, or configuration files of an IR folder."""

    family: str
    name: str = ""
    licence: str = ""
    context_length: int = 0
    """0 where it is not said."""
    eos_ids: tuple[int, ...] = ()
    bos_id: int | None = None
    chat_template: str | None = None
    windows: tuple[int | None, ...] = ()
    quantization: str = ""


def architecture(facts: GraphFacts, described: Description, vocab_digest: str) -> Architecture:
    """Combine both; the graph decides on shapes."""
    return Architecture(
        family=described.family,
        layers=facts.layers,
        hidden_size=facts.hidden_size,
        vocab_size=facts.vocab_size,
        kv_heads=facts.kv_heads,
        head_sizes=facts.head_sizes,
        context_length=described.context_length or DEFAULT_CONTEXT,
        eos_ids=tuple(sorted({i for i in described.eos_ids if 0 <= i < facts.vocab_size})),
        bos_id=described.bos_id,
        chat_template=described.chat_template,
        windows=described.windows,
        vocab_digest=vocab_digest,
    )


def safe_id(name: str) -> ModelId:
    """Make a model id that is also a file name everywhere: lower case ASCII, digits, ``. _ -``."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", ascii_name.lower())[:_LONGEST].strip("-._")
    if not cleaned:
        return ModelId("model")
    if cleaned.split(".", 1)[0] in _RESERVED:
        cleaned = f"model-{cleaned}"
    return ModelId(cleaned)
