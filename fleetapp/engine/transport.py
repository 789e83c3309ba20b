"""What the loops of head and stage ask of their ring, and what it tells them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from fleetapp.engine.pipe import Link
from fleetapp.errors import FleetError
from fleetapp.wire.frames import Activations, Frame


@dataclass(frozen=True)
class Received:
    """A frame from the stage before. Whether its epoch is the chain's is the receiver's check."""

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
    """The stage before left, or wrote something that cannot be understood."""

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

    def link(self, link: Link) -> None:
        """Leave the ring of any epoch before and form this one; the outcome is an event."""
        ...

    def unlink(self) -> None:
        """Close both hops."""
        ...

    def send(self, frame: Frame, payload: Activations | None = None) -> None:
        """Write one frame to the next stage.

        Raises:
            ChainBroken: the next stage is gone or does not take it in time; names it.
            StaleFrame: this runner is in no ring.
        """
        ...
