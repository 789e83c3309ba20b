"""The fleet in five figures, and their last minutes for the charts. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from fleetapp.types import ChainLoad, FleetView

SPAN = 300.0
"""Seconds that the charts show."""


@dataclass(frozen=True)
class Pulse:
    """What happens now."""

    nodes: int = 0
    """Members, whether they are connected or not."""
    online: int = 0
    contributing: int = 0
    chains: int = 0
    live: int = 0
    tokens: float = 0.0
    """Per second, of all chains."""
    running: int = 0
    waiting: int = 0
    step: float | None = None
    """Seconds for the next token of an answer, over all chains that work; None at rest."""
    acceptance: float | None = None


def pulse_of(view: FleetView) -> Pulse:
    """The figures of one view."""
    members = [n for n in view.nodes if n.state not in ("pending", "revoked")]
    online = [n for n in members if n.state == "online"]
    busy = [c.load for c in view.chains if c.load is not None and c.load.tokens_per_second > 0]
    return Pulse(
        nodes=len(members),
        online=len(online),
        contributing=sum(n.contribute for n in online),
        chains=len(view.chains),
        live=sum(c.state == "live" for c in view.chains),
        tokens=sum(load.tokens_per_second for load in busy),
        running=sum(c.running for c in view.chains),
        waiting=sum(c.waiting for c in view.chains),
        step=_mean([(load.step, load) for load in busy if load.step > 0]),
        acceptance=_mean([(load.acceptance, load) for load in busy if load.acceptance is not None]),
    )


def _mean(values: list[tuple[float, ChainLoad]]) -> float | None:
    """Weighted by how many tokens it concerns."""
    weight = sum(load.tokens_per_second for _, load in values)
    if weight <= 0:
        return None
    return sum(value * load.tokens_per_second for value, load in values) / weight


@dataclass
class Series:
    """One figure over time. None where there was nothing to measure."""

    points: deque[tuple[float, float | None]] = field(default_factory=deque)

    def add(self, now: float, value: float | None) -> None:
        """Note the present value; what is older than the charts show is forgotten."""
        self.points.append((now, value))
        while self.points and self.points[0][0] < now - SPAN:
            self.points.popleft()

    @property
    def newest(self) -> float | None:
        """The last value that was measured."""
        return next((v for _, v in reversed(self.points) if v is not None), None)


class History:
    """What the charts show: one point a second."""

    def __init__(self) -> None:
        self.throughput = Series()
        self.latency = Series()
        self.acceptance = Series()

    def add(self, now: float, pulse: Pulse | None) -> None:
        """The state of this second; None while nothing is known of it."""
        self.throughput.add(now, None if pulse is None else pulse.tokens)
        self.latency.add(now, None if pulse is None else pulse.step)
        self.acceptance.add(now, None if pulse is None else pulse.acceptance)
