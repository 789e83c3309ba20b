"""Framing of the pipe between agent and runner: 4-byte big-endian length, msgpack body.

Blocking for the runner, asyncio for the agent, one set of rules. No OpenVINO here.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from typing import BinaryIO, Final, Protocol, TypeVar

import msgspec

from fleetapp.engine.pipe import MAX_MESSAGE, FromRunner, ToRunner
from fleetapp.errors import Malformed

_LENGTH: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_TO_RUNNER: Final[msgspec.msgpack.Decoder[ToRunner]] = msgspec.msgpack.Decoder(ToRunner)
_FROM_RUNNER: Final[msgspec.msgpack.Decoder[FromRunner]] = msgspec.msgpack.Decoder(FromRunner)

Message = TypeVar("Message", ToRunner, FromRunner)


def pack(message: ToRunner | FromRunner) -> bytes:
    """One message with its length in front.

    Raises:
        Malformed: larger than ``MAX_MESSAGE``, or values that msgpack cannot carry.
    """
    try:
        body = _ENCODER.encode(message)
    except (UnicodeEncodeError, OverflowError) as exc:
        raise Malformed(
            f"A {type(message).__name__} message holds text that is not valid Unicode, or a number "
            "of more than 64 bits."
        ) from exc
    if len(body) > MAX_MESSAGE:
        raise Malformed(
            f"A {type(message).__name__} message of {len(body)} bytes is over the limit of "
            f"{MAX_MESSAGE}."
        )
    return _LENGTH.pack(len(body)) + body


def _unpack(body: bytes, decoder: msgspec.msgpack.Decoder[Message], sender: str) -> Message:
    try:
        return decoder.decode(body)
    # RecursionError: unknown fields are skipped recursively, and they can nest deeply.
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise Malformed(f"The {sender} wrote a message that cannot be read: {exc}") from exc


def unpack_to_runner(packed: bytes) -> ToRunner:
    """One message that ``pack`` made for a runner, from a peer.

    Raises:
        Malformed: it did not.
    """
    return _unpack(_body(packed, "coordinator"), _TO_RUNNER, "coordinator")


def unpack_from_runner(packed: bytes) -> FromRunner:
    """One message that ``pack`` made of a runner's, from a peer.

    Raises:
        Malformed: it did not.
    """
    return _unpack(_body(packed, "member"), _FROM_RUNNER, "member")


def _body(packed: bytes, sender: str) -> bytes:
    if len(packed) < _LENGTH.size or _length(packed[: _LENGTH.size], sender) != len(packed) - 4:
        raise Malformed(f"The {sender} sent a message of another length than it says.")
    return packed[_LENGTH.size :]


def _length(prefix: bytes, sender: str) -> int:
    (size,) = _LENGTH.unpack(prefix)
    if size > MAX_MESSAGE:
        raise Malformed(
            f"The {sender} announced a message of {size} bytes, over the limit of {MAX_MESSAGE}."
        )
    return int(size)


def read_message(stream: BinaryIO) -> ToRunner | None:
    """The runner's side: block until the agent's next message; None when the pipe is closed.

    Raises:
        Malformed: garbage, an announced size over the limit, or an end within a message.
    """
    prefix = _read_exactly(stream, _LENGTH.size)
    if not prefix:
        return None
    body = _read_exactly(stream, _length(prefix, "agent"))
    return _unpack(body, _TO_RUNNER, "agent")


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes; empty only if the stream ended before the first of them."""
    parts: list[bytes] = []
    missing = size
    while missing:
        part = stream.read(missing)
        if not part:
            if missing == size:
                return b""
            raise Malformed("The agent's pipe ended within a message.")
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Outlet(Protocol):
    """Takes messages for the agent; several at once where they come together."""

    def __call__(self, *messages: FromRunner) -> None:
        """Write them, in order."""
        ...


class PipeWriter:
    """The runner's side of writing: whole messages, from any thread.

    Raises (from the call):
        BrokenPipeError, OSError: the agent is gone.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, *messages: FromRunner) -> None:
        """Write and flush messages, in one go: each flush wakes whoever reads."""
        data = b"".join([pack(message) for message in messages])
        with self._lock:
            self._stream.write(data)
            self._stream.flush()


async def read_async(reader: asyncio.StreamReader) -> FromRunner | None:
    """The agent's side: the runner's next message; None when the runner closed its end.

    Waits without limit for a message to begin: how long silence may last is the caller's
    knowledge (compiling takes minutes, a token does not).

    Raises:
        Malformed: garbage, an announced size over the limit, or an end within a message.
    """
    try:
        prefix = await reader.readexactly(_LENGTH.size)
    except asyncio.IncompleteReadError as exc:
        if not exc.partial:
            return None
        raise Malformed("The runner's pipe ended within a message.") from exc
    size = _length(prefix, "runner")
    try:
        body = await reader.readexactly(size)
    except asyncio.IncompleteReadError as exc:
        raise Malformed("The runner's pipe ended within a message.") from exc
    return _unpack(body, _FROM_RUNNER, "runner")


async def write_async(writer: asyncio.StreamWriter, message: ToRunner) -> None:
    """The agent's side: write one message and wait until the pipe has room again.

    Raises:
        Malformed: the message cannot be carried; nothing was written.
        OSError: the runner is gone.
    """
    writer.write(pack(message))
    await writer.drain()
