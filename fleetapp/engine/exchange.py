"""Requests and questions to a runner, and its answers, whatever lies between: a pipe or a PC."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar

from fleetapp.engine import pipe
from fleetapp.errors import FleetError, RunnerFailed
from fleetapp.types import Usage

EVENT_DEADLINE: Final = 600.0
"""Longest silence between two events of one request before the runner is called hung (s)."""

T = TypeVar("T")
RequestEvent = pipe.Started | pipe.Delta | pipe.Finished


class Exchange:
    """Sorts what a runner says to those who asked.

    Args:
        send: brings a message to the runner; raises RunnerFailed if it is gone.
        name: of the runner, for sentences: "The runner for …".
    """

    def __init__(self, send: Callable[[pipe.ToRunner], Awaitable[None]], name: str) -> None:
        self._send = send
        self._name = name
        self._requests: dict[str, asyncio.Queue[RequestEvent]] = {}
        self._stats: list[asyncio.Future[pipe.RunnerStats]] = []
        self._traces: list[asyncio.Future[pipe.Trace]] = []
        self._hops: list[asyncio.Future[pipe.Hops]] = []
        self._measured: list[asyncio.Future[pipe.Measured]] = []

    async def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]:
        """Run one request; leaving the iterator early cancels it within a step.

        Raises:
            RunnerFailed: the runner is gone, or silent for too long.
        """
        queue: asyncio.Queue[RequestEvent] = asyncio.Queue()
        self._requests[request.request_id] = queue
        finished = False
        try:
            await self._send(request)
            while not finished:
                try:
                    async with asyncio.timeout(EVENT_DEADLINE):
                        event = await queue.get()
                except TimeoutError as exc:
                    raise RunnerFailed(f"The runner for {self._name} has gone silent.") from exc
                finished = isinstance(event, pipe.Finished)
                yield event
        finally:
            self._requests.pop(request.request_id, None)
            if not finished:
                with contextlib.suppress(FleetError):
                    await self._send(pipe.Cancel(request.request_id))

    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats:
        """Ask for counters.

        Raises:
            RunnerFailed: no answer in time, or the runner is gone.
        """
        return await self._query(pipe.QueryStats(), self._stats, deadline)

    async def trace(self, deadline: float = 5.0) -> pipe.Trace:
        """Ask for the most recent steps; only a head has any.

        Raises:
            RunnerFailed: no answer in time, or the runner is gone.
        """
        return await self._query(pipe.QueryTrace(), self._traces, deadline)

    async def measure(self, order: pipe.Measure, deadline: float = 30.0) -> pipe.Measured:
        """Have it time its layers while nobody is answered.

        Raises:
            RunnerFailed: no answer in time, or the runner is gone.
        """
        return await self._query(order, self._measured, deadline)

    async def hops(self, deadline: float = 5.0) -> pipe.Hops:
        """What it saw of its links.

        Raises:
            RunnerFailed: no answer in time, or the runner is gone.
        """
        return await self._query(pipe.QueryHops(), self._hops, deadline)

    def hear(self, message: pipe.FromRunner) -> bool:
        """Hand a message to who waits for it; False if it answers nothing that was asked here."""
        if isinstance(message, RequestEvent):
            queue = self._requests.get(message.request_id)
            if queue is not None:
                queue.put_nowait(message)
            return True
        if isinstance(message, pipe.Trace):
            _hand_over(self._traces, message)
            return True
        if isinstance(message, pipe.Measured):
            _hand_over(self._measured, message)
            return True
        if isinstance(message, pipe.Hops):
            _hand_over(self._hops, message)
            return True
        if isinstance(message, pipe.RunnerStats):
            return _hand_over(self._stats, message)
        return False

    def fail(self, cause: FleetError) -> None:
        """Nothing will come any more: everybody who waits hears why."""
        for request_id, queue in self._requests.items():
            queue.put_nowait(
                pipe.Finished(
                    request_id=request_id,
                    reason="error",
                    usage=Usage(0, 0),
                    code=cause.code,
                    message=cause.message,
                    remedy=cause.remedy,
                )
            )
        queues: tuple[list[Any], ...] = (self._stats, self._traces, self._hops, self._measured)
        for waiting in queues:
            asked: list[asyncio.Future[Any]] = waiting[:]
            waiting.clear()
            for future in asked:
                if not future.done():
                    future.set_exception(cause)

    async def _query(
        self, question: pipe.ToRunner, waiting: list[asyncio.Future[T]], deadline: float
    ) -> T:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        waiting.append(future)
        await self._send(question)
        try:
            async with asyncio.timeout(deadline):
                return await future
        except TimeoutError as exc:
            raise RunnerFailed(f"The runner for {self._name} did not answer in time.") from exc


def _hand_over(waiting: list[asyncio.Future[T]], message: T) -> bool:
    """Answers come in the order of the questions; who gave up waiting is passed over."""
    if not waiting:
        return False
    future = waiting.pop(0)
    if not future.done():
        future.set_result(message)
    return True
