"""An HTTP server for one file that misbehaves on request. Real sockets, on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class FileServer:
    """Serves ``data`` at every path, in full or by range.

    ``behave`` sees each request before it is served and may answer it itself.
    """

    data: bytes
    etag: str = '"v1"'
    ranges: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    behave: Callable[[FileServer, web.Request], web.StreamResponse | None] | None = None
    cut_after: int | None = None
    """Close the connection after so many bytes of a body, once."""
    stall_after: int | None = None
    """Send nothing more after so many bytes of a body, once."""
    pages: dict[str, bytes] = field(default_factory=dict)
    """Other contents by path."""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and Range of every request."""
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path, request.headers.get("Range", "")))
        if self.behave is not None and (answer := self.behave(self, request)) is not None:
            return answer
        if request.path in self.pages:
            return web.Response(body=self.pages[request.path])
        headers = {"ETag": self.etag, **self.headers}
        start, status = 0, 200
        wanted = request.headers.get("Range")
        condition = request.headers.get("If-Range", self.etag)
        if wanted and self.ranges and condition == self.etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(self.data):
                headers["Content-Range"] = f"bytes */{len(self.data)}"
                return web.Response(status=416, headers=headers, body=b"<html>no such range")
            status = 206
            end = len(self.data) - 1
            headers["Content-Range"] = f"bytes {start}-{end}/{len(self.data)}"
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = len(self.data) - start
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        body = self.data[start:]
        cut, stall = self.cut_after, self.stall_after
        limit = cut if cut is not None else stall
        await response.write(body if limit is None else body[:limit])
        if cut is not None:
            self.cut_after = None
            assert request.transport is not None
            request.transport.close()
        elif stall is not None:
            self.stall_after = None
            # until the client gives up, which closes the connection and cancels this handler
            await asyncio.Event().wait()
        return response

    @contextmanager
    def running(self) -> Iterator[FileServer]:
        loop = asyncio.new_event_loop()
        ready, over = threading.Event(), asyncio.Event()

        async def serve() -> None:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            assert runner.addresses
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            await over.wait()
            await runner.cleanup()

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join(timeout=10)
            loop.close()
