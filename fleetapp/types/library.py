"""Models of the library and the catalogue, and the work on them. No I/O."""

from __future__ import annotations

from typing import Literal

import msgspec

ModelPhase = Literal[
    "starting", "waiting", "downloading", "unpacking", "verifying", "copying", "converting",
    "inspecting", "checking", "splitting", "hashing",
]  # fmt: skip
"""What work on a model is at: ``waiting`` for another process; ``verifying`` hashes what is there
already, ``hashing`` what was just made; ``checking`` runs the whole against its parts."""
Unit = Literal["bytes", "layers", "steps"]


class Licence(msgspec.Struct, frozen=True):
    """Under which terms a model may be used."""

    id: str
    """As the model's author writes it, ``Apache-2.0`` for example; empty if nobody says."""
    url: str = ""
    """Where its text is; empty if that is not known."""
    accept: bool = False
    """Its terms restrict use: somebody has to agree before a model of the catalogue is fetched."""


class LibraryModel(msgspec.Struct, frozen=True):
    """An imported model. Whether it is served: the chains of :class:`FleetView`."""

    id: str
    title: str
    licence: Licence
    bytes: int
    layers: int
    context: int
    """Tokens of prompt and answer together."""
    architecture: str
    quantisation: str
    """``GGUF Q8_0`` or the type of most weights; empty if not known."""
    source: str
    """Where it came from, in words."""
    chat: bool
    """Whether it has a chat template."""


class CatalogModel(msgspec.Struct, frozen=True):
    """A model known by name."""

    id: str
    title: str
    licence: Licence
    bytes: int
    """Of the file to be fetched."""
    in_library: bool
    default: bool
    """The small one to begin with."""
    fetched: int = 0
    """Bytes that an interrupted download has left, to go on from."""


class JobError(msgspec.Struct, frozen=True):
    """A FleetError, by ``errors.from_code`` one again."""

    code: str
    message: str
    remedy: str = ""


class ModelJob(msgspec.Struct, frozen=True):
    """Work on one model that goes on, or the last one's outcome."""

    job: str
    kind: Literal["get", "import", "verify"]
    model: str
    """Its id in the library."""
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    phase: ModelPhase = "starting"
    done: int = 0
    total: int = 0
    """0 while nobody knows."""
    unit: Unit = "bytes"
    seconds_left: float | None = None
    """Of this phase, if that can be told."""
    message: str = ""
    error: JobError | None = None
    asked: str = ""
    """What was asked for: name or address, or the path that is imported."""


class ModelsView(msgspec.Struct, frozen=True):
    """The models of this PC (``GET /local/v1/models``)."""

    library: tuple[LibraryModel, ...]
    catalog: tuple[CatalogModel, ...]
    jobs: tuple[ModelJob, ...] = ()
    """Oldest first; of those that have ended the last for each model."""
    folder: str = ""
    """Of the library."""
