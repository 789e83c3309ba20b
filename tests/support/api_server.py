"""An aiohttp server on a free port of 127.0.0.1, for tests that need a real one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """Base URL without a trailing slash; everything is closed at the end."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@contextmanager
def serving_in_thread(make: Callable[[], web.Application]) -> Iterator[str]:
    """The same for synchronous clients: ``make`` is called inside the server's own loop."""
    started = threading.Event()
    found: dict[str, str] = {}
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        async with serving(make()) as url:
            found["url"] = url
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    try:
        assert started.wait(10), "the server did not start"
        yield found["url"]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
