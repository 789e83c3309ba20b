"""Framed messages over blocking TLS sockets.

Blocking sockets and not asyncio: a 16 KB round trip was measured at 126 us against 195 us.
Every call has a deadline for the *whole* message, so a peer that dribbles bytes is cut.

After the hello exchange a connection is used in one direction only, and ``restrict`` enforces
it: OpenSSL forbids SSL_read and SSL_write on one session at the same time
(https://github.com/openssl/openssl/issues/20446), and CPython crashes when it happens
(https://github.com/python/cpython/issues/151508).
"""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from fleetapp.errors import Malformed, PeerClosed, PeerTimeout, ProtocolError, WrongFleet
from fleetapp.platform.keepalive import GONE, watch_peer
from fleetapp.wire.codec import (
    DEFAULT_LIMITS,
    PREFIX_BYTES,
    Limits,
    decode_header,
    decode_prefix,
    encode,
)
from fleetapp.wire.frames import Frame

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12 on

Authenticate = Callable[[ssl.SSLSocket], str]
"""Says who the peer of a finished handshake is (hex SHA-256 of its SubjectPublicKeyInfo), or
raises a TrustError. Passed in, because the wire knows nothing of fleets."""

SEND_SECONDS: Final = 20.0
"""Default deadline for one whole outgoing message."""
MEASURED_BYTES: Final = 64 << 10
"""Smaller payloads say more about delays than about a link's rate."""
_JOIN_BELOW: Final = 32 << 10  # up to here one copy is cheaper than a second TLS record
_WRITE_SLICE: Final = 1 << 20
_WAIT_SLICE: Final = 1.0  # longest single wait in the kernel; the closed flag is looked at between
_READ_AHEAD: Final = 32 << 10  # most messages are one TLS record, and so one read


