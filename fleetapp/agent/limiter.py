"""Keeps a stream of bytes below a rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

BURST = 0.05
"""Seconds of the rate that may go at once after a pause."""
_BYTES = 1_000_000 / 8


class Limiter:
    """One rate that many transfers share, in the order in which they ask.

    Args:
        mbit: megabits a second, asked each time, so that a changed setting counts at once; 0: none.
        clock: monotonic seconds.
    """

    def __init__(
        self, mbit: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._mbit = mbit
        self._clock = clock
        self._free = 0.0

    async def take(self, size: int) -> None:
        """Wait until ``size`` bytes may go."""
        rate = self._mbit() * _BYTES
        if rate <= 0:
            return
        now = self._clock()
        self._free = max(self._free, now - BURST) + size / rate
        if self._free > now:
            await asyncio.sleep(self._free - now)


UNLIMITED = Limiter(lambda: 0.0)
