"""What the loops of head and stage ask of their ring, and what it tells them.

When a ring breaks, whoever notices tells the next stage at once (a ``Fault`` without a slot), which
tells the one after it, all the way around. The transport does that by itself, also while the loop
computes, so that everybody hears the same cause soon.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from fleetapp.engine.pipe import Link
from fleetapp.errors import FleetError
from fleetapp.wire.frames import Activations, Frame, Passed


@dataclass(frozen=True)
class Received:
    """A frame from the stage before. Whether its epoch is the chain's is the receiver's check.

    After a ``Fault`` without a slot, which has been passed on already, nothing more comes.
    """

    frame: Frame
    payload: memoryview
    at: float = field(default_factory=time.perf_counter, compare=False)
    """``perf_counter`` when it had arrived whole."""


@dataclass(frozen=True)
class LinkUp:
    """Both hops stand."""

    epoch: int


@dataclass(frozen=True)
class LinkFailed:
    """The ring could not be formed; nothing is linked now."""

    epoch: int
    error: FleetError


@dataclass(frozen=True)
class LinkLost:
    """The stage before left, is silent, or wrote something that cannot be understood.

    ``stage`` and ``device`` are whose fault it is; the next stage has been told.
    """

    epoch: int
    error: FleetError
    stage: int
    device: str


RingEvent = Received | LinkUp | LinkFailed | LinkLost


class Transport(Protocol):
    """The hops of one runner. Events go to the function it was made with."""

    @property
    def sent_bytes(self) -> int:
        """Application bytes written to next hops since the start."""
        ...

    @property
    def received_bytes(self) -> int:
        """Application bytes read from previous hops since the start."""
        ...

    @property
    def progress(self) -> tuple[Passed, ...]:
        """At a head: how far each stage behind it has come, as they last said."""
        ...

    @property
    def blame(self) -> tuple[int, str] | None:
        """Stage and device that broke the present ring, if another stage has said so or it is this
        one, which stood still.
        """
        ...

    def link(self, link: Link) -> None:
        """Leave the ring of any epoch before and form this one; the outcome is an event."""
        ...

    def unlink(self) -> None:
        """Close both hops."""
        ...

    def send(self, frame: Frame, payload: Activations | None = None) -> None:
        """Write one frame to the next stage.

        Raises:
            ChainBroken: the next stage is gone or does not take it in time; names it, or who broke
                the ring if another stage has said so (``blame``).
            StaleFrame: this runner is in no ring.
        """
        ...
