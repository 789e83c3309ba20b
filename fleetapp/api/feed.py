"""Events of one answer, with deadlines and an eye on whether anybody still listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from fleetapp.api.sse import ClientGone
from fleetapp.engine.pipe import Delta, Finished, Started
from fleetapp.errors import FleetError, NoCapacity, PeerTimeout, RunnerFailed, from_code
from fleetapp.hub.service import Event

log = logging.getLogger("fleetapp.api")

LOOK_EVERY = 0.1
"""Seconds between looks at the client's connection.

aiohttp tells a handler of a lost client only when it writes, or by cancelling it, which is an
option of the server that others set.
"""

CLOSE_DEADLINE = 5.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class Limits:
    """How long to wait. Seconds; bytes for ``body``."""

    queue: float = 600.0
    """For the first event: the place in the queue."""
    reading: float = 1800.0
    """For the first token after that. Reading thousands of tokens takes a small PC minutes; a stage
    that hangs meanwhile is found by the head, which waits for every step."""
    silence: float = 120.0
    """Between two tokens."""
    commit: float = 2.0
    """A stream's status line waits so long for an error that would deserve its own status."""
    keep_alive: float = 10.0
    """Between two comments on a stream that has nothing to say."""
    body: int = 16 * 1024 * 1024
    body_seconds: float = 60.0


class Pull(Generic[_T]):
    """Takes items from an iterator for as long as somebody is connected.

    Call ``close`` in the end, whatever happened.
    """

    def __init__(self, items: AsyncIterator[_T], connected: Callable[[], bool]) -> None:
        self._items = items
        self._connected = connected
        self._pending: asyncio.Task[_T] | None = None

    async def next(self, within: float) -> _T | None:
        """The next item, or None if there is none within so many seconds.

        Raises:
            EOFError: there are no more.
            ClientGone: nobody listens any more.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        if self._pending is None:
            self._pending = asyncio.ensure_future(_step(self._items))
        while True:
            left = until - loop.time()
            await asyncio.wait({self._pending}, timeout=max(min(left, LOOK_EVERY), 0))
            if self._pending.done():
                break
            if not self._connected():
                raise ClientGone("The client closed the connection.")
            if left <= 0:
                return None
        task, self._pending = self._pending, None
        return task.result()

    async def close(self) -> None:
        """Stop the iterator, bounded in time. Never raises."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending}, timeout=CLOSE_DEADLINE)
            if not pending.done():
                log.error("an iterator did not stop within %.0f s", CLOSE_DEADLINE)
                return
            if not pending.cancelled():
                pending.exception()  # looked at: it came too late to be told to anybody
        close = getattr(self._items, "aclose", None)
        if close is None:
            return
        try:
            async with asyncio.timeout(CLOSE_DEADLINE):
                await close()
        except Exception as error:  # noqa: BLE001 - it is over; only the log is left to tell
            log.error("stopping an iterator failed: %s", type(error).__name__)  # noqa: TRY400 - texts may quote prompts


class EventFeed:
    """Reads one answer of a CompletionService. Call ``close`` in the end, whatever happened."""

    def __init__(
        self, events: AsyncIterator[Event], connected: Callable[[], bool], limits: Limits
    ) -> None:
        self._pull = Pull(events, connected)
        self._limits = limits
        self._phase: Literal["queued", "reading", "answering"] = "queued"
        self._heard = asyncio.get_running_loop().time()

    async def next(self, within: float) -> Event | None:
        """The next event, or None after ``within`` seconds without one.

        Raises:
            ClientGone: nobody listens any more.
            NoCapacity: the queue's deadline passed.
            PeerTimeout: an answer that had begun fell silent, or did not begin.
            FleetError: what the service raised, or the failure that a ``Finished`` tells.
        """
        loop = asyncio.get_running_loop()
        left = self._heard + self._patience() - loop.time()
        try:
            event = await self._pull.next(min(within, left))
        except EOFError:
            raise RunnerFailed("The answer ended without saying why.") from None
        if event is None:
            if left <= within:
                raise self._out_of_patience()
            return None
        self._heard = loop.time()
        if isinstance(event, Delta):
            self._phase = "answering"
        elif isinstance(event, Started):
            self._phase = "reading"
        if isinstance(event, Finished) and event.reason in ("error", "cancelled"):
            raise failure(event)
        return event

    async def close(self) -> None:
        """Stop the generator: a request that still runs is cancelled. Never raises."""
        await self._pull.close()

    def _patience(self) -> float:
        limits = self._limits
        return {"queued": limits.queue, "reading": limits.reading, "answering": limits.silence}[
            self._phase
        ]

    def _out_of_patience(self) -> FleetError:
        seconds = self._patience()
        if self._phase == "queued":
            return NoCapacity(
                f"The question has waited {seconds:.0f} s for its turn.",
                remedy="Try again later, or add PCs to the fleet.",
            )
        if self._phase == "reading":
            return PeerTimeout(
                f"The prompt was not read within {seconds:.0f} s.",
                remedy="Shorten it, or add PCs to the fleet.",
            )
        return PeerTimeout(
            f"The answer has stood still for {seconds:.0f} s.",
            remedy="Ask again; the fleet replaces a stage that hangs.",
        )


async def _step(items: AsyncIterator[_T]) -> _T:
    try:
        return await anext(items)
    except StopAsyncIteration:
        raise EOFError from None  # a task cannot carry StopAsyncIteration


def failure(event: Finished) -> FleetError:
    """The error that a ``Finished`` with reason "error" or "cancelled" tells of."""
    if event.reason == "cancelled":
        code, message = "cancelled", "The answer was stopped on the fleet's side."
    else:
        code, message = "runner_failed", "The answer ended early without a reason."
    return from_code(event.code or code, event.message or message, event.remedy)