class Connection:
    """One authenticated link. Safe to close from any thread; one sender and one receiver.

    Attributes:
        peer_spki: who the other side proved to be.
        peer: its address, for messages to people.
        patience: seconds for which the peer may neither send nor take a single byte while somebody
            waits for it. Time in which this process itself does not run does not count.
        sent_bytes: application bytes written (prefix, header and payload; no TLS overhead).
        received_bytes: application bytes read.
        round_trip: seconds that connecting took, or 0 on the side that accepted.
        transferred: told how many bytes of a large payload came in how many seconds.
    """

    def __init__(
        self, sock: ssl.SSLSocket, peer_spki: str, *, peer: str, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.peer_spki = peer_spki
        self.peer = peer
        self.patience = math.inf
        self.sent_bytes = 0
        self.received_bytes = 0
        self.round_trip = 0.0
        self.transferred: Callable[[int, float], None] = _ignore
        self._sock = sock
        self._limits = limits
        self._direction: Literal["both", "send", "recv"] = "both"
        self._state = threading.Lock()
        self._sending = threading.Lock()
        self._users = 0
        self._closed = False
        self._timeout = -1.0
        self._ahead = memoryview(bytearray(_READ_AHEAD))
        """What was read and not yet taken lies between the next two."""
        self._begin = self._end = 0
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        watch_peer(sock)

    @property
    def closed(self) -> bool:
        """True after ``close`` or after any failure that left a message half done."""
        return self._closed

    def restrict(self, direction: Literal["send", "recv"]) -> None:
        """From now on only this direction may be used; see the module's text for why."""
        self._direction = direction

    def send(
        self, frame: Frame, payload: Buffer | None = None, *, deadline: float = SEND_SECONDS
    ) -> int:
        """Write one message and return its size in bytes; ``deadline`` seconds for all of it.

        Raises:
            Malformed: payload and frame disagree (nothing was sent, the connection stays sound).
            PeerTimeout: the peer did not take it in time, or nothing of it for ``patience``.
            PeerClosed: the connection is gone.
        """
        if self._direction == "recv":
            raise RuntimeError("this connection only receives")
        buffers = encode(frame, payload, limits=self._limits)
        size = sum(b.nbytes for b in buffers)
        if size <= _JOIN_BELOW:
            buffers = [memoryview(b"".join(buffers))]
        until = time.monotonic() + deadline
        slow = f"{self.peer} did not take a message within {deadline:g} s."
        if not self._sending.acquire(timeout=deadline):
            raise PeerTimeout(slow)
        try:
            self._enter()
            try:
                for buffer in buffers:
                    self._write(buffer, until, slow)
            except ProtocolError:
                self.close()  # part of a message may be out: nothing can follow it
                raise
            finally:
                self._leave()
            self.sent_bytes += size
        finally:
            self._sending.release()
        return size

    def recv(self, deadline: float, *, idle: float | None = None) -> tuple[Frame, memoryview]:
        """Read one message.

        Args:
            deadline: seconds for the whole message.
            idle: seconds to wait for its first byte before ``deadline`` begins to run; without
                it ``deadline`` includes that wait.

        Returns:
            The frame, and its payload in a buffer of its own (empty unless it is a Step).

        Raises:
            PeerTimeout: no byte, or not all of them, in time. If no byte came the connection
                stays sound, otherwise it is closed, as it is after ``patience``.
            Malformed: garbage, or sizes over the limit; the connection is closed.
            VersionMismatch: the peer speaks another protocol. The connection is left open for
                the refusal; nothing more can be read from it.
            WrongFleet: the peer does not accept this side's certificate.
            PeerClosed: the peer left, or this side closed.
        """
        if self._direction == "send":
            raise RuntimeError("this connection only sends")
        self._enter()
        try:
            wait = deadline if idle is None else idle
            until = time.monotonic() + wait
            if self._begin == self._end:
                self._fill(until, f"{self.peer} sent nothing for {wait:g} s.")
            if idle is not None:
                until = time.monotonic() + deadline
            try:
                return self._message(
                    until, f"{self.peer} did not finish a message within {deadline:g} s."
                )
            except (Malformed, PeerTimeout):
                self.close()  # the stream's position is lost
                raise
        finally:
            self._leave()

    def close(self) -> None:
        """Cut the connection; whoever is waiting in it gets PeerClosed. May be called twice."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            idle = self._users == 0
        # Not SSLSocket.shutdown: it drops the TLS state first, and a sender in another thread
        # would for an instant write in the clear.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)
        if idle:
            self._sock.close()

    def _message(self, until: float, slow: str) -> tuple[Frame, memoryview]:
        prefix = decode_prefix(self._take(PREFIX_BYTES, until, slow), limits=self._limits)
        frame = decode_header(self._take(prefix.header, until, slow), prefix)
        # A buffer of its own: the caller may keep it while the next message is read.
        payload = memoryview(bytearray(prefix.payload))
        have = min(prefix.payload, self._end - self._begin)
        payload[:have] = self._ahead[self._begin : self._begin + have]
        self._begin += have
        missing, began = prefix.payload - have, time.perf_counter()
        while have < prefix.payload:
            have += self._read(payload[have:], until, slow)
        if missing >= MEASURED_BYTES:
            self.transferred(missing, time.perf_counter() - began)
        self.received_bytes += PREFIX_BYTES + prefix.header + prefix.payload
        return frame, payload

    def _take(self, size: int, until: float, slow: str) -> memoryview:
        """The next ``size`` bytes, valid until the next call."""
        if size > _READ_AHEAD:
            whole = memoryview(bytearray(size))
            have = self._end - self._begin
            whole[:have] = self._ahead[self._begin : self._end]
            self._begin = self._end = 0
            while have < size:
                have += self._read(whole[have:], until, slow)
            return whole
        while self._end - self._begin < size:
            self._fill(until, slow)
        self._begin += size
        return self._ahead[self._begin - size : self._begin]

    def _fill(self, until: float, slow: str) -> None:
        """At least one more byte behind what was read ahead."""
        have = self._end - self._begin
        if have == 0 or self._end == _READ_AHEAD:
            self._ahead[:have] = bytes(self._ahead[self._begin : self._end])
            self._begin, self._end = 0, have
        self._end += self._read(self._ahead[self._end :], until, slow)

    def _read(self, view: memoryview, until: float, slow: str) -> int:
        """At least one byte into a non-empty view."""
        quiet = 0.0
        while True:
            self._arm(until, slow, quiet)
            try:
                got = self._sock.recv_into(view)
            except TimeoutError as e:
                quiet = self._still(quiet, "sent", e)
                continue
            except OSError as e:
                raise self._broken(e) from e
            if got == 0:
                # OpenSSL 3 does not pass the system's ETIMEDOUT on: it looks like an end.
                raise self._given_up() if quiet >= GONE - _WAIT_SLICE else self._broken(None)
            return got

    def _write(self, view: memoryview, until: float, slow: str) -> None:
        quiet = 0.0
        while view.nbytes:
            self._arm(until, slow, quiet)
            try:
                sent = self._sock.send(view[:_WRITE_SLICE])
            except TimeoutError as e:
                quiet = self._still(quiet, "took", e)
                continue
            except OSError as e:
                raise self._broken(e) from e
            view, quiet = view[sent:], 0.0

    def _still(self, quiet: float, did: str, wait: TimeoutError) -> float:
        """A wait in the kernel was in vain: how long all of them together have been."""
        if wait.errno is not None:  # not our timeout: the system has given the peer up
            raise self._given_up()
        quiet += self._timeout
        if quiet >= self.patience:
            self.close()
            raise PeerTimeout(f"{self.peer} {did} nothing for {quiet:.1f} s.")
        return quiet

    def _given_up(self) -> PeerTimeout:
        """The peer's system is silent: its cable is out, or no way leads there."""
        self.close()
        return PeerTimeout(f"{self.peer} does not acknowledge anything any more.")

    def _arm(self, until: float, slow: str, quiet: float) -> None:
        remaining = until - time.monotonic()
        if self._closed:
            raise PeerClosed(f"The connection to {self.peer} was closed.")
        if remaining <= 0:
            raise PeerTimeout(slow)
        wait = min(remaining, _WAIT_SLICE, self.patience - quiet)
        if wait != self._timeout:  # setting it is a call into the kernel
            self._timeout = wait
            self._sock.settimeout(wait)

    def _broken(self, cause: OSError | None) -> ProtocolError | WrongFleet:
        """Turn a failed read or write into the error a person can act on; closes."""
        ours = self._closed
        self.close()
        if ours:
            return PeerClosed(f"The connection to {self.peer} was closed.")
        if isinstance(cause, ssl.SSLError):
            return tls_error(cause, self.peer)
        return PeerClosed(f"{self.peer} closed the connection.")

    def _enter(self) -> None:
        with self._state:
            if self._closed:
                raise PeerClosed(f"The connection to {self.peer} was closed.")
            self._users += 1

    def _leave(self) -> None:
        """The last one out closes the file, so that no other thread waits on a reused number."""
        with self._state:
            self._users -= 1
            last = self._closed and self._users == 0
        if last:
            self._sock.close()


def _ignore(_size: int, _seconds: float) -> None:
    """Nobody wants to know."""


def tls_error(cause: ssl.SSLError, peer: str) -> ProtocolError | WrongFleet:
    """Say in words what OpenSSL met while talking to ``peer``."""
    reason = (cause.reason or "").upper()
    if isinstance(cause, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in reason:
        return WrongFleet(f"{peer} showed a certificate that this fleet did not issue.")
    if "ALERT" in reason and ("CERT" in reason or "UNKNOWN_CA" in reason):
        return WrongFleet(f"{peer} does not accept this side's certificate.")
    if "CERTIFICATE" in reason:
        return WrongFleet(f"{peer} showed no certificate of this fleet.")
    if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return PeerClosed(f"{peer} closed the connection.")
    return Malformed(f"{peer} does not speak TLS as this fleet does ({reason.lower() or cause}).")
