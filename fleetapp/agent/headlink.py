"""Lets the hub use a head runner of this PC over the control connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fleetapp.agent.supervisor import RunnerProcess
from fleetapp.engine import pipe
from fleetapp.engine.pipe_io import pack, unpack_to_runner
from fleetapp.errors import FleetError, RunnerFailed
from fleetapp.fleet.control import FromHead, ToHead
from fleetapp.types import Usage

log = logging.getLogger("fleetapp.agent.headlink")

BATCH = 64
"""Events that go into one message at most."""


class HeadLink:
    """Answers of this PC's heads for the hub.

    Args:
        runner: of an assignment, or None.
        send: a message to the hub; must not raise.
    """

    def __init__(
        self,
        runner: Callable[[str], RunnerProcess | None],
        send: Callable[[FromHead], Awaitable[None]],
    ) -> None:
        self._runner = runner
        self._send = send
        self._answers: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._queries: set[asyncio.Task[None]] = set()

    def hear(self, message: ToHead) -> None:
        """The hub asks something of a head; returns at once.

        Raises:
            Malformed: it is no message for a runner.
        """
        asked = unpack_to_runner(message.message)
        match asked:
            case pipe.Generate():
                key = (message.assignment, asked.request_id)
                if key in self._answers:
                    log.error("a second request %s was ignored", asked.request_id)
                    return
                task = asyncio.create_task(self._answer(message.assignment, asked))
                self._answers[key] = task
                task.add_done_callback(lambda _: self._answers.pop(key, None))
            case pipe.Cancel(request_id):
                running = self._answers.get((message.assignment, request_id))
                if running is not None:
                    running.cancel()
            case pipe.QueryStats() | pipe.QueryTrace():
                query = asyncio.create_task(self._tell(message.assignment, asked))
                self._queries.add(query)
                query.add_done_callback(self._queries.discard)
            case _:
                log.warning("the hub may not send %s to a head", type(asked).__name__)

    async def drop(self) -> None:
        """The hub is gone: nobody waits for these answers any more."""
        tasks = [*self._answers.values(), *self._queries]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, assignment: str, request: pipe.Generate) -> None:
        events: asyncio.Queue[pipe.FromRunner] = asyncio.Queue()
        sender = asyncio.create_task(self._pass_on(assignment, events))
        try:
            runner = self._runner(assignment)
            if runner is None:
                raise RunnerFailed("This PC no longer holds that shard.")
            async for event in runner.generate(request):
                events.put_nowait(event)
        except FleetError as exc:
            events.put_nowait(
                pipe.Finished(
                    request.request_id,
                    "error",
                    Usage(0, 0),
                    None,
                    exc.code,
                    exc.message,
                    exc.remedy,
                )
            )
        except asyncio.CancelledError:
            sender.cancel()
            raise
        await events.join()
        sender.cancel()

    async def _pass_on(self, assignment: str, events: asyncio.Queue[pipe.FromRunner]) -> None:
        """What lies there goes in one message; while it is sent, more may come."""
        while True:
            batch = [await events.get()]
            while len(batch) < BATCH and not events.empty():
                batch.append(events.get_nowait())
            await self._send(FromHead(assignment, tuple(pack(e) for e in batch)))
            for _ in batch:
                events.task_done()

    async def _tell(self, assignment: str, asked: pipe.QueryStats | pipe.QueryTrace) -> None:
        runner = self._runner(assignment)
        if runner is None:
            return
        try:
            reply: pipe.FromRunner = (
                await runner.stats() if isinstance(asked, pipe.QueryStats) else await runner.trace()
            )
        except FleetError as exc:
            log.info("no counters for the hub: %s", exc.message)
            return
        await self._send(FromHead(assignment, (pack(reply),)))
