"""What the rules look at, and what they say, as values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import msgspec

from fleetapp.settings import Settings
from fleetapp.types import ContributionReason, DeviceClass


class Pause(msgspec.Struct, frozen=True):
    """A pause that the user asked for. Wall-clock time, so that it survives a restart."""

    until: float | None = None
    """Seconds since 1970; None: until somebody resumes."""
    finish_first: bool = False
    """Running answers are finished before it begins."""

    def holds(self, wall: float) -> bool:
        """Whether it lasts at this wall-clock time."""
        return self.until is None or wall < self.until


@dataclass(frozen=True)
class Snapshot:
    """This PC at one moment. ``None`` means that there is no such sensor, and blocks nothing."""

    now: float
    """Monotonic seconds."""
    wall: float
    """Seconds since 1970."""
    local: dt.datetime
    """The same moment on the clock of this place."""
    settings: Settings
    """The user's switches, with policy merged in."""
    devices: frozenset[DeviceClass] = frozenset({"CPU"})
    """What runners of this PC could compute on."""
    pause: Pause | None = None
    work: int = 0
    """Shards held for the fleet."""
    suspending: bool = False
    """The system has said that it goes to sleep."""
    idle: float | None = None
    """Seconds since somebody touched a key or the mouse."""
    locked: bool | None = None
    on_ac: bool | None = None
    battery: float | None = None
    """Percent of charge."""
    battery_saver: bool | None = None
    metered: bool | None = None
    full_screen: bool | None = None
    """A program fills the screen, or a presentation runs."""
    programs: frozenset[str] = field(default_factory=frozenset)
    """Names of running programs, lower case."""
    temperature: float | None = None
    """Degrees Celsius of the hottest part of the processor."""
    throttled: bool | None = None
    """The processor has slowed down because of heat since the last look."""
    memory_free: int | None = None
    """Bytes, while our own processes hold ``memory_own``."""
    memory_own: int = 0
    disk_free: int | None = None
    others_cpu: float | None = None
    """Percent of all processors that programs of others use, over some seconds."""


@dataclass(frozen=True)
class Decision:
    """Whether this PC contributes, and exactly one reason."""

    contribute: bool
    devices: frozenset[DeviceClass]
    """What it lends; empty exactly while it does not contribute."""
    reason: ContributionReason
    sentence: str
    until: float | None = None
    """When that ends, seconds since 1970, if it is known."""

    @property
    def draining(self) -> bool:
        """Whether it only finishes what runs."""
        return self.reason == "draining"


@dataclass(frozen=True)
class Standing:
    """What the rules remember from one snapshot to the next."""

    decision: Decision
    since: float
    """Monotonic seconds of the last change between yes and no."""
    over: frozenset[ContributionReason] = frozenset()
    """Thresholds that were passed and not yet clearly left again."""
    memory_needed: int = 0
    """Bytes that must be free without us before ``memory_low`` is over."""
    drain_since: float | None = None
    settings: Settings | None = None
    """By which it was decided."""
