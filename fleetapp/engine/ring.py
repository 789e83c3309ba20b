"""The data plane of one runner: a listener for the stage before, a connection to the next.

The ring is formed anew for every epoch. Whichever side starts first, both hops stand within the
link's deadline or forming it fails with a sentence that names both sides. Events are posted in
the order in which they happen; frames come only after ``LinkUp``.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from fleetapp import __version__
from fleetapp.engine.pipe import Link, PeerAddress
from fleetapp.errors import (
    ChainBroken,
    FleetError,
    FleetUnavailable,
    PeerClosed,
    PeerTimeout,
    ProtocolError,
    StaleFrame,
    TrustError,
    VersionMismatch,
)
from fleetapp.types import PROTOCOL_VERSION
from fleetapp.wire.channel import Authenticate, Connection
from fleetapp.wire.codec import Buffer
from fleetapp.wire.connect import connect
from fleetapp.wire.frames import Frame, Hello, HelloReply
from fleetapp.wire.hello import client_hello, expect_hello
from fleetapp.wire.listener import Listener

log = logging.getLogger("fleetapp.engine.ring")

_RETRY_PAUSE: Final = 0.05
_IDLE_SLICE: Final = 60.0


class Received(msgspec.Struct, frozen=True):
    """A frame from the stage before. Whether its epoch is the chain's is the receiver's check."""

    frame: Frame
    payload: memoryview


class LinkUp(msgspec.Struct, frozen=True):
    """Both hops stand."""

    epoch: int


class LinkFailed(msgspec.Struct, frozen=True):
    """The ring could not be formed; nothing is linked now."""

    epoch: int
    error: FleetError


class LinkLost(msgspec.Struct, frozen=True):
    """The stage before left, or wrote something that cannot be understood."""

    epoch: int
    error: FleetError
    stage: int
    device: str


RingEvent = Received | LinkUp | LinkFailed | LinkLost


class Self(msgspec.Struct, frozen=True):
    """What this runner says of itself in a hello, and holds others' hellos against."""

    device_id: str
    fleet: str
    first_layer: int
    precision: str
    runtime: str


class Security(msgspec.Struct, frozen=True):
    """TLS of the fleet, handed in because how it is made is not the ring's business."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    spki_of: Authenticate
    hostname: Callable[[str], str]
    """Name in the certificate of a device, by device id."""


class _Epoch:
    """One formed, or being formed, ring. Its fields are guarded by the ring's lock."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.next: Connection | None = None
        self.prev: Connection | None = None
        self.reading = False
        self.refused: FleetError | None = None
        self.changed = threading.Event()
        """Set when ``prev`` or ``refused`` is, and when the epoch is over."""
        self.stop = threading.Event()

    @property
    def prev_stage(self) -> int:
        return (self.link.stage - 1) % self.link.stages

    @property
    def next_stage(self) -> int:
        return (self.link.stage + 1) % self.link.stages

    @property
    def before(self) -> PeerAddress:
        assert self.link.prev is not None
        return self.link.prev

    @property
    def after(self) -> PeerAddress:
        assert self.link.next is not None
        return self.link.next


