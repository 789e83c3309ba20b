"""Bytes <-> frames: a fixed prefix, a msgpack header, a raw payload.

::

    offset  bytes  field
    0       1      protocol version
    1       3      b"FLT"
    4       4      header length, big-endian
    8       4      payload length, big-endian
    12      ...    header (msgpack map, one of ``frames.Frame`` by its ``type`` tag)
    ...     ...    payload (hidden states of a Step, C order, little-endian; else empty)

The prefix never changes between protocol versions, so two versions that meet can always name
each other. Nothing here touches a socket, and nothing is allocated on the word of a peer before
its announced lengths have been held against ``Limits`` and against the header's own arithmetic.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from fleetapp import __version__
from fleetapp.errors import Malformed, VersionMismatch
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire.frames import ActivationType, Frame, Step

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

PREFIX_BYTES: Final = 12
_PREFIX = struct.Struct(">B3sII")
_MAGIC = b"FLT"
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)

_ITEM_BYTES: dict[ActivationType, int] = {"f32": 4, "f16": 2, "bf16": 2}


class Limits(msgspec.Struct, frozen=True):
    """The most a peer may announce, in bytes."""

    header: int = 1 << 20
    payload: int = 64 << 20


class Prefix(msgspec.Struct, frozen=True):
    """Lengths of what follows the prefix, already held against the limits."""

    header: int
    payload: int


DEFAULT_LIMITS: Final = Limits()


def payload_bytes(frame: Frame) -> int:
    """Exact size of the payload that belongs to a frame, in bytes.

    Raises:
        Malformed: a Step whose segments make no sense.
    """
    if not isinstance(frame, Step):
        return 0
    if not frame.segments:
        raise Malformed(f"Step {frame.step} has no segments.")
    if frame.hidden < 1:
        raise Malformed(f"Step {frame.step} announces hidden states of width {frame.hidden}.")
    for segment in frame.segments:
        if segment.count < 1 or segment.past_len < 0:
            raise Malformed(
                f"Step {frame.step} asks slot {segment.slot} for {segment.count} positions "
                f"after {segment.past_len}."
            )
    return frame.tokens * frame.hidden * _ITEM_BYTES[frame.dtype]


def encode(
    frame: Frame,
    payload: Buffer | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    protocol: int = PROTOCOL_VERSION,
) -> list[memoryview]:
    """The buffers of one message, in order; the payload is a view of what was given, no copy.

    Args:
        frame: the header.
        payload: any C-contiguous buffer (a numpy array is one), only with a Step.
        limits: what the other side accepts.
        protocol: spoken version; other than our own only when a test plays an old peer.

    Raises:
        Malformed: the payload is not what the frame says, or a limit would be passed.
    """
    view = memoryview(b"" if payload is None else payload)
    body = view.cast("B") if view.nbytes else memoryview(b"")
    expected = payload_bytes(frame)
    if body.nbytes != expected:
        raise Malformed(
            f"A {type(frame).__name__} frame needs {expected} bytes of payload, not {body.nbytes}."
        )
    header = _ENCODER.encode(frame)
    _check_lengths(len(header), body.nbytes, limits)
    prefix = _PREFIX.pack(protocol, _MAGIC, len(header), body.nbytes)
    head = memoryview(prefix + header)
    return [head, body] if body.nbytes else [head]


def decode_prefix(prefix: Buffer, *, limits: Limits = DEFAULT_LIMITS) -> Prefix:
    """Read the first ``PREFIX_BYTES`` of a message.

    Raises:
        VersionMismatch: the peer speaks another protocol version; names both.
        Malformed: not our protocol at all, or a length beyond the limits.
    """
    protocol, magic, header, payload = _PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise Malformed("The peer sent bytes that are not a frame.")
    if protocol != PROTOCOL_VERSION:
        raise version_mismatch(protocol, peer="The peer")
    _check_lengths(header, payload, limits)
    return Prefix(header=header, payload=payload)


def decode_header(header: Buffer, prefix: Prefix) -> Frame:
    """Read a header and hold the announced payload length against what the frame implies.

    Raises:
        Malformed: not a known frame, or its payload length contradicts its fields.
    """
    try:
        frame = _DECODER.decode(header)
    # RecursionError: msgspec skips unknown fields recursively, a liar can nest them deeply.
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise Malformed("The peer sent a frame header that cannot be read.") from e
    expected = payload_bytes(frame)
    if prefix.payload != expected:
        raise Malformed(
            f"A {type(frame).__name__} frame announces {prefix.payload} bytes of payload "
            f"where its fields say {expected}."
        )
    return frame


def decode(message: Buffer, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Frame, memoryview]:
    """Decode one complete message; the payload is a view into it.

    Raises:
        VersionMismatch: as ``decode_prefix``.
        Malformed: anything else that is not exactly one message.
    """
    view = memoryview(message).cast("B")
    if view.nbytes < PREFIX_BYTES:
        raise Malformed(f"A message of {view.nbytes} bytes is too short.")
    prefix = decode_prefix(view[:PREFIX_BYTES], limits=limits)
    end = PREFIX_BYTES + prefix.header
    if view.nbytes != end + prefix.payload:
        raise Malformed(f"A message of {view.nbytes} bytes does not match its own lengths.")
    return decode_header(view[PREFIX_BYTES:end], prefix), view[end:]


def version_mismatch(theirs: int, *, peer: str, app: str = "") -> VersionMismatch:
    """The refusal that names both sides."""
    their_app = f" (fleetapp {app})" if app else ""
    return VersionMismatch(
        f"{peer} speaks protocol {theirs}{their_app}, this side speaks protocol "
        f"{PROTOCOL_VERSION} (fleetapp {__version__})."
    )


def _check_lengths(header: int, payload: int, limits: Limits) -> None:
    if header > limits.header:
        raise Malformed(f"A frame header of {header} bytes is over the limit of {limits.header}.")
    if payload > limits.payload:
        raise Malformed(
            f"A frame payload of {payload} bytes is over the limit of {limits.payload}."
        )
