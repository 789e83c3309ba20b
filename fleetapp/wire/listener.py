"""Accepting peers: every handshake in a thread of its own, none of them for long."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import ssl
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from fleetapp.errors import FleetError, UserError
from fleetapp.wire.channel import Authenticate, Connection, tls_error
from fleetapp.wire.codec import DEFAULT_LIMITS, Limits

log = logging.getLogger(__name__)

Handler = Callable[[Connection], None]
"""Called in the connection's own thread once its TLS handshake is done. Does the hello exchange
(``hello.expect_hello``, which has a deadline), hands the connection to its user and returns. A
FleetError it raises is logged and the connection closed."""

_OUT_OF_FILES_PAUSE: Final = 0.2


class Listener:
    """Listens on ``host`` and ``port`` (0: any free one, see ``address``) until closed.

    A silent peer holds one thread for at most ``handshake_deadline`` seconds. When more than
    ``max_pending`` peers are in that state the oldest is dropped: real peers finish within
    milliseconds, so a flood of silent ones cannot lock them out.

    Raises:
        UserError: the port is taken, or the address is not this machine's.
    """

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext,
        *,
        authenticate: Authenticate,
        handler: Handler,
        handshake_deadline: float = 5.0,
        max_pending: int = 32,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._server = socket.create_server((host, port), family=family, backlog=64)
        except OSError as e:
            raise UserError(
                f"Port {port} on {host} cannot be opened ({e.strerror or e}).",
                remedy="Choose another port, or 0 for any free one.",
            ) from e
        self._server.setblocking(False)
        self._context = context
        self._authenticate = authenticate
        self._handler = handler
        self._handshake_deadline = handshake_deadline
        self._max_pending = max_pending
        self._limits = limits
        self._pending: OrderedDict[int, ssl.SSLSocket] = OrderedDict()
        self._next = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="wire-accept", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port really listened on."""
        name = self._server.getsockname()
        return str(name[0]), int(name[1])

    @property
    def port(self) -> int:
        """The port really listened on."""
        return self.address[1]

    def renew(self, context: ssl.SSLContext) -> None:
        """Meet whoever connects from now on with another context."""
        self._context = context

    def close(self) -> None:
        """Stop listening and cut unfinished handshakes; accepted connections live on."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._wake.send(b"x")
        self._thread.join(timeout=5.0)
        for sock in (self._server, self._wake, self._woken):
            sock.close()
        with self._lock:
            waiting = list(self._pending.values())
        for tls in waiting:
            _cut(tls)

    def _accept(self) -> None:
        ready = selectors.DefaultSelector()
        ready.register(self._server, selectors.EVENT_READ)
        ready.register(self._woken, selectors.EVENT_READ)
        with ready:
            self._accept_loop(ready)

    def _accept_loop(self, ready: selectors.BaseSelector) -> None:
        while not self._closed.is_set():
            ready.select()
            if self._closed.is_set():
                return
            try:
                raw, address = self._server.accept()
            except (BlockingIOError, ConnectionError):
                continue  # the peer was gone before we came to it
            except OSError as e:
                log.warning("cannot accept a connection: %s", e)
                self._closed.wait(_OUT_OF_FILES_PAUSE)
                continue
            self._begin(raw, f"{address[0]}:{address[1]}")

    def _begin(self, raw: socket.socket, peer: str) -> None:
        try:
            raw.settimeout(self._handshake_deadline)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Takes the file over from raw, hence here: a cut must reach whoever waits on it.
            tls = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except OSError as e:
            log.info("refused %s: %s", peer, e)
            raw.close()
            return
        with self._lock:
            number = self._next
            self._next += 1
            self._pending[number] = tls
            oldest = next(iter(self._pending.values()))
            crowded = len(self._pending) > self._max_pending
        if crowded:
            _cut(oldest)
        threading.Thread(
            target=self._serve, args=(number, tls, peer), name="wire-handshake", daemon=True
        ).start()

    def _serve(self, number: int, tls: ssl.SSLSocket, peer: str) -> None:
        try:
            connection = self._handshake(tls, peer)
        except FleetError as e:
            log.info("refused %s: %s", peer, e)
            return
        except OSError as e:
            log.info("refused %s: no handshake (%s)", peer, e)
            return
        finally:
            with self._lock:
                del self._pending[number]
        try:
            self._handler(connection)
        except FleetError as e:
            log.info("refused %s: %s", peer, e)
            connection.close()
        except BaseException:
            connection.close()
            raise

    def _handshake(self, tls: ssl.SSLSocket, peer: str) -> Connection:
        try:
            tls.do_handshake()  # its time-out is for the whole handshake, not for one read
            return Connection(tls, self._authenticate(tls), peer=peer, limits=self._limits)
        except BaseException as e:
            tls.close()
            if isinstance(e, ssl.SSLError):
                raise tls_error(e, peer) from e
            raise


def _cut(waiting: ssl.SSLSocket) -> None:
    """Unblock whoever waits in a handshake; its own thread closes the file."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(waiting, socket.SHUT_RDWR)
