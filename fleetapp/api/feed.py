"""Events of one answer, with deadlines and an eye on whether anybody still listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fleetapp.api.sse import ClientGone
from fleetapp.engine.pipe import Finished
from fleetapp.errors import FleetError, NoCapacity, PeerTimeout, RunnerFailed, from_code
from fleetapp.hub.service import Event

log = logging.getLogger("fleetapp.api")

LOOK_EVERY = 0.1
"""Seconds between looks at the client's connection.

aiohttp tells a handler of a lost client only when it writes, or by cancelling it, which is an
option of the server that others set.
"""

CLOSE_DEADLINE = 5.0


@dataclass(frozen=True)
class Limits:
    """How long to wait. Seconds; bytes for ``body``."""

    queue: float = 600.0
    """For the first event: the place in the queue, and a prefill before it is announced."""
    silence: float = 120.0
    """Between two events of an answer that has begun."""
    commit: float = 2.0
    """A stream's status line waits so long for an error that would deserve its own status."""
    keep_alive: float = 10.0
    """Between two comments on a stream that has nothing to say."""
    body: int = 16 * 1024 * 1024
    body_seconds: float = 60.0


class EventFeed:
    """Reads one answer of a CompletionService. Call ``close`` in the end, whatever happened."""

    def __init__(
        self, events: AsyncIterator[Event], connected: Callable[[], bool], limits: Limits
    ) -> None:
        self._events = events
        self._connected = connected
        self._limits = limits
        self._pending: asyncio.Task[Event] | None = None
        self._begun = False
        self._heard = asyncio.get_running_loop().time()

    async def next(self, within: float) -> Event | None:
        """The next event, or None after ``within`` seconds without one.

        Raises:
            ClientGone: nobody listens any more.
            NoCapacity: the queue's deadline passed.
            PeerTimeout: an answer that had begun fell silent.
            FleetError: what the service raised, or the failure that a ``Finished`` tells.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        if self._pending is None:
            self._pending = asyncio.ensure_future(_step(self._events))
        while not self._pending.done():
            left = until - loop.time()
            if left <= 0:
                return None
            await asyncio.wait({self._pending}, timeout=min(left, LOOK_EVERY))
            if self._pending.done():
                break
            if not self._connected():
                raise ClientGone("The client closed the connection.")
            self._check_silence(loop.time() - self._heard)
        task, self._pending = self._pending, None
        event = task.result()
        self._heard = loop.time()
        self._begun = True
        _raise_failure(event)
        return event

    async def close(self) -> None:
        """Stop the generator: a request that still runs is cancelled. Never raises."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending}, timeout=CLOSE_DEADLINE)
            if not pending.done():
                log.error("an answer did not stop within %.0f s", CLOSE_DEADLINE)
                return
            if not pending.cancelled():
                pending.exception()  # looked at: it came too late to be told to anybody
        close = getattr(self._events, "aclose", None)
        if close is None:
            return
        try:
            async with asyncio.timeout(CLOSE_DEADLINE):
                await close()
        except Exception as error:  # noqa: BLE001 - the request is over; only the log is left to tell
            log.error("stopping an answer failed: %s", type(error).__name__)  # noqa: TRY400 - texts may quote prompts

    def _check_silence(self, silent: float) -> None:
        if self._begun and silent > self._limits.silence:
            raise PeerTimeout(
                f"The answer has stood still for {self._limits.silence:.0f} s.",
                remedy="Ask again; the fleet replaces a stage that hangs.",
            )
        if not self._begun and silent > self._limits.queue:
            raise NoCapacity(
                f"The question has waited {self._limits.queue:.0f} s for its turn.",
                remedy="Try again later, or add PCs to the fleet.",
            )


async def _step(events: AsyncIterator[Event]) -> Event:
    try:
        return await anext(events)
    except StopAsyncIteration:
        # a task cannot carry StopAsyncIteration, and an answer always ends with Finished
        raise RunnerFailed("The answer ended without saying why.") from None


def _raise_failure(event: Event) -> None:
    if isinstance(event, Finished) and event.reason in ("error", "cancelled"):
        raise failure(event)


def failure(event: Finished) -> FleetError:
    """The error that a ``Finished`` with reason "error" or "cancelled" tells of."""
    if event.reason == "cancelled" and not event.code:
        return from_code(
            "cancelled",
            event.message or "The answer was stopped on the fleet's side.",
            event.remedy,
        )
    return from_code(
        event.code or "runner_failed",
        event.message or "The answer ended early without a reason.",
        event.remedy,
    )
