"""The rate of a chain at a glance, for searches that look at hundreds of them.

Layers are taken as equal. What each stage gets then follows without a table: one layer each, and
the others to the fastest that have room and time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.interval import Load

_ROUNDS: Final = 12
_CLOSE: Final = 1.002
_NEVER: Final = float("inf")


@dataclass(frozen=True)
class _Stages:
    """``stages`` are (seconds per layer, seconds besides, layers that fit), fastest first."""

    stages: list[tuple[float, float, int]]
    fixed: float
    link: float
    layers: int

    def round(self, limit: float) -> float:
        """Least seconds of a round in which no stage takes longer than ``limit``."""
        left, total = self.layers - len(self.stages), self.fixed
        for layer, fixed, room in self.stages:
            most = room
            if (timely := (limit - fixed) / layer) < most:
                most = int(timely + 1e-9)
            if most < 1:
                return _NEVER
            more = min(left, most - 1)
            left -= more
            total += layer * (1 + more)
        return total if left <= 0 else _NEVER

    @property
    def even(self) -> float:
        """Seconds of each stage if layers could be divided at will."""
        rest = sum(fixed / layer for layer, fixed, _ in self.stages)
        return (self.layers + rest) / sum(1 / layer for layer, _, _ in self.stages)


def estimated_rate(costs: Costs, order: tuple[int, ...], running: int, context: int) -> float:
    """Tokens per second of so many sequences; 0 if the model does not fit."""
    load = Load.of(running, len(order))
    stages = _look(costs, order, load.width, running * context)
    if stages is None or (whole := stages.round(1e30)) == _NEVER:
        return 0.0
    low = limit = max(whole / load.frames, stages.link, stages.even)
    high = max(whole, stages.link)
    for _ in range(_ROUNDS):
        took = stages.round(limit) / load.frames
        if took <= limit:
            high = limit
        else:
            low, high = limit, min(high, took)
        if high <= low * _CLOSE:
            break
        limit = (low + high) / 2
    return load.width / high


def _look(costs: Costs, order: tuple[int, ...], width: float, tokens: int) -> _Stages | None:
    model, rows = costs.model, costs.rows(width, alone=len(order) == 1)
    each = sum(model.layer_bytes) / model.layers + tokens * model.kv_bytes
    stages, total, link = [], 0.0, 0.0
    for i, place in enumerate(order):
        fixed, room = rows.fixed[place], costs.places[place].memory - model.overhead
        if i == 0:
            fixed, room = fixed + rows.first[place], room - costs.first_bytes
        if i == len(order) - 1:
            fixed, room = fixed + rows.last[place], room - costs.last_bytes
        if room < each:
            return None
        stages.append((rows.layer[place], fixed, int(room / each + 1e-9)))
        total += fixed
    if len(order) > 1:
        for a, b in pairwise(order):
            total += rows.hop[a][b]
            link = max(link, rows.occupied[a][b])
        total += rows.back[order[-1]][order[0]]
    return _Stages(sorted(stages), total, link, model.layers)
