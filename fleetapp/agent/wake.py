"""Notices that this PC, or this process, has slept: sockets and group memberships may be dead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

log = logging.getLogger("fleetapp.agent.wake")

LOOK_SECONDS = 2.0
GAP_SECONDS = 4.0
"""A loop that was only busy is not so late (s)."""


def slept(asked: float, monotonic: float, wall: float) -> float:
    """Seconds slept through, 0 if none. A wall clock that was set forward looks like sleep too,
    which does no harm; one that was set back looks like nothing.

    Args:
        asked: how long one wanted to wait.
        monotonic: how far the monotonic clock went; it stands still in a suspended Linux, and goes
            on in a suspended Windows and in a stopped process.
        wall: how far the wall clock went.
    """
    missed = max(monotonic - asked, wall - max(monotonic, asked))
    return missed if missed > GAP_SECONDS else 0.0


class WakeWatch:
    """Calls ``woke`` after each sleep; it changes nothing but what is tried again, and when."""

    def __init__(
        self,
        woke: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._woke = woke
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep

    async def run(self) -> None:
        """Look for ever."""
        while True:
            monotonic, wall = self._monotonic(), self._wall()
            await self._sleep(LOOK_SECONDS)
            missed = slept(LOOK_SECONDS, self._monotonic() - monotonic, self._wall() - wall)
            if missed:
                log.warning("slept for %.0f s; looking at network and coordinator anew", missed)
                self._woke()
