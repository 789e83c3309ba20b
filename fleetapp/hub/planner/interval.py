"""Interval partitions of layers, exact for a given order of places.

``with_skips`` is BloomBee's recurrence (section 5.1) with a node's right to get nothing.
``Orders`` solves many orders of one length at once for what a chain really does under load: it is
as slow as its longest stage or link, or as a whole round, whichever is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from fleetapp.hub.planner.costs import Costs, Floats, Tables

Goal = Literal["sum", "slowest"]
Ints = npt.NDArray[np.int64]

EXACTNESS: Final = 1e-9
"""Relative precision of bisections."""
_ROUNDS: Final = 60
_SAME: Final = 1e-7
"""An order must be better by more than this to be looked at after another of its group."""
_SLACK: Final = 1e-12
"""Forgives the rounding of sums when a limit is met exactly."""


def with_skips(
    costs: Costs, order: Sequence[int], width: float, goal: Goal, tokens: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The best partition for an order in which places may be left out.

    Args:
        costs: of the model on the places.
        order: places; those that can be head may come first.
        width: sequences per frame.
        goal: the least time of a whole round, or the shortest slowest stage or link.
        tokens: that the cache must hold.

    Returns:
        The places used and the cuts ``(0, .., L)``; None if the model does not fit. Takes
        O(N (N L + L²)).
    """
    tables, work, held = costs.tables(width, alone=False), costs.work, costs.held(tokens)
    layers, join = costs.model.layers, np.maximum if goal == "slowest" else np.add
    took = work[None, :] - work[:, None]  # [start, stop]
    need = held[None, :] - held[:, None]
    some = np.tri(layers + 1, k=-1, dtype=bool).T  # start < stop
    count = len(order)
    # best[i, b]: places up to i hold the first b layers, and i is the last of them
    best = np.full((count, layers + 1), np.inf)
    came = np.full((count, layers + 1, 2), -1, np.int64)  # previous place, start
    for i, place in enumerate(order):
        stage = took * tables.layer[place] + tables.fixed[place]
        stage[:, layers] += tables.last[place]
        room = np.full(layers + 1, costs.memory[place])
        room[layers] -= costs.last_bytes
        fits = some & (need <= room)
        if costs.places[place].can_head:
            whole = np.where(
                fits[0] & (need[0] <= room - costs.first_bytes),
                stage[0] + tables.first[place],
                np.inf,
            )
            best[i], came[i, :, 1] = whole, 0
        if i == 0:
            continue
        before = list(order[:i])
        hops = (tables.occupied if goal == "slowest" else tables.hop)[before, place]
        arrive = join(best[:i], hops[:, None])
        which = arrive.argmin(axis=0)
        reached = arrive[which, np.arange(layers + 1)]
        value = np.where(fits, join(reached[:, None], stage), np.inf)
        start = value.argmin(axis=0)
        value = value[start, np.arange(layers + 1)]
        better = value < best[i]
        best[i] = np.where(better, value, best[i])
        came[i, :, 0] = np.where(better, which[start], came[i, :, 0])
        came[i, :, 1] = np.where(better, start, came[i, :, 1])
    i = int(best[:, layers].argmin())
    if not np.isfinite(best[i, layers]):
        return None
    used, cuts, stop = [], [layers], layers
    while i >= 0:
        used.append(order[i])
        i, stop = int(came[i, stop, 0]), int(came[i, stop, 1])
        cuts.append(stop)
    return tuple(reversed(used)), tuple(reversed(cuts))


@dataclass(frozen=True)
class Load:
    """How many sequences a chain of so many stages has under way, and how they are framed.

    Attributes:
        running: sequences at once.
        frames: on their way; as many as stages if there are sequences enough.
        width: sequences per frame.
    """

    running: int
    frames: int
    width: float

    @classmethod
    def of(cls, running: int, stages: int) -> Load:
        """As the head's scheduler does it."""
        frames = min(running, stages)
        return cls(running, frames, running / frames)


