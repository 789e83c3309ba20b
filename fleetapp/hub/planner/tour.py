"""The best order of places for one chain, by a dynamic program over subsets.

Held and Karp's recurrence (1962) over the hops, for every first place and every last one. With
layers that cost the same, what the layers take does not depend on the order in between, so that
hops and layers can be minimised apart; where layers differ they are taken as equal here and cut
exactly afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fleetapp.hub.planner.costs import Costs, Floats, Tables
from fleetapp.hub.planner.interval import Ints, Load

MOST: Final = 12
"""Places up to which this is affordable (about a second)."""
_ROUNDS: Final = 40
_EXACTNESS: Final = 1e-7


@dataclass(frozen=True)
class _Paths:
    """Shortest ways: ``least[mask, first, last]`` through all of ``mask``, both ends included."""

    least: Floats
    masks: list[Ints]
    """By number of members."""

    @classmethod
    def over(cls, hop: Floats, heads: npt.NDArray[np.bool_], longest: int) -> _Paths:
        count = len(hop)
        sizes = np.array([m.bit_count() for m in range(1 << count)])
        masks = [np.flatnonzero(sizes == k) for k in range(longest + 1)]
        least = np.full((1 << count, count, count), np.inf)
        for head in np.flatnonzero(heads).tolist():
            least[1 << head, head, head] = 0.0
        for size in range(2, longest + 1):
            for place in range(count):
                here = masks[size][masks[size] >> place & 1 == 1]
                before = least[here ^ (1 << place)]
                least[here, :, place] = (before + hop[:, place]).min(axis=2)
        return cls(least, masks)

    def way(self, hop: Floats, mask: int, first: int, last: int) -> tuple[int, ...]:
        """The places of the shortest one, in order."""
        out = [last]
        while out[-1] != first:
            mask ^= 1 << out[-1]
            out.append(int((self.least[mask, first] + hop[:, out[-1]]).argmin()))
        return tuple(reversed(out))


class _OfLength:
    """All chains of so many stages, two or more."""

    def __init__(self, costs: Costs, stages: int, running: int, context: int) -> None:
        self.load = Load.of(running, stages)
        self._stages, self._layers = stages, costs.model.layers
        self._tables: Tables = costs.tables(self.load.width, alone=False)
        self._costs = costs
        self._heads = np.array([p.can_head for p in costs.places])
        self._per_layer = costs.held(running * context)[-1] / self._layers
        self._paths: dict[bytes, tuple[_Paths, Floats]] = {}
        self.found: tuple[int, int, int] = (0, 0, 0)
        """Mask, first and last of the best that ``shortest`` saw last."""

    def hops(self, limit: float) -> tuple[_Paths, Floats]:
        """Ways over links that no frame keeps busy for longer than ``limit``."""
        usable = self._tables.occupied <= limit
        key = usable.tobytes()
        if key not in self._paths:
            hop = np.where(usable, self._tables.hop, np.inf)
            self._paths[key] = _Paths.over(hop, self._heads, self._stages), hop
        return self._paths[key]

    def shortest(self, limit: float) -> float:
        """Least seconds of a round in which nothing takes longer than ``limit``."""
        paths, _ = self.hops(limit)
        masks = paths.masks[self._stages]
        back = np.where(self._tables.back_occupied <= limit, self._tables.back, np.inf)
        total = paths.least[masks] + back.T + self._layer_times(masks, limit)
        at = int(total.argmin())
        mask, first, last = np.unravel_index(at, total.shape)
        self.found = int(masks[mask]), int(first), int(last)
        return float(total.ravel()[at])

    def way(self, limit: float) -> tuple[int, ...]:
        """The order of the best that ``shortest`` found under this limit."""
        paths, hop = self.hops(limit)
        return paths.way(hop, *self.found)

    def _layer_times(self, masks: Ints, limit: float) -> Floats:
        """[mask, first, last]: one layer each, the others to the fastest that have room."""
        tables, costs, count = self._tables, self._costs, len(self._heads)
        total = np.zeros((len(masks), count, count))
        left = np.full(total.shape, self._layers - self._stages, np.float64)
        ends = np.arange(count)
        first, last = (ends[:, None], ends[None, :])
        for place in np.argsort(tables.layer, kind="stable"):
            is_first, is_last = first == place, last == place
            fixed = tables.fixed[place] + is_first * tables.first[place]
            fixed = fixed + is_last * tables.last[place]
            room = costs.memory[place] - is_first * costs.first_bytes - is_last * costs.last_bytes
            most = np.floor(room / self._per_layer + 1e-9)
            if np.isfinite(limit):
                most = np.minimum(most, np.floor((limit - fixed) / tables.layer[place] + 1e-9))
            member = (masks >> place & 1 == 1)[:, None, None]
            more = np.where(member, np.clip(left, 0, most - 1), 0.0)
            left -= more
            here = np.where(most >= 1, fixed + tables.layer[place] * (1 + more), np.inf)
            total += np.where(member, here, 0.0)
        return np.where(left <= 0, total, np.inf)


def best_order(
    costs: Costs, running: int, context: int, lengths: Sequence[int]
) -> tuple[int, ...] | None:
    """The order, of one of these lengths, whose chain answers most tokens a second.

    Returns:
        Places of two or more stages; None if nothing fits.
    """
    record, best = np.inf, None
    for stages in lengths:
        if not 2 <= stages <= min(len(costs.places), costs.model.layers):
            continue
        chain = _OfLength(costs, stages, running, context)
        frames, width = chain.load.frames, chain.load.width
        free = chain.shortest(np.inf)
        if not np.isfinite(free):
            continue
        low, high = free / frames, free
        if low / width >= record:
            continue
        order, limit = chain.way(np.inf), low
        for step in range(_ROUNDS):
            took = chain.shortest(limit) / frames
            if took <= limit * (1 + 1e-12):
                high, order = limit, chain.way(limit)
                if not step:
                    break
            else:
                if took < high:
                    high, order = took, chain.way(limit)
                low = limit
            if high - low <= _EXACTNESS * high or low / width >= record:
                break
            limit = (low + high) / 2
        if high / width < record:
            record, best = high / width, order
    return best
