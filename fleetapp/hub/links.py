"""What members have seen of the links between them, as the planner takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetapp.fleet.control import HopMeasurement
from fleetapp.hub.planner.costs import DEFAULT_BANDWIDTH, DEFAULT_RTT
from fleetapp.hub.planner.inputs import Link
from fleetapp.types import DeviceId

KEPT_SECONDS: Final = 7 * 86400.0
NEW_SHARE: Final = 0.5
"""Weight of a new report against what was known: links change, but not with every report."""
_SLOWEST, _FASTEST = 1e3, 1e12
_NEAREST, _FARTHEST = 1e-6, 60.0
MOST: Final = 50_000
"""Pairs of nodes remembered."""


@dataclass
class _Known:
    value: float
    at: float

    def update(self, value: float, now: float) -> None:
        """An exponentially weighted mean, begun anew where the old one has aged."""
        weight = 1.0 if now - self.at > KEPT_SECONDS else NEW_SHARE
        self.value += weight * (value - self.value)
        self.at = now


@dataclass
class LinkBook:
    """Round trips by pair, rates by direction.

    Args:
        clock: monotonic seconds.
    """

    clock: Callable[[], float]
    _rtt: dict[tuple[str, str], _Known] = field(default_factory=dict)
    _rate: dict[tuple[str, str], _Known] = field(default_factory=dict)

    def add(self, node: str, hops: Iterable[HopMeasurement]) -> None:
        """Take in what a member reports of its neighbours; what cannot be is ignored."""
        now = self.clock()
        for hop in hops:
            if hop.peer == node:
                continue
            if _NEAREST <= hop.rtt <= _FARTHEST:
                _note(self._rtt, _pair(node, hop.peer), hop.rtt, now)
            if _SLOWEST <= hop.bandwidth <= _FASTEST:
                _note(self._rate, (hop.peer, node), hop.bandwidth, now)

    def links(self, nodes: Sequence[DeviceId]) -> tuple[Link, ...]:
        """Every direction between these nodes of which anything is known.

        A rate known in one direction only stands for the other one, too.
        """
        out = []
        for a in nodes:
            for b in nodes:
                rtt = self._fresh(self._rtt, _pair(a, b))
                rate = self._fresh(self._rate, (a, b)) or self._fresh(self._rate, (b, a))
                if a != b and (rtt or rate):
                    out.append(Link(a, b, rtt or DEFAULT_RTT, rate or DEFAULT_BANDWIDTH))
        return tuple(out)

    def rtt(self, a: DeviceId, b: DeviceId) -> float:
        """Seconds there and back, or 0 if nobody has measured it."""
        return self._fresh(self._rtt, _pair(a, b))

    def rate(self, sender: DeviceId, receiver: DeviceId) -> float:
        """Bytes per second in this direction, or 0."""
        return self._fresh(self._rate, (sender, receiver))

    def _fresh(self, known: dict[tuple[str, str], _Known], key: tuple[str, str]) -> float:
        found = known.get(key)
        return found.value if found and self.clock() - found.at <= KEPT_SECONDS else 0.0


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _note(
    known: dict[tuple[str, str], _Known], key: tuple[str, str], value: float, now: float
) -> None:
    if key in known:
        known[key].update(value, now)
        return
    if len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = _Known(value, now)
