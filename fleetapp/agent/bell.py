"""Tells those who watch something that it has changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

BURST = 0.03
"""Changes come in bursts; at most 30 a second go out."""


class Bell:
    """One for each thing that can be watched."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Event] = set()

    def ring(self) -> None:
        """It is different now, or there is nothing to watch any more."""
        for event in self._listeners:
            event.set()

    async def ticks(
        self, over: Callable[[], bool], every: float, burst: float = BURST
    ) -> AsyncIterator[None]:
        """Now, after every change, and every so many seconds, until it is ``over``."""
        event = asyncio.Event()
        self._listeners.add(event)
        try:
            while not over():
                event.clear()
                yield None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(every):
                        await event.wait()
                await asyncio.sleep(burst)
        finally:
            self._listeners.discard(event)
