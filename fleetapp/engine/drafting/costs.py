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
    that a width measured long ago still compares fairly with one measured now.
    """

    def __init__(self) -> None:
        self._level = 0.0
        self._shape: dict[int, float] = {}
        self._count: dict[int, int] = {}
        self._widths: list[int] = []

    def observe(self, tokens: int, seconds: float) -> None:
        """A step of that width took so long."""
        width = width_class(tokens)
        log = math.log(max(seconds, _FLOOR))
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
        self._shape[width] = known + off / min(count, 16)

    def estimate(self, tokens: int) -> float:
        """Seconds of a step of that width; 0 while nothing was measured."""
        widths = self._widths
        if not widths:
            return 0.0
        at = bisect_left(widths, width_class(tokens))
        if at < len(widths) and widths[at] == width_class(tokens):
            return self._seconds(widths[at])
        if at == 0:
            first = widths[0]
            return self._seconds(first) * (1 + _SLOPE * tokens) / (1 + _SLOPE * first)
        low = widths[at - 1]
        if at < len(widths):
            high = widths[at]
            a, b = self._seconds(low), self._seconds(high)
            return a + (b - a) * (tokens - low) / (high - low)
        a = self._seconds(low)
        if at == 1:
            return a * (1 + _SLOPE * tokens) / (1 + _SLOPE * low)
        before = widths[at - 2]
        slope = (a - self._seconds(before)) / (low - before)
        return a + max(slope, 0.0) * (tokens - low)

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

    def _seconds(self, width: int) -> float:
        return math.exp(self._level + self._shape[width])


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
