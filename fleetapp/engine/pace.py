"""How much of a prompt a frame may carry while others wait for their next token."""

from __future__ import annotations

from typing import Final

from fleetapp.engine.pipe import StepRecord

TARGET_SECONDS: Final = 0.25
"""What one piece of a prompt may add to the time between two tokens of an answer. Longer pauses
are seen as stuttering; much shorter ones would make pieces so small that their fixed cost counts.
"""
_WIDE: Final = 32
"""Narrower steps say nothing of what a position of a prompt costs."""
_FIRST: Final = 128
_NEW: Final = 0.3


class Pace:
    """Learns from the steps of one chain what a position costs, all stages together.

    Args:
        least: positions that a piece has however slow the chain is.
        most: positions that it has at most.
    """

    def __init__(self, least: int = 16, most: int = 256) -> None:
        self._least, self._most = least, most
        self._cost: float | None = None

    @property
    def chunk(self) -> int:
        """Positions of a piece."""
        if self._cost is None:
            return max(self._least, min(_FIRST, self._most))
        return max(self._least, min(self._most, int(TARGET_SECONDS / self._cost)))

    def learn(self, record: StepRecord) -> None:
        """A step came back."""
        positions = sum(record.counts)
        if positions < _WIDE:
            return
        seconds = sum([s.compute + s.host for s in record.stages]) * 1e-6
        cost = max(seconds / positions, 1e-9)
        self._cost = cost if self._cost is None else self._cost + _NEW * (cost - self._cost)
