"""Which model a head guesses with. Pure; what speculation is: docs/speculation.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from fleetapp.engine.drafting.model import check_vocabulary
from fleetapp.errors import Unsupported
from fleetapp.models.manifest import ModelManifest

AUTO: Final = "auto"
LOOKUP: Final = "lookup"
OFF: Final = "off"
WORDS: Final = (AUTO, LOOKUP, OFF)
"""Everything else is the name of a draft model."""

_SMALL: Final = 0.5
"""Largest draft model that is taken unasked, in parts of the model it drafts for."""


class Drafting(msgspec.Struct, frozen=True):
    """How a chain guesses ahead: from the text itself, and with a model, or empty."""

    lookup: bool
    model: str = ""

    def __str__(self) -> str:
        if self.model:
            return f"Guesses ahead with {self.model} and from the text itself."
        return "Guesses ahead from the text itself." if self.lookup else ""


def choose(draft: str, target: ModelManifest, library: Iterable[ModelManifest]) -> Drafting:
    """What ``--draft`` means.

    Args:
        draft: a word of ``WORDS`` or the name of a model of the library.
        target: the model to be served.
        library: all models there are.

    Raises:
        Unsupported: there is no such model, or it has another vocabulary.
    """
    if draft == OFF:
        return Drafting(lookup=False)
    if draft == LOOKUP:
        return Drafting(lookup=True)
    models = {m.model_id: m for m in library if m.model_id != target.model_id}
    if draft != AUTO:
        found = target if draft == target.model_id else models.get(draft)
        if found is None:
            raise Unsupported(
                f"There is no model {draft} to draft with.",
                remedy="Import it first, or use --draft auto, lookup or off.",
            )
        check_vocabulary(target.architecture, found.architecture)
        return Drafting(lookup=True, model=found.model_id)
    fitting = [
        m
        for m in models.values()
        if target.architecture.speaks_like(m.architecture) and weight(m) <= _SMALL * weight(target)
    ]
    smallest = min(fitting, key=lambda m: (weight(m), m.model_id), default=None)
    return Drafting(lookup=True, model=smallest.model_id if smallest is not None else "")


def weight(model: ModelManifest) -> int:
    """Bytes of weights that one PC holds to run all of it."""
    return sum(model.layer_bytes) + model.embedding_bytes + model.head_bytes
