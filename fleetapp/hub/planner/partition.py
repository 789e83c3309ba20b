"""Several chains of one model: which places work together, and how users are divided.

Exact for up to ``chain.ENUMERATED`` places: of every set the best chain for every number of users,
then a dynamic program over sets of places and users. Beyond that a local search that begins with
one PC, with replicas and with one split over all, and only ever improves on the best of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetapp.hub.planner import tour
from fleetapp.hub.planner.chain import ENUMERATED, NOTHING, Chains, Found
from fleetapp.hub.planner.costs import SLOTS, Floats

LOTS: Final = 8
"""Users are divided one by one up to so many, in so many equal lots beyond."""
_TEAM_SIZES: Final = (2, 3, 4, 6, 8)
_TRIES: Final = 300
"""Changes that the local search looks at."""


@dataclass(frozen=True)
class Dealt:
    """One chain of a plan.

    Attributes:
        found: its order and rate with ``users``.
        users: of the demanded ones that it serves at once.
    """

    found: Found
    users: int


Chosen = tuple[Dealt, ...]


def total(chosen: Chosen) -> float:
    """Tokens per second of all chains."""
    return sum(d.found.rate for d in chosen)


def score(chosen: Chosen) -> float:
    """The same, less what breaks ties."""
    return sum(d.found.score for d in chosen)


def counts(users: int) -> list[int]:
    """Numbers of users that a chain may be given, 0 first."""
    lot = -(-users // LOTS)
    return sorted({min(i * lot, users) for i in range(LOTS + 1)})


@dataclass
class _Sets:
    """Best chains by set and number of users, for few places."""

    chains: Chains
    users: int

    def choose(self) -> list[Chosen]:
        """For every set of places (a bit mask): the best that it can do."""
        numbers = counts(self.users)
        singles = self._singles(numbers)
        size, lots = 1 << len(self.chains.costs.places), len(numbers)
        best = np.zeros((size, lots))
        came: dict[tuple[int, int], tuple[int, int]] = {}  # (set, lots) -> (chain's set, lots)
        for mask in range(1, size):
            low = mask & -mask
            best[mask] = best[mask ^ low]  # that place gets nothing
            sub = mask
            while sub:
                if sub & low:
                    self._try(mask, sub, singles, best, came)
                sub = (sub - 1) & mask
        return [self._unroll(mask, lots - 1, singles, best, came, numbers) for mask in range(size)]

    def _singles(self, numbers: Sequence[int]) -> list[list[Found]]:
        """[lots][set]; a chain may also leave some of its users waiting."""
        out = [[NOTHING] * (1 << len(self.chains.costs.places))]
        for number in numbers[1:]:
            now = self.chains.by_set(min(number, SLOTS))
            out.append(
                [max(a, b, key=lambda f: f.score) for a, b in zip(now, out[-1], strict=True)]
            )
        return out

    @staticmethod
    def _try(
        mask: int,
        sub: int,
        singles: list[list[Found]],
        best: Floats,
        came: dict[tuple[int, int], tuple[int, int]],
    ) -> None:
        rest = best[mask ^ sub]
        for given in range(1, len(singles)):
            gain = singles[given][sub].score
            if not gain:
                continue
            for lots in range(given, len(singles)):
                value = gain + rest[lots - given]
                if value > best[mask, lots]:
                    best[mask, lots] = value
                    came[mask, lots] = sub, given

    @staticmethod
    def _unroll(
        mask: int,
        lots: int,
        singles: list[list[Found]],
        best: Floats,
        came: dict[tuple[int, int], tuple[int, int]],
        numbers: Sequence[int],
    ) -> Chosen:
        out = []
        while mask and lots:
            low = mask & -mask
            if best[mask, lots] == best[mask ^ low, lots]:
                mask ^= low
                continue
            sub, given = came[mask, lots]
            out.append(Dealt(singles[given][sub], numbers[given]))
            mask, lots = mask ^ sub, lots - given
        return tuple(out)


def choose_by_set(chains: Chains, users: int) -> list[Chosen]:
    """What every set of places can do; for at most ``ENUMERATED`` places."""
    return _Sets(chains, users).choose()


def choose(chains: Chains, users: int) -> tuple[Chosen, bool]:
    """The best chains, and whether that is certain."""
    if len(chains.costs.places) <= ENUMERATED:
        return choose_by_set(chains, users)[-1], True
    return _Local(chains, users).choose(), False


def choose_among(chains: Chains, places: Sequence[int], users: int) -> tuple[Chosen, bool]:
    """``choose`` with only these places."""
    if len(places) == len(chains.costs.places):
        return choose(chains, users)
    part = Chains(chains.costs.part(places), chains.context)
    chosen, certain = choose(part, users)
    named = tuple(
        Dealt(replace(d.found, order=tuple(places[p] for p in d.found.order)), d.users)
        for d in chosen
    )
    return named, certain


def one_chain(chains: Chains, places: Sequence[int], users: int, stages: int) -> Chosen:
    """One chain of exactly so many stages; empty if there is none."""
    for running in _runnings(users):
        found = chains.best(places, running, stages)
        if found.order:
            return (Dealt(found, users),)
    return ()


# ---------------------------------------------------------------------- baselines


def one_place(chains: Chains, users: int) -> Chosen:
    """Everything on one device."""
    found = max(
        (chains.found((p,), _running(users)) for p in range(len(chains.costs.places))),
        key=lambda f: f.score,
        default=NOTHING,
    )
    found = max(found, _fewer(chains, found, users), key=lambda f: f.score)
    return (Dealt(found, users),) if found.order else ()


def replicas(chains: Chains, users: int) -> Chosen:
    """Everything on every device that can hold it."""
    alone = [(p,) for p in range(len(chains.costs.places)) if chains.about((p,), 1)]
    return divide(chains, alone, users)


def split(chains: Chains, users: int) -> Chosen:
    """One chain over two places or more."""
    size = len(chains.costs.places)
    best = NOTHING
    for running in _runnings(users):
        if size <= ENUMERATED:
            sets = chains.by_set(running)
            many = [f for mask, f in enumerate(sets) if mask.bit_count() > 1]
            best = max([best, *many], key=lambda f: f.score)
        else:
            found = chains.best(range(size), running)
            best = max(best, found if len(found.order) > 1 else NOTHING, key=lambda f: f.score)
        if best.order:
            break
    return (Dealt(best, users),) if best.order else ()


def _running(users: int) -> int:
    return max(1, min(users, SLOTS))


def _runnings(users: int) -> list[int]:
    """As many as wanted, or fewer where memory is short."""
    out = [_running(users)]
    while out[-1] > 1:
        out.append(out[-1] // 2)
    return out


def _fewer(chains: Chains, found: Found, users: int) -> Found:
    if found.order:
        return found
    every = range(len(chains.costs.places))
    for running in _runnings(users):
        best = max(
            (chains.found((p,), running) for p in every), key=lambda f: f.score, default=NOTHING
        )
        if best.order:
            return best
    return NOTHING


def divide(chains: Chains, orders: Iterable[tuple[int, ...]], users: int) -> Chosen:
    """Give users to chains, each lot to the one that gains most by it; exact rates."""
    given = _deal(chains, orders, users)
    out = []
    for order, number in given.items():
        running = next((r for r in _runnings(number) if chains.rate(order, r)), 0)
        if running:
            out.append(Dealt(chains.found(order, running), number))
    return tuple(out)


def _deal(
    chains: Chains, orders: Iterable[tuple[int, ...]], users: int
) -> dict[tuple[int, ...], int]:
    """Users of each chain that gets any, by estimated rates."""
    lot = counts(users)[1]
    given: dict[tuple[int, ...], int] = {}
    queue: list[tuple[float, int, tuple[int, ...]]] = []

    def offer(order: tuple[int, ...], rank: int) -> None:
        have = given.get(order, 0)
        more = min(have + lot, users)
        gain = worth(chains, order, more) - (worth(chains, order, have) if have else 0.0)
        if gain > 0:
            heapq.heappush(queue, (-gain, rank, order))

    for rank, order in enumerate(orders):
        offer(order, rank)
    left = users
    while left > 0 and queue:
        _, rank, order = heapq.heappop(queue)
        got = min(lot, left)
        given[order] = given.get(order, 0) + got
        left -= got
        offer(order, rank)
    return given


def worth(chains: Chains, order: tuple[int, ...], users: int) -> float:
    """Estimated tokens per second; some of the users wait if memory is short."""
    return max(chains.about(order, running) for running in _runnings(users))


def _about(chains: Chains, orders: Iterable[tuple[int, ...]], users: int) -> float:
    """Estimated tokens per second of all; fewer places are better where nothing else differs."""
    given = _deal(chains, orders, users)
    rate = sum(worth(chains, order, number) for order, number in given.items())
    return rate * (1 - 1e-6 * sum(map(len, given)))


# ---------------------------------------------------------------------- many places


@dataclass
class _Local:
    """Improves the best of some beginnings by small changes, as long as there are tries left."""

    chains: Chains
    users: int
    tries: int = _TRIES

    def choose(self) -> Chosen:
        """The best that was found; rates are exact for its orders."""
        simple = [f(self.chains, self.users) for f in (one_place, replicas, split)]
        found = [[d.found.order for d in chosen] for chosen in simple if chosen]
        best = max([*found, *self._teams()], key=self._worth, default=[])
        while self.tries > 0 and (better := self._improve(best)) is not None:
            best = better
        chosen = self._polished(divide(self.chains, best, self.users))
        return max([*simple, chosen], key=score)

    def _worth(self, orders: Sequence[tuple[int, ...]]) -> float:
        return _about(self.chains, orders, self.users)

    def _polished(self, chosen: Chosen) -> Chosen:
        """The best orders of the same teams."""
        out = []
        for dealt in chosen:
            found, size = dealt.found, len(dealt.found.order)
            if 1 < size <= tour.MOST:
                other = self.chains.best(found.order, found.running)
                found = max(found, other, key=lambda f: f.score)
            out.append(Dealt(found, dealt.users))
        return tuple(out)

    def _teams(self) -> list[list[tuple[int, ...]]]:
        """Those that can hold the model alone do; the others, or all, work in equal teams."""
        every = range(len(self.chains.costs.places))
        alone = [p for p in every if self.chains.about((p,), 1)]
        weak = [p for p in every if p not in alone]
        out = []
        for base, rest in (([(p,) for p in alone], weak), ([], list(every))):
            out += [
                base + self._grouped(rest, size)
                for size in _TEAM_SIZES
                if 2 * size <= len(rest) or (base and size <= len(rest))
            ]
        return out

    def _grouped(self, places: Sequence[int], size: int) -> list[tuple[int, ...]]:
        """Teams of so many, fast ones spread over all of them, one head each."""
        have = self.chains.costs.places
        layer = self.chains.costs.tables(1.0, alone=False).layer
        ranked = sorted(places, key=lambda p: (not have[p].can_head, layer[p]))
        teams = len(ranked) // size
        return [tuple(ranked[team::teams]) for team in range(teams)] if teams else []

    def _improve(self, orders: list[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        """The first change found that is for the better."""
        orders = list(_deal(self.chains, orders, self.users))
        used = {p for order in orders for p in order}
        spare = [p for p in range(len(self.chains.costs.places)) if p not in used]
        floor = self._worth(orders) * (1 + 1e-4)
        for changed in self._changes(orders, spare):
            self.tries -= 1
            if self.tries < 0:
                return None
            if self._worth(changed) > floor:
                return changed
        return None

    def _changes(
        self, orders: list[tuple[int, ...]], spare: list[int]
    ) -> Iterable[list[tuple[int, ...]]]:
        for place in spare:
            yield [*orders, (place,)]
        for i, order in enumerate(orders):
            others = orders[:i] + orders[i + 1 :]
            for at in range(len(order)):
                without = order[:at] + order[at + 1 :]
                if without:
                    yield [*others, without]
                    yield [*others, without, (order[at],)]
            for place in spare:
                yield [*others, (*order, place)]
                for at in range(len(order)):
                    yield [*others, (*order[:at], place, *order[at + 1 :])]
            for j in range(i + 1, len(orders)):
                rest = [o for k, o in enumerate(orders) if k not in (i, j)]
                yield [*rest, (*order, *orders[j])]
                yield [*rest, (*order, orders[j][-1]), *([orders[j][:-1]] if orders[j][1:] else [])]