class Orders:
    """Many orders of the same length, each with its own best cuts.

    A frame comes round after ``max(round, frames * slowest) `` seconds, where ``slowest`` is the
    longest time any stage or link is kept busy by a frame. What is minimised is ``pace``, that
    divided by the frames on their way: seconds from one frame's answer to the next one's.

    Args:
        costs: of the model on the places.
        orders: places, [orders, stages].
        running: sequences at once.
        context: cache tokens for each of them.
    """

    def __init__(self, costs: Costs, orders: Ints, running: int, context: int) -> None:
        self.load = Load.of(running, orders.shape[1])
        self._stages = stages = orders.shape[1]
        self._orders = orders
        self._costs = costs
        self._tables: Tables = costs.tables(self.load.width, alone=stages == 1)
        self._layers = costs.model.layers
        self._tokens = running * context
        held = costs.held(self._tokens)
        self._spare = spare = costs.memory[orders]
        spare[:, 0] -= costs.first_bytes
        spare[:, -1] -= costs.last_bytes
        # The earliest start with which a stage that ends before each layer fits the memory.
        wanted = held[None, None, :] - spare[:, :, None]
        self._fits = np.searchsorted(held, wanted.ravel() * (1 - _SLACK)).reshape(wanted.shape)
        self._fixed = self._tables.fixed[orders]
        self._fixed[:, 0] += self._tables.first[orders[:, 0]]
        self._fixed[:, -1] += self._tables.last[orders[:, -1]]
        self._layer = self._tables.layer[orders]
        if stages == 1:
            self._hops, self._link = np.zeros(len(orders)), np.zeros(len(orders))
            return
        a, b, tables = orders[:, :-1], orders[:, 1:], self._tables
        end, head = orders[:, -1], orders[:, 0]
        self._hops = tables.hop[a, b].sum(axis=1) + tables.back[end, head]
        self._link = np.maximum(tables.occupied[a, b].max(axis=1), tables.back_occupied[end, head])

    def rounds(self, which: Ints, limit: Floats) -> Floats:
        """Least seconds of a round in which nothing takes longer than ``limit``; inf if none."""
        best = self._table(which, limit)[-1][:, self._layers] + self._hops[which]
        return np.where(self._link[which] <= limit * (1 + _SLACK), best, np.inf)

    def _table(self, which: Ints, limit: Floats) -> list[Floats]:
        work, layers = self._costs.work, self._layers
        ends = np.arange(layers + 1)
        rows = np.arange(len(which))[:, None]
        best = np.full((len(which), layers + 1), np.inf)
        best[:, 0] = 0.0
        tables = [best]
        for i in range(self._stages):
            start = self._starts(which, limit, i)
            layer = self._layer[which, i][:, None]
            ahead = best - layer * work
            length = np.maximum(ends - start, 1)
            levels = np.log2(length).astype(np.int64)
            minima = _minima(ahead, int(levels.max(initial=0)))
            first = np.clip(start, 0, layers)
            last = np.maximum(ends - (1 << levels), 0)
            found = np.minimum(minima[levels, rows, first], minima[levels, rows, last])
            total = found + layer * work + self._fixed[which, i][:, None]
            best = np.where(start < ends, total, np.inf)
            tables.append(best)
        return tables

    def _starts(self, which: Ints, limit: Floats, stage: int) -> Ints:
        """The earliest start of a stage, for every end: within memory and ``limit``."""
        work = self._costs.work
        allowed = (limit - self._fixed[which, stage]) / self._layer[which, stage]
        allowed += _SLACK * self._layers + np.abs(allowed) * _SLACK
        wanted = work[None, :] - allowed[:, None]
        timely = np.searchsorted(work, wanted.ravel()).reshape(wanted.shape)
        return np.asarray(np.maximum(timely, self._fits[which, stage]), np.int64)

    def paces(self, groups: Ints | None = None) -> Floats:
        """Seconds between two frames' answers, for every order; inf where nothing fits.

        The best order of each group (of all, if left out) is exact to ``EXACTNESS``. Others are
        given up as soon as they are known not to be better; they keep an upper bound or inf.
        """
        count = len(self._orders)
        groups = np.zeros(count, np.int64) if groups is None else groups
        low, high = self._at_least(), np.full(count, np.inf)
        record = np.full(int(groups.max(initial=0)) + 1, np.inf)
        # The most promising order of each group first: most others then need one look. Of equally
        # promising ones it is the first that was given.
        least = np.full(len(record), np.inf)
        np.minimum.at(least, groups, low)
        ranked = np.lexsort((low > least[groups] * (1 + _SAME), groups))
        front = ranked[np.unique(groups[ranked], return_index=True)[1]]
        free = self.rounds(front, np.full(len(front), np.inf)) / self.load.frames
        low[front] = np.maximum(low[front], free)
        high[front] = np.maximum(free * self.load.frames, self._link[front])
        self._bisect(front[np.isfinite(free)], groups, low, high, record)
        rest = np.setdiff1d(np.arange(count), front)
        rest = rest[low[rest] < record[groups[rest]] * (1 - _SAME)]
        limit = record[groups[rest]] * (1 - _SAME)
        took = self.rounds(rest, limit) / self.load.frames
        # Without a record any time will do, and what holds then is what held for the first.
        whole = np.maximum(took * self.load.frames, self._link[rest])
        high[rest] = np.where(np.isfinite(limit), np.maximum(took, limit), whole)
        met = np.isfinite(took) & (took <= limit)
        self._bisect(rest[met], groups, low, high, record)
        return high

    def _at_least(self) -> Floats:
        """A lower bound of every order's pace: layers are taken as divisible."""
        work, held = self._costs.work, self._costs.held(self._tokens)
        densest = float((np.diff(work) / np.maximum(np.diff(held), 1.0)).max())
        layers, fixed, layer = work[-1], self._fixed, self._layer
        even = (layers + (fixed / layer).sum(axis=1)) / (1 / layer).sum(axis=1)
        order = layer.argsort(axis=1)
        room = np.take_along_axis(np.maximum(self._spare, 0.0) * densest, order, axis=1)
        filled = np.minimum(np.cumsum(room, axis=1), layers)
        given = np.diff(filled, axis=1, prepend=0.0)
        took = (given * np.take_along_axis(layer, order, axis=1)).sum(axis=1)
        whole = (took + fixed.sum(axis=1) + self._hops) / self.load.frames
        bound = np.maximum(np.maximum(even, whole), self._link) * (1 - 1e-9)
        return np.where(filled[:, -1] < layers * (1 - 1e-9), np.inf, bound)

    def _bisect(self, which: Ints, groups: Ints, low: Floats, high: Floats, record: Floats) -> None:
        """Narrow ``low`` and ``high`` of these orders down; ``record`` is the best of a group."""
        frames = self.load.frames
        np.minimum.at(record, groups[which], high[which])
        for step in range(_ROUNDS):
            wide = high[which] - low[which] > EXACTNESS * high[which]
            which = which[wide & (low[which] < record[groups[which]] * (1 - _SAME / 10))]
            if not len(which):
                break
            # The lower bound itself first: often it is the answer.
            limit = (low[which] + high[which]) / 2 if step else low[which] * (1 + _SLACK)
            took = self.rounds(which, limit) / frames
            met = took <= limit * (1 + _SLACK)
            high[which] = np.where(met, limit, np.minimum(high[which], np.maximum(took, limit)))
            low[which] = np.where(met, low[which] if step else limit, limit)
            np.minimum.at(record, groups[which], high[which])

    def cuts(self) -> tuple[int, ...]:
        """The best cuts of a single order: the most even ones among those of its pace.

        Ask only where ``paces`` is finite.
        """
        only = np.array([0])
        pace, frames = float(self.paces()[0]), self.load.frames
        high = pace * (1 + 10 * EXACTNESS)
        goal = max(float(self.rounds(only, np.array([high]))[0]), pace * frames)
        goal *= 1 + EXACTNESS
        low = float(self._link[0])
        for _ in range(_ROUNDS // 2):
            limit = (low + high) / 2
            if self.rounds(only, np.array([limit]))[0] <= goal:
                high = limit
            else:
                low = limit
        return self._backwards(np.array([high]))

    def _backwards(self, limit: Floats) -> tuple[int, ...]:
        only = np.array([0])
        tables, work = self._table(only, limit), self._costs.work
        stop, cuts = self._layers, [self._layers]
        for i in reversed(range(self._stages)):
            start = int(self._starts(only, limit, i)[0, stop])
            ahead = tables[i][0] - self._layer[0, i] * work
            stop = start + int(ahead[start:stop].argmin())
            cuts.append(stop)
        return tuple(reversed(cuts))


def _minima(values: Floats, levels: int) -> Floats:
    """Minima of runs of ``2**level`` values from each on: [level, row, start]."""
    out = np.empty((levels + 1, *values.shape))
    out[0] = values
    for level in range(1, levels + 1):
        half = 1 << (level - 1)
        out[level] = out[level - 1]
        out[level, :, :-half] = np.minimum(out[level - 1, :, :-half], out[level - 1, :, half:])
    return out
