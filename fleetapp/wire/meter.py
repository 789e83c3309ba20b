"""How far away neighbours are, and how fast their links: estimated from what happens anyway.

Nothing is sent to find out. Connecting by TCP takes one round trip, which kernels answer however
busy their programs are; each forming of a ring gives one per hop. A payload too large for a few
packets comes in at the link's rate; the receiver sees it, whoever sends pieces of prompts. Both
are only ever disturbed towards the worse, by queues and busy readers, and rates also towards the
better, by what lay in buffers already: so round trips are judged by their lower quartile, rates by
their median.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

KEPT: Final = 64
"""Samples of each kind and neighbour."""
OLD_SECONDS: Final = 3600.0
"""Samples older than this count only where there are no newer ones."""


@dataclass(frozen=True)
class Estimate:
    """Of one neighbour: seconds there and back, bytes per second from there; 0 where unknown."""

    peer: str
    rtt: float
    bandwidth: float


@dataclass
class Samples:
    """The most recent ones of one kind, each with its time."""

    kept: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, now: float, value: float) -> None:
        """One more; what cannot be is ignored."""
        if 0 < value < float("inf"):
            self.kept.append((now, value))

    def values(self, now: float) -> list[float]:
        """Those that count, sorted."""
        fresh = [value for at, value in self.kept if now - at <= OLD_SECONDS]
        return sorted(fresh or [value for _, value in self.kept])

    def quartile(self, now: float) -> float:
        """The lower one; 0 without samples."""
        values = self.values(now)
        return values[(len(values) - 1) // 4] if values else 0.0

    def median(self, now: float) -> float:
        """0 without samples."""
        values = self.values(now)
        return statistics.median(values) if values else 0.0


class Meter:
    """Links of one runner, by the neighbour's device id. Any thread may call.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._round_trips: dict[str, Samples] = {}
        self._rates: dict[str, Samples] = {}

    def round_trip(self, peer: str, seconds: float) -> None:
        """A message went there and its answer came back."""
        with self._lock:
            self._round_trips.setdefault(peer, Samples()).add(self._clock(), seconds)

    def transfer(self, peer: str, size: int, seconds: float) -> None:
        """So many bytes in a row came from there in so many seconds."""
        if seconds > 0:
            with self._lock:
                self._rates.setdefault(peer, Samples()).add(self._clock(), size / seconds)

    def estimates(self) -> tuple[Estimate, ...]:
        """Of every neighbour that was ever seen."""
        now = self._clock()
        with self._lock:
            return tuple(
                Estimate(
                    peer,
                    self._round_trips.get(peer, Samples()).quartile(now),
                    self._rates.get(peer, Samples()).median(now),
                )
                for peer in sorted({*self._round_trips, *self._rates})
            )
