"""Server-sent events: the writing side on aiohttp, and a parser for those who read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from fleetapp.errors import Cancelled

WRITE_DEADLINE = 30.0
"""Seconds that a client may leave its receive window closed before it counts as gone."""


class ClientGone(Cancelled):
    """Whoever asked has closed the connection, or has stopped reading."""

    code = "client_gone"


def connected(request: web.Request) -> bool:
    """Whether the other side is still there, as far as this PC knows."""
    transport = request.transport
    return transport is not None and not transport.is_closing()


class EventStream:
    """One response of content type ``text/event-stream``.

    Every method but ``end`` raises ClientGone when the other side is gone.
    """

    def __init__(self, request: web.Request, headers: Mapping[str, str] | None = None) -> None:
        self._request = request
        self.response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",  # reverse proxies would hold back what is to be seen now
                **(headers or {}),
            }
        )

    @property
    def opened(self) -> bool:
        return self.response.prepared

    async def open(self) -> None:
        """Send the head of the response; errors can no longer have a status of their own."""
        async with _deadline():
            await self.response.prepare(self._request)

    async def send(self, value: object) -> None:
        """One event with ``value`` as JSON (which never holds a raw line break)."""
        await self.send_text(msgspec.json.encode(value))

    async def send_text(self, data: bytes) -> None:
        """One event with a single line of text."""
        await self._write(b"data: " + data + b"\n\n")

    async def comment(self, text: str = "keep-alive") -> None:
        """A line that clients skip; it keeps proxies and time-outs quiet."""
        await self._write(b": " + text.encode() + b"\n\n")

    async def end(self, last: object = None) -> None:
        """End the response properly, after one more event if given. Never raises ClientGone."""
        try:
            if last is not None:
                await self.send(last)
            async with _deadline():
                await self.response.write_eof()
        except ClientGone:
            pass  # nobody is left to be told

    async def _write(self, data: bytes) -> None:
        if not connected(self._request):
            raise ClientGone("The client closed the connection.")
        async with _deadline():
            await self.response.write(data)


@asynccontextmanager
async def _deadline() -> AsyncIterator[None]:
    """Bound a write, and give both ways of losing a client one name."""
    try:
        async with asyncio.timeout(WRITE_DEADLINE):
            yield
    except TimeoutError as error:
        raise ClientGone(f"The client has read nothing for {WRITE_DEADLINE:.0f} s.") from error
    except ConnectionError as error:
        raise ClientGone("The client closed the connection.") from error


class EventParser:
    """Bytes in, the ``data`` of complete events out; other fields are skipped.

    Args:
        limit: bytes of the longest event.
        comment: told the text of each comment.
    """

    def __init__(
        self, limit: int = 16 * 1024 * 1024, comment: Callable[[str], None] = lambda _: None
    ) -> None:
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._limit = limit
        self._comment = comment

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield what became complete.

        Raises:
            ValueError: a line longer than the limit, or text that is not UTF-8.
        """
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end]).removesuffix(b"\r")
            del self._buffer[: end + 1]
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b":"):
                self._comment(line[1:].strip().decode("utf-8", "replace"))
            elif not line and self._data:
                event = b"\n".join(self._data)
                self._data.clear()
                yield event.decode("utf-8")
        if len(self._buffer) > self._limit:
            raise ValueError("an event is longer than allowed")
