"""The data plane of one runner: a listener for the stage before, a connection to the next.

The ring is formed anew for every epoch. Whichever side starts first, both hops stand within the
link's deadline or forming it fails with a sentence that names both sides. Events are posted in
the order in which they happen; frames come only after ``LinkUp``.

How a formed ring is watched over is in ``epoch``.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from fleetapp.engine.epoch import BEAT_SECONDS, TELLING_SECONDS, Epoch
from fleetapp.engine.neighbours import (
    Self,
    after,
    before,
    capital,
    failed_before,
    hello_of,
    name_of,
    name_of_next,
    name_of_previous,
    objection,
)
from fleetapp.engine.pipe import Link
from fleetapp.engine.transport import LinkFailed, LinkUp, RingEvent
from fleetapp.errors import (
    ChainBroken,
    FleetError,
    FleetUnavailable,
    PeerClosed,
    PeerTimeout,
    ProtocolError,
    StageSilent,
    StaleFrame,
    TrustError,
)
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire.channel import Authenticate, Connection
from fleetapp.wire.connect import connect
from fleetapp.wire.frames import (
    Activations,
    Frame,
    Hello,
    HelloReply,
    Passed,
    Step,
    Tokens,
)
from fleetapp.wire.hello import client_hello, expect_hello
from fleetapp.wire.listener import Listener
from fleetapp.wire.meter import Meter

log = logging.getLogger("fleetapp.engine.ring")

_RETRY_PAUSE: Final = 0.05
_MARGIN: Final = 0.4
"""A neighbour is given up so much before the agreed silence: the news has to reach the hub."""


class Security(msgspec.Struct, frozen=True):
    """TLS of the fleet, handed in because how it is made is not the ring's business."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    spki_of: Authenticate
    hostname: Callable[[str], str]
    """Name in the certificate of a device, by device id."""


