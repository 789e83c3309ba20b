"""What this PC can notice about its user and itself, as values and one Protocol.

``None`` means that there is no such sensor here; whoever asks takes it for "nothing in the way".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Presence:
    """Whether somebody is there. ``idle`` in seconds since a key or the mouse was touched."""

    idle: float | None = None
    locked: bool | None = None


@dataclass(frozen=True)
class Power:
    """``battery`` in percent of charge; a PC without one has None there."""

    on_ac: bool | None = None
    battery: float | None = None
    saver: bool | None = None


@dataclass(frozen=True)
class Heat:
    """``celsius`` of the hottest part of the processor; ``throttled`` since the last look."""

    celsius: float | None = None
    throttled: bool | None = None


@dataclass(frozen=True)
class Usage:
    """``others_cpu``: percent of all processors that others used since the last look, None at the
    first; ``own_memory``: bytes held by this process and those it started.
    """

    others_cpu: float | None = None
    own_memory: int = 0


class Sensors(Protocol):
    """One set for one reader, asked from one thread at a time; some compare with the last look.

    Every method is quick, bounds its own time and never raises because a sensor is missing.
    """

    def presence(self) -> Presence:
        """Cheap enough to be asked twice a second."""
        ...

    def power(self) -> Power:
        """Mains, battery, power saving."""
        ...

    def metered(self) -> bool | None:
        """Whether the network in use costs by volume."""
        ...

    def full_screen(self) -> bool | None:
        """Whether a program fills the screen or a presentation runs."""
        ...

    def heat(self) -> Heat:
        """Of the processor."""
        ...

    def usage(self) -> Usage:
        """Of processor and memory, ours and others'."""
        ...

    def programs(self) -> frozenset[str]:
        """Names of running programs, lower case. Slow: a walk over all processes."""
        ...

    def slept(self) -> float:
        """Seconds that this PC has been asleep since it was started. A jump means it woke up."""
        ...

    def watch_sleep(self, going: Callable[[bool], None]) -> None:
        """From now on call ``going(True)`` before sleep, from another thread; the system waits for
        its return, a few seconds at most. ``going(False)`` after. Without a system that tells,
        nothing happens; ``slept`` still shows it afterwards.
        """
        ...

    def close(self) -> None:
        """Give connections back."""
        ...
