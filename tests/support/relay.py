"""A network between two ends of a connection that can be frozen or cut."""

from __future__ import annotations

import asyncio


class Relay:
    """Passes bytes to ``127.0.0.1:port`` and back. Use as an async context manager."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._down = False
        self.carried = 0
        """Bytes that have passed from the far end to the near one."""

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def freeze(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._open.clear()

    def cut(self) -> None:
        """End every connection with a reset."""
        self._open.set()
        for writer in self._writers:
            writer.transport.abort()

    def down(self) -> None:
        """As ``cut``, and no connection can be made any more."""
        assert self._server is not None
        self._server.close()
        self._down = True
        self.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        if self._down:  # it was being made when the network went
            self.cut()
        await asyncio.gather(
            self._pump(reader, far_writer, back=False), self._pump(far_reader, writer, back=True)
        )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
                self.carried += len(data) if back else 0
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