class Ring:
    """Owns the runner's data sockets.

    Args:
        me: this stage.
        post: takes events; called from several threads, must not block.
        security: contexts and checks for mutual TLS.
        host: address to listen on.
        port: 0 for any free one.
        message_deadline: seconds for one whole message, in either direction.
        silence: seconds without a sign of life within which a neighbour is given up.

    Raises:
        UserError: the port is taken.
    """

    def __init__(
        self,
        me: Self,
        post: Callable[[RingEvent], None],
        security: Security,
        *,
        host: str,
        port: int,
        message_deadline: float,
        silence: float,
    ) -> None:
        self._me = me
        self._patience = max(silence - _MARGIN, BEAT_SECONDS)
        self._post = post
        self._security = security
        self._deadline = message_deadline
        self._lock = threading.Lock()
        self._current: Epoch | None = None
        self._failed: tuple[Link, FleetError] | None = None
        """The last epoch that could not be formed: who asks for it is told why."""
        self.meter = Meter()
        """What the hops of all epochs have shown of their links, by device id."""
        self._sent_before = 0
        self._received_before = 0
        self._threads: list[threading.Thread] = []
        self._listener = Listener(
            host,
            port,
            security.server,
            authenticate=security.spki_of,
            handler=self._accepted,
        )

    @property
    def port(self) -> int:
        """Port of the listener."""
        return self._listener.port

    @property
    def sent_bytes(self) -> int:
        """Application bytes written to next hops since the start."""
        with self._lock:
            current = self._current
            alive = current.next.sent_bytes if current and current.next else 0
            return self._sent_before + alive

    @property
    def received_bytes(self) -> int:
        """Application bytes read from previous hops since the start."""
        with self._lock:
            current = self._current
            alive = current.prev.received_bytes if current and current.prev else 0
            return self._received_before + alive

    @property
    def progress(self) -> tuple[Passed, ...]:
        """At a head: how far each stage behind it has come, as they last said."""
        with self._lock:
            return self._current.heard if self._current is not None else ()

    @property
    def blame(self) -> tuple[int, str] | None:
        """Stage and device that broke the present ring, if another stage has said so or it is this
        one, which stood still.
        """
        with self._lock:
            return self._current.blamed if self._current is not None else None

    def link(self, link: Link) -> None:
        """Leave the ring of any epoch before and form this one; the outcome is an event."""
        epoch = Epoch(
            link,
            self._me,
            self._post,
            message_deadline=self._deadline,
            patience=self._patience,
            lock=self._lock,
            meter=self.meter,
        )
        self._replace(epoch)
        if (error := self._cannot(link)) is not None:
            self._give_up(epoch, error)
        elif link.stages == 1:
            self._post(LinkUp(link.epoch))
        else:
            self._start(lambda: self._form(epoch), f"ring-form-{link.epoch}")

    def _cannot(self, link: Link) -> FleetError | None:
        if link.model != self._me.model:
            return ProtocolError(
                f"{capital(self._name(link))} holds a shard of model {self._me.model}, the chain "
                f"is of model {link.model}."
            )
        if link.stages > 1 and (link.prev is None or link.next is None):
            return ProtocolError(f"The link of stage {link.stage} does not name both neighbours.")
        return None

    def unlink(self) -> None:
        """Close both hops; no more events of that epoch but those posted already."""
        self._replace(None)

    def send(self, frame: Frame, payload: Activations | None = None) -> None:
        """Write one frame to the next stage.

        Raises:
            ChainBroken: the next stage is gone or does not take it in time; names it, or who broke
                the ring if another stage has said so (``blame``).
            StaleFrame: this runner is in no ring.
        """
        with self._lock:
            epoch = self._current
        if epoch is None or epoch.next is None:
            raise StaleFrame("This runner is in no ring now.")
        body = None if payload is None else np.ascontiguousarray(payload).data
        try:
            epoch.next.send(frame, body, deadline=self._deadline)
        except (ProtocolError, TrustError) as exc:
            if (fault := epoch.fault) is not None:
                told = StageSilent if fault.code == StageSilent.code else ChainBroken
                raise told(fault.message) from exc
            if (own := epoch.own_fault(exc)) is not None:
                raise own from exc
            kind = StageSilent if isinstance(exc, PeerTimeout) else ChainBroken
            raise kind(
                f"{capital(name_of_next(epoch.link))} cannot be reached: {exc.message}"
            ) from exc
        if isinstance(frame, Step | Tokens):
            epoch.step = frame.step

    def renew(self, security: Security) -> None:
        """Make new connections with these contexts; present ones go on."""
        # New contexts and not a change of the old ones, which other threads may be using.
        self._security = security
        self._listener.renew(security.server)

    def close(self) -> None:
        """Close everything and wait for the threads, a few seconds at most."""
        self._replace(None)
        self._listener.close()
        for thread in self._threads:
            thread.join(5.0)

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        with self._lock:
            self._threads = [t for t in self._threads if t.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _replace(self, epoch: Epoch | None, *, only: Epoch | None = None) -> None:
        """Leave the present epoch (or ``only`` that one) and close its hops."""
        current = self._current
        if current is not None and current.fault is not None:
            current.told.wait(
                TELLING_SECONDS
            )  # the next stage shall hear why before the hop is closed
        with self._lock:
            old = self._current
            if only is not None and old is not only:
                return
            self._current = epoch
            if old is None:
                return
            old.stop.set()
            old.changed.set()
            connections = [c for c in (old.next, old.prev) if c is not None]
            self._sent_before += old.next.sent_bytes if old.next else 0
            self._received_before += old.prev.received_bytes if old.prev else 0
        for connection in connections:
            connection.close()

    # -- forming ---------------------------------------------------------------------------

    def _form(self, epoch: Epoch) -> None:
        until = time.monotonic() + epoch.link.deadline
        try:
            connection = self._dial(epoch, until)
            with self._lock:
                if epoch.stop.is_set():
                    connection.close()
                    return
                epoch.next = connection
            connection.patience = self._patience
            self._start(lambda: epoch.beat(connection), f"ring-beat-{epoch.link.epoch}")
            previous = self._await_previous(epoch, until)
        except FleetError as exc:
            self._give_up(epoch, exc)
            return
        if previous is None:
            return
        self._post(LinkUp(epoch.link.epoch))
        epoch.read(previous)

    def _give_up(self, epoch: Epoch, error: FleetError) -> None:
        if epoch.stop.is_set():
            return
        self._failed = (epoch.link, error)
        self._replace(None, only=epoch)
        self._post(LinkFailed(epoch.link.epoch, error))

    def _dial(self, epoch: Epoch, until: float) -> Connection:
        """Connect and introduce ourselves; who has not heard of the epoch yet is asked again."""
        link, peer = epoch.link, after(epoch.link)
        hello = hello_of(self._me, link)
        while True:
            try:
                connection = connect(
                    peer.hosts,
                    peer.port,
                    self._security.client,
                    server_hostname=self._security.hostname(peer.device_id),
                    authenticate=lambda tls: self._expect_peer(self._security.spki_of(tls), epoch),
                    deadline=max(0.0, until - time.monotonic()),
                    stop=epoch.stop,
                )
                client_hello(connection, hello)
            except (FleetUnavailable, PeerClosed, PeerTimeout) as exc:
                if time.monotonic() + _RETRY_PAUSE >= until:
                    raise PeerTimeout(
                        f"{capital(self._name(epoch.link))} could not link to {name_of_next(link)} "
                        f"within {link.deadline:g} s: {exc.message}"
                    ) from exc
                if epoch.stop.wait(_RETRY_PAUSE):
                    raise
            else:
                self.meter.round_trip(peer.device_id, connection.round_trip)
                return connection

    def _expect_peer(self, spki: str, epoch: Epoch) -> str:
        if spki != after(epoch.link).spki:
            raise TrustError(
                f"{capital(self._name(epoch.link))} reached key {spki[:16]} where "
                f"{name_of_next(epoch.link)} with key {after(epoch.link).spki[:16]} should be.",
                remedy="Link the chain again with the device's present address.",
            )
        return spki

    def _await_previous(self, epoch: Epoch, until: float) -> Connection | None:
        epoch.changed.wait(max(0.0, until - time.monotonic()))
        with self._lock:
            if epoch.stop.is_set():
                return None
            if epoch.prev is not None:
                epoch.reading = True
                return epoch.prev
            refused = epoch.refused
        if refused is not None:
            raise refused
        raise PeerTimeout(
            f"{capital(name_of_previous(epoch.link))} did not connect to {self._name(epoch.link)} "
            f"within {epoch.link.deadline:g} s.",
            remedy="Check that the device is on and that its firewall lets fleetapp out.",
        )

    # -- accepting -------------------------------------------------------------------------

    def _accepted(self, connection: Connection) -> None:
        """In the connection's own thread: hear the hello, then take the connection over."""
        hello = expect_hello(connection, self._check)
        with self._lock:
            epoch = self._current
            if epoch is None or epoch.link.epoch != hello.epoch or epoch.reading:
                replaced: Connection | None = connection
            else:
                # A peer that did not get our answer in time comes again: the later one counts.
                replaced, epoch.prev = epoch.prev, connection
                epoch.changed.set()
        if replaced is not None:
            replaced.close()

    def _check(self, hello: Hello, spki: str) -> HelloReply:
        """Hold a hello against what this stage is."""
        with self._lock:
            epoch, failed = self._current, self._failed
            error = failed_before(hello, self._me, failed) if epoch is None else None
            error = error or objection(
                hello,
                spki,
                self._me,
                epoch.link if epoch else None,
                taken=bool(epoch and epoch.reading),
            )
            mine = (
                epoch is not None
                and epoch.link.stages > 1
                and hello.epoch == epoch.link.epoch
                and hello.chain == epoch.link.chain
                and spki == before(epoch.link).spki
            )
            if error is not None and mine and epoch is not None and epoch.prev is None:
                epoch.refused = error
                epoch.changed.set()
        if error is None:
            return HelloReply(ok=True, protocol=PROTOCOL_VERSION)
        log.info("refused a hello: %s", error.message)
        return HelloReply(
            ok=False, protocol=PROTOCOL_VERSION, code=error.code, reason=error.message
        )

    def _name(self, link: Link) -> str:
        return name_of(self._me, link)
