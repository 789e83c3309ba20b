"""The best single chain on a set of places.

Up to ``ENUMERATED`` places every order is tried; up to ``tour.MOST`` a dynamic program finds the
order; beyond that the search is bounded and says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from fleetapp.hub.planner import tour
from fleetapp.hub.planner.costs import SLOTS, Costs, Floats
from fleetapp.hub.planner.glance import estimated_rate
from fleetapp.hub.planner.interval import Goal, Ints, Orders, with_skips

ENUMERATED: Final = 6
"""Places whose orders are all tried: 1,956 of them for six."""
SAME: Final = 1e-6
"""Rates that differ by less are taken as equal; then latency, size and stability decide."""
_HEADS_TRIED: Final = 3
_WIDTHS_TRIED: Final = 3
_ORDERS_CHECKED: Final = 3
_EQUAL: Final = 1.001
"""Layers whose sizes differ by no more than this are equal."""


@dataclass(frozen=True)
class Found:
    """A chain and what it is worth.

    Attributes:
        order: places, head first; empty if none fits.
        rate: tokens per second of all its users.
        score: the same, less what breaks ties.
        running: sequences at once that this is for.
    """

    order: tuple[int, ...] = ()
    rate: float = 0.0
    score: float = 0.0
    running: int = 0


NOTHING: Final = Found()


@dataclass(frozen=True)
class _Listed:
    """All orders of one length; ``sets`` is the bit mask of each."""

    orders: Ints
    sets: Ints


@dataclass
class Chains:
    """Chains of one model on the places of ``costs``; remembers what it has computed.

    Args:
        costs: of the model on the places.
        context: cache tokens for each sequence.
    """

    costs: Costs
    context: int
    bounded: bool = False
    """Whether an answer came from a bounded search."""
    _rates: dict[tuple[tuple[int, ...], int], float] = field(default_factory=dict, repr=False)
    _cuts: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = field(
        default_factory=dict, repr=False
    )
    _about: dict[tuple[tuple[int, ...], int], float] = field(default_factory=dict, repr=False)
    _sets: dict[tuple[int, int], list[Found]] = field(default_factory=dict, repr=False)
    _best: dict[tuple[frozenset[int], int, int], Found] = field(default_factory=dict, repr=False)

    def rate(self, order: tuple[int, ...], running: int) -> float:
        """Tokens per second with the best cuts; 0 if it does not fit."""
        key = order, running
        if key not in self._rates:
            self._rates[key] = self._rate(order, running)
        return self._rates[key]

    def _rate(self, order: tuple[int, ...], running: int) -> float:
        if not self._possible(order, running):
            return 0.0
        orders = Orders(self.costs, np.array([order]), running, self.context)
        return orders.load.width / float(orders.paces()[0])

    def _possible(self, order: Sequence[int], running: int) -> bool:
        return (
            1 <= running <= SLOTS
            and 1 <= len(order) <= self.costs.model.layers
            and self.costs.places[order[0]].can_head
        )

    def cuts(self, order: tuple[int, ...], running: int) -> tuple[int, ...]:
        """The best cuts of a chain that fits."""
        key = order, running
        if key not in self._cuts:
            orders = Orders(self.costs, np.array([order]), running, self.context)
            self._cuts[key] = orders.cuts()
        return self._cuts[key]

    def found(self, order: tuple[int, ...], running: int) -> Found:
        """A chain of this order with its score."""
        rate = self.rate(order, running)
        if not rate:
            return NOTHING
        return Found(order, rate, rate * (1 - self._ties(order, running / rate)), running)

    def _ties(self, order: tuple[int, ...], seconds: float) -> float:
        places = self.costs.places
        fragile = sum(1 / (1 + places[p].stability / 3600) for p in order) / len(order)
        away = not places[order[0]].coordinator
        return (
            3e-7 * seconds / (1 + seconds)
            + 1e-7 * min(len(order), 50) / 5
            + 1e-7 * away
            + 1e-8 * fragile
        )

    # ------------------------------------------------------------------ at a glance

    def about(self, order: tuple[int, ...], running: int) -> float:
        """Nearly ``rate``, some hundred times faster: layers are taken as equal."""
        key = order, running
        if key not in self._about:
            possible = self._possible(order, running)
            self._about[key] = (
                estimated_rate(self.costs, order, running, self.context) if possible else 0.0
            )
        return self._about[key]

    # ------------------------------------------------------------------ few places

    @cached_property
    def _listed(self) -> list[_Listed]:
        places = range(len(self.costs.places))
        # A coordinator first: of equally fast orders the first is taken.
        heads = [p for p in places if self.costs.places[p].can_head]
        heads.sort(key=lambda p: not self.costs.places[p].coordinator)
        out = []
        for size in range(1, min(len(places), self.costs.model.layers) + 1):
            orders = np.array(
                [
                    (head, *rest)
                    for head in heads
                    for rest in itertools.permutations([p for p in places if p != head], size - 1)
                ],
                np.int64,
            ).reshape(-1, size)
            out.append(_Listed(orders, (1 << orders).sum(axis=1)))
        return out

    def by_set(self, running: int, stages: int = 0) -> list[Found]:
        """The best chain that uses exactly a set of places, for every set (a bit mask).

        Tries every order: for at most ``ENUMERATED`` places.
        """
        if (running, stages) not in self._sets:
            self._sets[running, stages] = self._by_set(running, stages)
        return self._sets[running, stages]

    def _by_set(self, running: int, stages: int) -> list[Found]:
        out = [NOTHING] * (1 << len(self.costs.places))
        if not 1 <= running <= SLOTS:
            return out
        for size, listed in enumerate(self._listed, start=1):
            if (stages and size != stages) or not len(listed.orders):
                continue
            orders = Orders(self.costs, listed.orders, running, self.context)
            paces = orders.paces(listed.sets)
            self._take_best(out, orders, listed, paces)
        return out

    def _take_best(self, out: list[Found], orders: Orders, listed: _Listed, paces: Floats) -> None:
        record = np.full(len(out), np.inf)
        np.minimum.at(record, listed.sets, paces)
        near = np.flatnonzero(np.isfinite(paces) & (paces <= record[listed.sets] * (1 + SAME)))
        rounds = orders.rounds(near, paces[near] * (1 + SAME))
        for index, took in zip(near, rounds, strict=True):
            order = tuple(int(p) for p in listed.orders[index])
            rate = orders.load.width / float(paces[index])
            score = rate * (1 - self._ties(order, float(took)))
            found = Found(order, rate, score, orders.load.running)
            mask = int(listed.sets[index])
            if found.score > out[mask].score:
                out[mask] = found

    # ------------------------------------------------------------------ any number

    def best(self, places: Iterable[int], running: int, stages: int = 0) -> Found:
        """The best chain on some of these places, or all.

        Args:
            places: to choose from.
            running: sequences at once.
            stages: how many it must have; 0 for as many as are best.
        """
        key = frozenset(places), running, stages
        if key not in self._best:
            self._best[key] = self._find(sorted(key[0]), running, stages)
        return self._best[key]

    def _find(self, places: list[int], running: int, stages: int) -> Found:
        if not places or not 1 <= running <= SLOTS:
            return NOTHING
        part = self._part(places)
        if len(places) <= ENUMERATED:
            every = part.by_set(running, stages)
            best = max(every, key=lambda f: f.score)
            return self._named(best, places)
        candidates: list[tuple[int, ...]] = [(p,) for p in places] if stages in (0, 1) else []
        if len(places) <= tour.MOST:
            candidates += self._by_tour(part, places, running, stages)
        else:
            self.bounded = True
            candidates += self._by_search(places, running, stages)
        candidates.sort(key=lambda o: -self.about(o, running))
        few = candidates[:_ORDERS_CHECKED]
        return max((self.found(o, running) for o in few), key=lambda f: f.score)

    def _part(self, places: list[int]) -> Chains:
        if len(places) == len(self.costs.places):
            return self
        return Chains(self.costs.part(places), self.context)

    @staticmethod
    def _named(found: Found, places: list[int]) -> Found:
        return replace(found, order=tuple(places[p] for p in found.order))

    def _by_tour(
        self, part: Chains, places: list[int], running: int, stages: int
    ) -> list[tuple[int, ...]]:
        lengths = [stages] if stages else range(2, len(places) + 1)
        sizes = self.costs.model.layer_bytes
        self.bounded |= max(sizes) > _EQUAL * min(sizes)  # the order is one for average layers
        order = tour.best_order(part.costs, running, self.context, lengths)
        return [tuple(places[p] for p in order)] if order is not None else []

    def _by_search(self, places: list[int], running: int, stages: int) -> list[tuple[int, ...]]:
        """Nearest neighbours from some heads, thinned out by the recurrence with skips; and the
        dynamic program over the places that seem best.
        """
        ranked = self._ranked(places, running)
        out: list[tuple[int, ...]] = []
        heads = [p for p in ranked if self.costs.places[p].can_head]
        heads.sort(key=lambda p: not self.costs.places[p].coordinator)
        few = list(dict.fromkeys([*heads[:1], *ranked]))
        if stages:
            # The fastest first; more of them than the program can order are ordered by distance.
            few = few[: max(stages, min(tour.MOST, stages + 4))]
            if len(few) <= tour.MOST:
                out += self._by_tour(self._part(sorted(few)), sorted(few), running, stages)
            return [*out, *(self._near(few[:stages], head, running) for head in few[:1])]
        goals: tuple[Goal, ...] = ("sum", "slowest")
        frames = sorted({1, min(running, len(places)), min(running, 4)})[:_WIDTHS_TRIED]
        for head in heads[:_HEADS_TRIED]:
            order = self._near(places, head, running)
            for width, goal in itertools.product({running / f for f in frames}, goals):
                tokens = running * self.context
                kept = with_skips(self.costs, order, width, goal, tokens)
                if kept is not None:
                    out.append(kept[0])
        return list(dict.fromkeys(out))

    def _ranked(self, places: Iterable[int], running: int) -> list[int]:
        """Fastest first; what cannot hold a layer last."""
        layer = self.costs.tables(float(running), alone=False).layer
        one = self.costs.held(running * self.context)[1]
        return sorted(places, key=lambda p: (self.costs.memory[p] < one, layer[p]))

    def _near(self, places: Iterable[int], head: int, running: int) -> tuple[int, ...]:
        """Each followed by the nearest that is left."""
        hop = self.costs.tables(float(running), alone=False).hop
        left, order = set(places) - {head}, [head]
        while left:
            following = min(left, key=lambda p: (hop[order[-1], p], p))
            left.remove(following)
            order.append(following)
        return tuple(order)
