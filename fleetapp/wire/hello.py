"""The first exchange on a data connection: who are you, and do we fit together?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from fleetapp.errors import Malformed, VersionMismatch, from_code
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire.channel import Connection
from fleetapp.wire.codec import version_mismatch
from fleetapp.wire.frames import Hello, HelloReply

HELLO_SECONDS: Final = 5.0

Check = Callable[[Hello, str], HelloReply]
"""Given a Hello and the sender's SPKI, says whether it fits; ``reason`` names both sides."""


def client_hello(
    connection: Connection, hello: Hello, *, deadline: float = HELLO_SECONDS
) -> HelloReply:
    """Introduce the sending stage; afterwards the connection only sends.

    Raises:
        VersionMismatch: the receiver speaks another protocol; names both sides.
        FleetError: the receiver refused, as the class its reply names; the connection is closed.
        PeerTimeout, PeerClosed, Malformed: no usable reply.
    """
    with _closed_on_error(connection):
        connection.send(hello, deadline=deadline)
        reply = _accepted(connection, deadline)
    connection.restrict("send")
    return reply


def expect_hello(connection: Connection, check: Check, *, deadline: float = HELLO_SECONDS) -> Hello:
    """Hear the sending stage out and answer; afterwards the connection only receives.

    Raises:
        VersionMismatch: the sender speaks another protocol; it is told so.
        FleetError: ``check`` refused, as the class its reply names; the sender is told so.
        PeerTimeout, PeerClosed, Malformed: no usable hello.
    """
    with _closed_on_error(connection):
        hello = _spoken_to(connection, deadline)
        reply = check(hello, connection.peer_spki)
        connection.send(reply, deadline=deadline)
        _raise_refusal(reply)
    connection.restrict("recv")
    return hello


def _accepted(connection: Connection, deadline: float) -> HelloReply:
    reply, _ = connection.recv(deadline)
    if not isinstance(reply, HelloReply):
        raise Malformed(f"{connection.peer} answered a hello with {type(reply).__name__}.")
    _raise_refusal(reply)
    if reply.protocol != PROTOCOL_VERSION:
        raise version_mismatch(reply.protocol, peer=connection.peer)
    return reply


def _spoken_to(connection: Connection, deadline: float) -> Hello:
    """A Hello of our own version; any other version is answered with a refusal first."""
    try:
        hello, _ = connection.recv(deadline)
        if not isinstance(hello, Hello):
            raise Malformed(f"{connection.peer} began with {type(hello).__name__}.")
        if hello.protocol != PROTOCOL_VERSION:
            raise version_mismatch(hello.protocol, peer=connection.peer, app=hello.app)
    except VersionMismatch as e:
        refusal = HelloReply(ok=False, protocol=PROTOCOL_VERSION, code=e.code, reason=e.message)
        connection.send(refusal, deadline=deadline)
        raise
    return hello


def _raise_refusal(reply: HelloReply) -> None:
    if not reply.ok:
        raise from_code(reply.code, reply.reason)


@contextlib.contextmanager
def _closed_on_error(connection: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
