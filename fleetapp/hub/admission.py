"""Who may run now: a queue per model whose places the clients see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from fleetapp.errors import NoCapacity
from fleetapp.types import Priority

MAX_WAITING: Final = 512
PATIENCE: Final = 8
"""Of so many that are let in, one is the one that has waited longest, whatever its priority."""


class _Ticket:
    def __init__(self, batch: bool) -> None:
        self.batch = batch
        self.granted = False


class Admission:
    """Lets in as many as there is room for.

    Args:
        room: how many more could run now, asked each time.
    """

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._queue: list[_Ticket] = []
        self._changed = asyncio.Event()
        self._entered = 0
        self._let_in = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def look(self) -> None:
        """Room may have been made: let in who can be."""
        room = self._room() - self._entered
        while room > 0 and self._queue:
            self._grant(self._next())
            room -= 1

    async def enter(self, priority: Priority) -> AsyncGenerator[int]:
        """Wait for one's turn, which has come when the iterator ends.

        Yields:
            The place in the queue, from 1, whenever it changes. Leaving early gives it up.

        Raises:
            NoCapacity: too many are waiting.
        """
        if len(self._queue) >= MAX_WAITING:
            raise NoCapacity(
                f"{len(self._queue)} requests are waiting already.",
                remedy="Try again later, or add PCs to the fleet.",
            )
        ticket = _Ticket(priority == "batch")
        self._queue.append(ticket)
        self.look()
        if not (ticket.batch or ticket.granted):
            self._tell()  # those with batch work have fallen back
        shown = 0
        try:
            while not ticket.granted:
                changed = self._changed
                place = self._place(ticket)
                if place != shown:
                    shown = place
                    yield place
                if not ticket.granted:
                    await changed.wait()
        finally:
            if not ticket.granted:
                self._queue.remove(ticket)
                self._tell()

    def started(self) -> None:
        """One that was let in now counts where ``room`` looks."""
        self._entered = max(0, self._entered - 1)

    def _grant(self, ticket: _Ticket) -> None:
        self._queue.remove(ticket)
        ticket.granted = True
        self._entered += 1
        self._let_in += 1
        self._tell()

    def _next(self) -> _Ticket:
        if self._let_in % PATIENCE == PATIENCE - 1:
            return self._queue[0]
        return next((t for t in self._queue if not t.batch), self._queue[0])

    def _place(self, ticket: _Ticket) -> int:
        order = [t for t in self._queue if not t.batch] + [t for t in self._queue if t.batch]
        return order.index(ticket) + 1

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
