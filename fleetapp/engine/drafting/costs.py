"""How long a step takes by how wide it is, learnt while serving."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import Final

_SLOPE: Final = 0.1
"""Part of a one-token step that each further token is believed to cost before it was seen."""
_FINE: Final = 32
"""Widths up to this are told apart; above, those within an eighth of each other are one."""
_DRIFT: Final = 0.15
_SETTLED: Final = 4
"""Measurements of a width after which a change counts as the machine's, not the width's."""
_OUTLIER: Final = 0.7
_TRUST: Final = 16
"""Measurements of a width that are averaged; older ones fade."""
_LINE: Final = 2.0
"""Measurements that the line through all widths counts as."""
_FLOOR: Final = 1e-7


def width_class(tokens: int) -> int:
    """The smallest width that is measured together with ``tokens``."""
    if tokens <= _FINE:
        return max(tokens, 1)
    step = 1 << max(0, tokens.bit_length() - 4)
    return tokens - tokens % step


class Curve:
    """Seconds by width, in two parts: how fast the machine is now, and what widths cost on it.

    The speed follows every measurement at once (other programs come and go, histories grow), so
    that a width measured long ago still compares fairly with one measured now. A wider step is
    never believed to be faster: what chance says otherwise is evened out (isotonic regression by
    pooling adjacent violators; Ayer et al. 1955).
    """

    def __init__(self) -> None:
        self._level = 0.0
        self._shape: dict[int, float] = {}
        self._count: dict[int, int] = {}
        self._widths: list[int] = []
        self._even: dict[int, float] = {}
        self._slope = 0.0

    def observe(self, tokens: int, seconds: float) -> None:
        """A step of that width took so long."""
        width = width_class(tokens)
        log = math.log(max(seconds, _FLOOR))
        self._even.clear()
        known = self._shape.get(width)
        if known is None:
            self._shape[width] = log - self._level
            self._count[width] = 1
            insort(self._widths, width)
            return
        count = self._count[width] = self._count[width] + 1
        off = log - self._level - known
        if count > _SETTLED:
            off = max(-_OUTLIER, min(_OUTLIER, off))
            self._level += _DRIFT * off
            off *= 1 - _DRIFT
        self._shape[width] = known + off / min(count, _TRUST)

    def estimate(self, tokens: int) -> float:
        """Seconds of a step of that width; 0 while nothing was measured."""
        widths = self._widths
        if not widths:
            return 0.0
        if not self._even:
            self._even_out()
        width = width_class(tokens)
        if width in self._even:
            return self._even[width]
        at = bisect_left(widths, width)
        if at == 0:
            first = widths[0]
            return self._even[first] * (1 + _SLOPE * tokens) / (1 + _SLOPE * first)
        low = widths[at - 1]
        if at == len(widths):
            return self._even[low] + self._slope * (tokens - low)
        high = widths[at]
        share = (tokens - low) / (high - low)
        return self._even[low] * (1 - share) + self._even[high] * share

    def measured(self, tokens: int) -> int:
        """How often that width was measured."""
        return self._count.get(width_class(tokens), 0)

    def copy(self) -> Curve:
        """The same beliefs, held less firmly."""
        other = Curve()
        other._level = self._level
        other._shape = dict(self._shape)
        other._count = dict.fromkeys(self._shape, 1)
        other._widths = list(self._widths)
        return other

    def _even_out(self) -> None:
        """Few measurements count together with the line through all, and wider is not faster."""
        points = [
            (w, math.exp(self._level + self._shape[w]), float(min(self._count[w], _TRUST)))
            for w in self._widths
        ]
        start, self._slope = _line([p for p in points if p[0] <= 2 * _FINE] or points)
        pools: list[tuple[float, float, list[int]]] = []
        for width, seconds, weight in points:
            line = start + self._slope * width
            share = weight / (weight + _LINE) if width <= 2 * _FINE else 1.0
            pool = (share * seconds + (1 - share) * line, weight, [width])
            while pools and pools[-1][0] > pool[0]:
                pool = _pooled(pools.pop(), pool)
            pools.append(pool)
        for value, _, widths in pools:
            self._even.update(dict.fromkeys(widths, value))


def _pooled(
    a: tuple[float, float, list[int]], b: tuple[float, float, list[int]]
) -> tuple[float, float, list[int]]:
    """Two pools of (value, weight, widths) as one with their mean."""
    weight = a[1] + b[1]
    return (a[0] * a[1] + b[0] * b[1]) / weight, weight, a[2] + b[2]


def _line(points: list[tuple[int, float, float]]) -> tuple[float, float]:
    """Start and slope of the line that fits (width, seconds, weight) best; never falling."""
    weight = sum(w for _, _, w in points)
    x = sum(n * w for n, _, w in points) / weight
    y = sum(s * w for _, s, w in points) / weight
    spread = sum(w * (n - x) ** 2 for n, _, w in points)
    if not spread:
        slope = y * _SLOPE / (1 + _SLOPE * x)
    else:
        slope = max(0.0, sum(w * (n - x) * (s - y) for n, s, w in points) / spread)
    return y - slope * x, slope


class StepCost:
    """Seconds of a step by its tokens and the number of its sequences.

    The tokens matter most; what the same number of them costs in more sequences (their
    histories are read once each) is learnt apart, beginning with what is known of fewer.
    """

    def __init__(self) -> None:
        self._all = Curve()
        self._by_sequences: dict[int, Curve] = {}

    def observe(self, tokens: int, sequences: int, seconds: float) -> None:
        """A step took so long."""
        self._curve(sequences).observe(tokens, seconds)
        self._all.observe(tokens, seconds)

    def estimate(self, tokens: int, sequences: int) -> float:
        """Seconds expected; 0 while nothing was measured."""
        return self._by_sequences.get(_class(sequences), self._all).estimate(tokens)

    def measured(self, tokens: int, sequences: int) -> int:
        """How often steps like that were measured."""
        curve = self._by_sequences.get(_class(sequences))
        return curve.measured(tokens) if curve is not None else 0

    def _curve(self, sequences: int) -> Curve:
        key = _class(sequences)
        if key not in self._by_sequences:
            self._by_sequences[key] = self._all.copy()
        return self._by_sequences[key]


def _class(sequences: int) -> int:
    return max(sequences - 1, 0).bit_length()
