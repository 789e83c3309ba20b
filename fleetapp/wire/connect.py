"""Reaching a peer, whichever side started first."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Final

from fleetapp.errors import FleetError, PeerTimeout, ProtocolError, TrustError
from fleetapp.wire.channel import Authenticate, Connection, tls_error
from fleetapp.wire.codec import DEFAULT_LIMITS, Limits

_TRY_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.1


def connect(
    hosts: Sequence[str],
    port: int,
    context: ssl.SSLContext,
    *,
    server_hostname: str,
    authenticate: Authenticate,
    deadline: float,
    limits: Limits = DEFAULT_LIMITS,
    stop: threading.Event | None = None,
) -> Connection:
    """Try every address in turn, again and again, until one answers or the time is over.

    Args:
        hosts: addresses of one peer.
        port: its data port.
        context: TLS client context; the fleet's authority as the only root.
        server_hostname: the name the peer's certificate must carry.
        authenticate: see ``Authenticate``.
        deadline: seconds for everything, TLS handshake included.
        limits: largest messages accepted.
        stop: set it to give up early.

    Raises:
        TrustError: everyone who answered is somebody else.
        PeerTimeout: nobody answered in time, or ``stop`` was set.
        ProtocolError: the last answer was not TLS.
    """
    until = time.monotonic() + deadline
    pause = stop or threading.Event()
    failure: FleetError | None = None
    while True:
        strangers = 0
        for host in hosts:
            remaining = until - time.monotonic()
            if remaining <= 0 or pause.is_set():
                break
            try:
                tls, took = _handshake((host, port), context, server_hostname, remaining)
                connection = _authenticated(tls, authenticate, f"{host}:{port}", limits)
                connection.round_trip = took
                return connection  # noqa: TRY300 (a stranger's connection is never returned)
            except TrustError as e:
                failure, strangers = e, strangers + 1
            except ProtocolError as e:
                failure = e
            except OSError as e:
                if not isinstance(failure, TrustError):
                    why = e.strerror or str(e)
                    failure = PeerTimeout(
                        f"Nobody answered at {host}:{port} within {deadline:g} s ({why})."
                    )
        if failure is not None and strangers == len(hosts):
            raise failure  # waiting does not change who they are
        if pause.wait(min(_PAUSE_SECONDS, max(0.0, until - time.monotonic()))):
            raise PeerTimeout("Connecting was given up.")
        if time.monotonic() >= until:
            raise failure or PeerTimeout(f"No address to try for port {port}.")


def _handshake(
    address: tuple[str, int], context: ssl.SSLContext, server_hostname: str, remaining: float
) -> tuple[ssl.SSLSocket, float]:
    """The TLS connection, and the seconds that TCP took to connect: one round trip, answered by
    the other kernel whatever its programs are doing.
    """
    budget = min(remaining, _TRY_SECONDS)
    end = time.monotonic() + budget
    began = time.perf_counter()
    raw = socket.create_connection(address, timeout=budget)
    took = time.perf_counter() - began
    tls: ssl.SSLSocket | None = None
    try:
        # Before the handshake: its last flight must not wait for an acknowledgement.
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = context.wrap_socket(
            raw, server_hostname=server_hostname, do_handshake_on_connect=False
        )
        tls.settimeout(max(0.01, end - time.monotonic()))
        tls.do_handshake()  # its time-out is for the whole handshake, not for one read
    except BaseException as e:
        (tls or raw).close()
        if isinstance(e, ssl.SSLError):
            raise tls_error(e, f"{address[0]}:{address[1]}") from e
        raise
    return tls, took


def _authenticated(
    tls: ssl.SSLSocket, authenticate: Authenticate, peer: str, limits: Limits
) -> Connection:
    try:
        return Connection(tls, authenticate(tls), peer=peer, limits=limits)
    except BaseException:
        tls.close()
        raise
