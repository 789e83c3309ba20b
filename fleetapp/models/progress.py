"""How long work says where it stands: one value, one callback."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fleetapp.types import ModelPhase, Unit


class Progress(msgspec.Struct, frozen=True):
    """Where one phase of a longer job stands.

    Attributes:
        phase: what is being done.
        done: units finished.
        total: units in all; 0 while nobody knows.
        unit: what is counted.
        message: more for people, for example which source is used; may be empty.
    """

    phase: ModelPhase
    done: int = 0
    total: int = 0
    unit: Unit = "bytes"
    message: str = ""


ProgressFn = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Ignore progress."""
