"""How fast a chain with given cuts is: the formulas of docs/planner.md, written out.

The searches minimise the same quantities; this module says what comes of a result, and of a plan
that is already running when the inputs have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fleetapp.hub.planner.costs import HOP_HOST, Costs, at
from fleetapp.hub.planner.interval import Load

PIECE: Final = 256
"""Positions of one piece of a prompt (``engine.limits``)."""


@dataclass(frozen=True)
class Cut:
    """Places in order, and where their layers begin: ``(0, .., L)``."""

    order: tuple[int, ...]
    cuts: tuple[int, ...]

    @property
    def stages(self) -> int:
        """How many."""
        return len(self.order)


def stage_seconds(costs: Costs, chain: Cut, width: float) -> list[float]:
    """What a frame of that width takes at each stage."""
    tables, work = costs.tables(width, alone=chain.stages == 1), costs.work
    out = [
        float(tables.fixed[p] + tables.layer[p] * (work[b] - work[a]))
        for p, (a, b) in zip(chain.order, pairwise(chain.cuts), strict=True)
    ]
    out[0] += float(tables.first[chain.order[0]])
    out[-1] += float(tables.last[chain.order[-1]])
    return out


def rate(costs: Costs, chain: Cut, running: int) -> float:
    """Tokens per second of so many sequences at once."""
    load = Load.of(running, chain.stages)
    stages = stage_seconds(costs, chain, load.width)
    round_, busiest = sum(stages), max(stages)
    if chain.stages > 1:
        tables = costs.tables(load.width, alone=False)
        for a, b in pairwise(chain.order):
            round_ += float(tables.hop[a, b])
            busiest = max(busiest, float(tables.occupied[a, b]))
        a, b = chain.order[-1], chain.order[0]
        round_ += float(tables.back[a, b])
        busiest = max(busiest, float(tables.back_occupied[a, b]))
    return load.width / max(round_ / load.frames, busiest)


def first_token(costs: Costs, chain: Cut, prompt: int) -> float:
    """Seconds for a prompt of so many tokens, alone, in pieces that follow each other."""
    pieces = -(-prompt // PIECE)
    piece = prompt / pieces
    work, host = costs.work, 0.0 if chain.stages == 1 else HOP_HOST
    stages = []
    for p, (a, b) in zip(chain.order, pairwise(chain.cuts), strict=True):
        profile = costs.places[p].profile
        stages.append(profile.fixed + host + at(profile.prefill, piece) * float(work[b] - work[a]))
    stages[0] += costs.places[chain.order[0]].profile.embedding * piece
    stages[-1] += at(costs.places[chain.order[-1]].profile.output, 1)
    hops = [
        float(costs.frame_bytes(piece) / costs.bandwidth[a, b]) for a, b in pairwise(chain.order)
    ]
    ways = sum(float(costs.half_rtt[a, b]) for a, b in pairwise(chain.order))
    if chain.stages > 1:
        ways += float(costs.half_rtt[chain.order[-1], chain.order[0]])
    return sum(stages) + sum(hops) + ways + (pieces - 1) * max([*stages, *hops])


def weights(costs: Costs, chain: Cut) -> list[int]:
    """Bytes of weights that each stage holds."""
    sizes = costs.model.layer_bytes
    out = [sum(sizes[a:b]) for a, b in pairwise(chain.cuts)]
    out[0] += costs.model.embedding_bytes + costs.model.head_extra
    out[-1] += costs.model.head_bytes
    return out


def caches(costs: Costs, chain: Cut, tokens: int) -> list[int]:
    """Bytes of cache that each stage holds for so many tokens."""
    return [(b - a) * tokens * costs.model.kv_bytes for a, b in pairwise(chain.cuts)]


def names(costs: Costs, order: Sequence[int]) -> tuple[str, ...]:
    """Of the nodes; with the device where a node has several places in the order."""
    nodes = [costs.places[p].node for p in order]
    return tuple(
        costs.names[n] if nodes.count(n) == 1 else f"{costs.names[n]} ({costs.places[p].kind})"
        for n, p in zip(nodes, order, strict=True)
    )
