from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from fleetapp.engine import pipe
from fleetapp.engine.pipe_io import PipeWriter, pack, read_async, read_message, write_async
from fleetapp.errors import Malformed
from fleetapp.types import SamplingParams, Usage

REQUEST = pipe.Generate("r", SamplingParams(max_tokens=3), prompt="日本 👩‍👩‍👧")
END = pipe.Finished("r", "stop", Usage(1, 2))


class Dribble(io.RawIOBase):
    """A pipe that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, 1))


def test_messages_survive_a_pipe_that_dribbles() -> None:
    stream: Any = Dribble(pack(REQUEST) + pack(pipe.Cancel("r")))
    assert read_message(stream) == REQUEST
    assert read_message(stream) == pipe.Cancel("r")
    assert read_message(stream) is None


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00",
        pack(REQUEST)[:-1],
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01\xc0",
        b"\x00\x00\x00\x05hello",
        pack(END),
        (200_000).to_bytes(4, "big") + b"\x91" * 200_000,
    ],
)
def test_garbage_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_message(io.BytesIO(data))


@pytest.mark.parametrize(
    "message",
    [pipe.Delta("r", "\ud800", ()), pipe.Delta("r", "", (1 << 64,))],
)
def test_what_cannot_be_carried_is_refused_before_writing(message: pipe.Delta) -> None:
    sink = io.BytesIO()
    with pytest.raises(Malformed):
        PipeWriter(sink)(message)
    assert sink.getvalue() == b""


async def test_the_agents_side_reads_what_the_runner_wrote() -> None:
    sink = io.BytesIO()
    write = PipeWriter(sink)
    write(END)
    write(pipe.Linked(4))
    reader = asyncio.StreamReader()
    reader.feed_data(sink.getvalue())
    reader.feed_eof()
    assert await read_async(reader) == END
    assert await read_async(reader) == pipe.Linked(4)
    assert await read_async(reader) is None


@pytest.mark.parametrize("cut", [2, 7])
async def test_an_end_within_a_message_is_malformed(cut: int) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(pack(END)[:cut])
    reader.feed_eof()
    with pytest.raises(Malformed, match="within a message"):
        await read_async(reader)


async def test_the_agents_side_writes_what_the_runner_reads() -> None:
    class Sink:
        def __init__(self) -> None:
            self.data = b""

        def write(self, data: bytes) -> None:
            self.data += data

        async def drain(self) -> None: ...

    sink: Any = Sink()
    await write_async(sink, REQUEST)
    assert read_message(io.BytesIO(sink.data)) == REQUEST
