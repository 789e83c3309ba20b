"""Keeps a fleet from being divided anew again and again for a gain that is mostly noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from fleetapp.types import DeviceId

SETTLE: Final = 75.0
"""Between a change and the next one that nobody has to make (s); it doubles with each. In this time
every member has measured its new part as often as it does.
"""
SETTLE_MOST: Final = 600.0


class Restraint:
    """Measurements of a busy PC scatter, each new division is measured again, and every change
    loads shards: without restraint one follows from the other for ever. What another set of PCs
    makes possible need not wait.

    Args:
        settle: seconds without a change after the first.
        clock: seconds, monotonic.
    """

    def __init__(self, settle: float = SETTLE, clock: Callable[[], float] = time.monotonic) -> None:
        self._settle = self._pause = settle
        self._clock = clock
        self._members: frozenset[DeviceId] = frozenset()
        self._until = -math.inf

    def holds(self, members: frozenset[DeviceId]) -> bool:
        """Whether a change for mere speed has to wait.

        Args:
            members: PCs that may be used.
        """
        return members == self._members and self._clock() < self._until

    def changed(self, members: frozenset[DeviceId]) -> None:
        """Layers were dealt among these."""
        if members != self._members:
            self._members, self._pause = members, self._settle
        self._until = self._clock() + self._pause
        self._pause = min(2 * self._pause, SETTLE_MOST)