class Ring:
    """Owns the runner's data sockets.

    Args:
        me: this stage.
        post: takes events; called from several threads, must not block.
        security: contexts and checks for mutual TLS.
        host: address to listen on.
        port: 0 for any free one.
        message_deadline: seconds for one whole message, in either direction.

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
    ) -> None:
        self._me = me
        self._post = post
        self._security = security
        self._deadline = message_deadline
        self._lock = threading.Lock()
        self._current: _Epoch | None = None
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

    def link(self, link: Link) -> None:
        """Leave the ring of any epoch before and form this one; the outcome is an event."""
        epoch = _Epoch(link)
        self._replace(epoch)
        if link.stages == 1:
            self._post(LinkUp(link.epoch))
            return
        self._start(lambda: self._form(epoch), f"ring-form-{link.epoch}")

    def unlink(self) -> None:
        """Close both hops; no more events of that epoch but those posted already."""
        self._replace(None)

    def send(self, frame: Frame, payload: Buffer | None = None) -> None:
        """Write one frame to the next stage.

        Raises:
            ChainBroken: the next stage is gone or does not take it in time; names it.
            StaleFrame: this runner is in no ring.
        """
        with self._lock:
            epoch = self._current
        if epoch is None or epoch.next is None:
            raise StaleFrame("This runner is in no ring now.")
        try:
            epoch.next.send(frame, payload, deadline=self._deadline)
        except (ProtocolError, TrustError) as exc:
            raise ChainBroken(
                f"Stage {epoch.next_stage} (device {epoch.after.device_id}) cannot be reached: "
                f"{exc.message}"
            ) from exc

    def close(self) -> None:
        """Close everything and wait for the threads, a few seconds at most."""
        self._replace(None)
        self._listener.close()
        for thread in self._threads:
            thread.join(5.0)

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _replace(self, epoch: _Epoch | None) -> None:
        with self._lock:
            old, self._current = self._current, epoch
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

    def _form(self, epoch: _Epoch) -> None:
        until = time.monotonic() + epoch.link.deadline
        try:
            connection = self._dial(epoch, until)
            with self._lock:
                if epoch.stop.is_set():
                    connection.close()
                    return
                epoch.next = connection
            previous = self._await_previous(epoch, until)
        except FleetError as exc:
            if not epoch.stop.is_set():
                with self._lock:
                    still = self._current is epoch
                if still:
                    self._replace(None)
                self._post(LinkFailed(epoch.link.epoch, exc))
            return
        if previous is None:
            return
        self._post(LinkUp(epoch.link.epoch))
        self._read(epoch, previous)

    def _dial(self, epoch: _Epoch, until: float) -> Connection:
        """Connect and introduce ourselves; a peer that has not heard of the epoch is asked again."""
        link, peer = epoch.link, epoch.after
        hello = Hello(
            protocol=PROTOCOL_VERSION,
            app=__version__,
            runtime=self._me.runtime,
            fleet=self._me.fleet,
            chain=link.chain,
            epoch=link.epoch,
            from_stage=link.stage,
            to_stage=epoch.next_stage,
            stages=link.stages,
            model=link.model,
            next_layer=link.next_layer,
            precision=self._me.precision,
        )
        while True:
            connection = connect(
                peer.hosts,
                peer.port,
                self._security.client,
                server_hostname=self._security.hostname(peer.device_id),
                authenticate=lambda tls: self._expect_peer(self._security.spki_of(tls), epoch),
                deadline=max(0.0, until - time.monotonic()),
                stop=epoch.stop,
            )
            try:
                client_hello(connection, hello)
            except (FleetUnavailable, PeerClosed, PeerTimeout) as exc:
                if time.monotonic() + _RETRY_PAUSE >= until:
                    raise PeerTimeout(
                        f"{self._name(link)} could not link to stage {epoch.next_stage} (device "
                        f"{peer.device_id}) within {link.deadline:g} s: {exc.message}"
                    ) from exc
                if epoch.stop.wait(_RETRY_PAUSE):
                    raise
            else:
                return connection

    def _expect_peer(self, spki: str, epoch: _Epoch) -> str:
        if spki != epoch.after.spki:
            raise TrustError(
                f"{self._name(epoch.link)} reached key {spki[:16]} where stage "
                f"{epoch.next_stage} (device {epoch.after.device_id}, key "
                f"{epoch.after.spki[:16]}) should be.",
                remedy="Link the chain again with the device's present address.",
            )
        return spki

    def _await_previous(self, epoch: _Epoch, until: float) -> Connection | None:
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
            f"Stage {epoch.prev_stage} (device {epoch.before.device_id}) did not connect to "
            f"{self._name(epoch.link).lower()} within {epoch.link.deadline:g} s.",
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
            epoch = self._current
            error = self._objection(hello, spki, epoch)
            mine = (
                epoch is not None
                and epoch.link.stages > 1
                and hello.epoch == epoch.link.epoch
                and hello.chain == epoch.link.chain
                and spki == epoch.before.spki
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

    def _objection(self, hello: Hello, spki: str, epoch: _Epoch | None) -> FleetError | None:
        me = f"device {self._me.device_id}"
        if hello.fleet != self._me.fleet:
            return TrustError(
                f"The sender serves fleet {hello.fleet}, {me} serves fleet {self._me.fleet}."
            )
        if epoch is None or epoch.link.stages == 1:
            return FleetUnavailable(
                f"The sender forms epoch {hello.epoch} of chain {hello.chain}, {me} is in no ring "
                "yet."
            )
        link, peer = epoch.link, epoch.before
        mine = self._name(link)
        theirs = f"stage {hello.from_stage} (key {spki[:16]})"
        if hello.chain != link.chain or hello.epoch > link.epoch:
            return FleetUnavailable(
                f"{mine} is in epoch {link.epoch} of chain {link.chain}, {theirs} in epoch "
                f"{hello.epoch} of chain {hello.chain}."
            )
        if hello.epoch < link.epoch:
            return StaleFrame(
                f"{mine} is in epoch {link.epoch}, {theirs} comes from epoch {hello.epoch}."
            )
        if spki != peer.spki:
            return TrustError(
                f"{mine} expects stage {epoch.prev_stage} to be device {peer.device_id} (key "
                f"{peer.spki[:16]}), not the holder of key {spki[:16]}."
            )
        theirs = f"stage {hello.from_stage} (device {peer.device_id})"
        return self._mismatch(hello, epoch, mine, theirs)

    def _mismatch(self, hello: Hello, epoch: _Epoch, mine: str, theirs: str) -> FleetError | None:
        link = epoch.link
        if epoch.reading:
            return ProtocolError(f"{mine} has a connection from {theirs} already.")
        pairs = (
            ("number of stages", hello.stages, link.stages),
            ("sender's stage number", hello.from_stage, epoch.prev_stage),
            ("receiver's stage number", hello.to_stage, link.stage),
            ("model digest", hello.model[:16], link.model[:16]),
            (
                "first layer of the receiver",
                hello.next_layer,
                self._me.first_layer if link.stage else 0,
            ),
            ("precision", hello.precision, self._me.precision),
        )
        for what, they, we in pairs:
            if they != we:
                return ProtocolError(
                    f"{mine} and {theirs} do not fit: the {what} is {we} here and {they} there."
                )
        if hello.model != link.model:
            return ProtocolError(f"{mine} and {theirs} hold shards of different models.")
        if release(hello.runtime) != release(self._me.runtime):
            return VersionMismatch(
                f"{theirs.capitalize()} runs {hello.runtime} (fleetapp {hello.app}), "
                f"{mine.lower()} runs {self._me.runtime} (fleetapp {__version__})."
            )
        return None

    def _name(self, link: Link) -> str:
        return f"Stage {link.stage} (device {self._me.device_id})"

    # -- receiving -------------------------------------------------------------------------

    def _read(self, epoch: _Epoch, connection: Connection) -> None:
        """Post frames until the stage before leaves or the epoch is over.

        Silence is no fault here: only the head knows whether somebody owes an answer.
        """
        while not epoch.stop.is_set():
            try:
                frame, payload = connection.recv(self._deadline, idle=_IDLE_SLICE)
            except FleetError as exc:
                if isinstance(exc, PeerTimeout) and not connection.closed:
                    continue
                if not epoch.stop.is_set():
                    self._post(self._lost(epoch, exc))
                return
            self._post(Received(frame, payload))

    def _lost(self, epoch: _Epoch, exc: FleetError) -> LinkLost:
        error = ChainBroken(
            f"Stage {epoch.prev_stage} (device {epoch.before.device_id}) left the chain: "
            f"{exc.message}"
        )
        return LinkLost(epoch.link.epoch, error, epoch.prev_stage, epoch.before.device_id)


def release(runtime: str) -> str:
    """The part of a runtime's version that two stages must share: without the build number."""
    return runtime.split("-", 1)[0].strip()
