"""Several answers to one request, as one stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

from fleetapp.engine.pipe import Delta, Finished
from fleetapp.hub.service import Event

_WAITING = 64
"""Events that lie between an answer and a slow reader before the answer waits."""


async def together(begin: Sequence[Callable[[], AsyncIterator[Event]]]) -> AsyncGenerator[Event]:
    """Events of all answers as they come; each tells by its ``request_id`` whose it is.

    The first answer goes ahead until it says something: by then its prompt is computed, and the
    others find it in the cache.

    Args:
        begin: starts one answer each.

    Raises:
        FleetError: what the first answer to fail raised; the others are ended.
    """
    events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue(_WAITING)

    async def read(start: Callable[[], AsyncIterator[Event]]) -> None:
        stream = start()
        try:
            async for event in stream:
                await events.put(event)
            await events.put(None)
        except Exception as error:  # noqa: BLE001 - raised to whoever reads
            await events.put(error)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    tasks = [asyncio.ensure_future(read(begin[0]))]
    try:
        left = len(begin)
        while left:
            event = await events.get()
            if isinstance(event, BaseException):
                raise event
            if event is None:
                left -= 1
            elif len(tasks) == 1 and isinstance(event, Delta | Finished):
                tasks += [asyncio.ensure_future(read(start)) for start in begin[1:]]
            if event is not None:
                yield event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
