"""The hub's mutually authenticated front: joining, the control connection, chunks, and the API.

A connection without a client certificate reaches nothing but ``/join``; one with a certificate
of another fleet does not get past the handshake. Every request's key is checked against the
signed membership, not only its certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from fleetapp import __version__
from fleetapp.api.admin import AdminRoutes
from fleetapp.api.blobs import offset
from fleetapp.api.errors import error_middleware
from fleetapp.api.feed import Pull
from fleetapp.api.openai import add_openai_routes
from fleetapp.errors import (
    BadRequest,
    FleetError,
    Malformed,
    NotAMember,
    PeerClosed,
    PeerTimeout,
    VersionMismatch,
)
from fleetapp.fleet import tls
from fleetapp.fleet.control import (
    BROKEN_JSON,
    GONE_AFTER,
    MAX_MESSAGE,
    FromHub,
    FromMember,
    Goodbye,
    Heartbeat,
    JoinRequest,
    MemberHello,
    Refuse,
    ReissueRequest,
    Welcome,
)
from fleetapp.fleet.membership import Member, Membership
from fleetapp.fleet.trust import TrustList
from fleetapp.hub import watch
from fleetapp.hub.admin import Admin, HubAdmin
from fleetapp.hub.hub import Hub
from fleetapp.platform.keepalive import watch_peer
from fleetapp.types import PROTOCOL_VERSION

log = logging.getLogger("fleetapp.api.control")

MAX_JOIN_BODY = 64 * 1024
WATCH_PAUSE = 1.0
"""Between two views sent to a member that watches the fleet (s)."""
FOR_STRANGERS = frozenset({"/join/authority", "/join/request", "/join/membership", "/join/reissue"})

_T = TypeVar("_T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Deadlines:
    """How long a peer may take. Seconds."""

    hello: float = 5.0
    """For a join request's body, and for the first message of a control connection."""
    silence: float = GONE_AFTER * 2
    """Between two whole messages; the sweep of the registry usually comes first."""
    send: float = 10.0
    """To take a message off this side's hands."""
    close: float = 2.0
    """To answer a close; then the connection is dropped."""


class _AnyHello(msgspec.Struct, frozen=True, tag="hello"):
    """What a greeting of whatever version has; the rest may look different in each."""

    protocol: int
    app: str = ""


class _AnyJoin(msgspec.Struct, frozen=True):
    protocol: int


class ControlApi:
    """Routes of the control port.

    Args:
        hub: what answers.
        trust: who is a member.
        deadlines: shorter ones are for tests.
    """

    def __init__(self, hub: Hub, trust: TrustList, deadlines: Deadlines | None = None) -> None:
        self._hub = hub
        self._trust = trust
        self._deadlines = deadlines or Deadlines()
        self._decoder = msgspec.json.Decoder(FromMember)
        self._lines: set[_Line] = set()
        self._calls: set[_Call] = set()
        self._ending = False

    def app(self) -> web.Application:
        """An aiohttp application to be served behind ``tls.server_context``."""
        app = web.Application(
            middlewares=[error_middleware, self._gate],
            client_max_size=MAX_JOIN_BODY,
        )
        app.router.add_get("/join/authority", self._authority)
        app.router.add_post("/join/request", self._join)
        app.router.add_post("/join/membership", self._membership)
        app.router.add_post("/join/reissue", self._reissue)
        app.router.add_get("/control", self._control)
        app.router.add_get("/blobs/{sha256}", self._blob)
        app.router.add_get("/fleet", self._fleet)
        app.router.add_get("/fleet/events", self._fleet_events)
        members = web.Application(client_max_size=16 * 2**20)
        add_openai_routes(members, self._hub.router, _already_authorized)
        app.add_subapp("/api", members)
        for method, path, handler in AdminRoutes(self._admin).routes():
            app.router.add_route(method, f"/admin/{path}", handler)
        app.cleanup_ctx.append(self._cut_when_shut_out)
        app.on_shutdown.append(self._close_lines)
        return app

    async def _cut_when_shut_out(self, _: web.Application) -> AsyncIterator[None]:
        """End what a member is being answered as soon as it is one no more.

        Its control connection is the hub's to end, with a reason.
        """
        loop = asyncio.get_running_loop()

        def cut() -> None:
            for call in self._calls:
                if not self._trust.allows(call.spki) and call.request.transport is not None:
                    call.request.transport.abort()

        def changed(_: Membership) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is connected
                loop.call_soon_threadsafe(cut)

        stop = self._trust.subscribe(changed)
        yield
        stop()

    async def _close_lines(self, _: web.Application) -> None:
        self._ending = True
        await asyncio.gather(*(line.close(WSCloseCode.GOING_AWAY) for line in self._lines))

    @web.middleware
    async def _gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in FOR_STRANGERS:
            return await handler(request)
        member = self._member(request)
        if request.path == "/control":
            return await handler(request)
        call = _Call(request, member.spki)
        self._calls.add(call)
        try:
            return await handler(request)
        finally:
            self._calls.discard(call)

    def _member(self, request: web.Request) -> Member:
        ssl_object = request.transport.get_extra_info("ssl_object") if request.transport else None
        spki = tls.peer_spki(ssl_object) if ssl_object is not None else None
        if spki is None:
            raise NotAMember("This address serves members of the fleet only.")
        return self._trust.require(spki)

    def _admin(self, request: web.Request) -> Admin:
        member = self._trust.require(self._member(request).spki, "admin", "coordinator")
        return HubAdmin(self._hub, member.device_id)

    async def _authority(self, _: web.Request) -> web.Response:
        return _json(self._hub.gate.authority_reply())

    async def _join(self, request: web.Request) -> web.Response:
        ask = await self._ask(request, JoinRequest)
        # On the loop and not in a thread: two PCs that join at once must not both extend the same
        # membership list; a few milliseconds of signing disturb nobody.
        return _json(self._hub.gate.request(ask, _remote(request)))

    async def _membership(self, request: web.Request) -> web.Response:
        return _json(self._hub.gate.newest_list(await self._ask(request, JoinRequest)))

    async def _reissue(self, request: web.Request) -> web.Response:
        return _json(self._hub.gate.reissue(await self._ask(request, ReissueRequest)))

    async def _ask(self, request: web.Request, kind: type[_T]) -> _T:
        try:
            async with asyncio.timeout(self._deadlines.hello):
                body = await request.read()
            protocol = msgspec.json.decode(body, type=_AnyJoin).protocol
            if protocol != PROTOCOL_VERSION:
                raise _mismatch("The joining PC", protocol, "")
            return msgspec.json.decode(body, type=kind)
        except TimeoutError as exc:
            raise PeerTimeout("The join request did not arrive in time.") from exc
        except BROKEN_JSON as exc:
            raise BadRequest(f"The join request is malformed: {exc}.") from exc

    async def _fleet(self, _: web.Request) -> web.Response:
        return _json(self._hub.view())

    async def _fleet_events(self, request: web.Request) -> web.StreamResponse:
        """The fleet as one line of JSON now and after each change; an empty line keeps it alive."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        pull = Pull(watch.views(self._hub, lambda: self._ending, WATCH_PAUSE), lambda: True)
        try:
            while True:
                view = await pull.next(self._deadlines.silence / 2)
                async with asyncio.timeout(self._deadlines.send):
                    await response.write(
                        b"\n" if view is None else msgspec.json.encode(view) + b"\n"
                    )
        except (EOFError, OSError, TimeoutError):
            return response  # the coordinator ends, or nobody reads any more
        finally:
            await pull.close()

    async def _blob(self, request: web.Request) -> web.Response:
        data = await asyncio.to_thread(self._hub.models.read_chunk, request.match_info["sha256"])
        size = len(data)
        start = offset(request.headers.get("Range", ""), size)
        headers = {"Content-Range": f"bytes {start}-{size - 1}/{size}"} if start else {}
        return web.Response(
            body=data[start:] if start else data, status=206 if start else 200, headers=headers
        )

    # ------------------------------------------------------------------ the control connection

    async def _control(self, request: web.Request) -> web.StreamResponse:
        member = self._member(request)
        socket = web.WebSocketResponse(
            max_msg_size=MAX_MESSAGE, autoping=True, timeout=self._deadlines.close
        )
        await socket.prepare(request)
        watch_peer(socket.get_extra_info("socket"))
        line = _Line(request, socket, self._deadlines, member.name or member.device_id)
        self._lines.add(line)
        try:
            await self._speak(line, member, _remote(request))
        except (FleetError, OSError) as exc:
            log.info("control connection of %s ended: %s", member.device_id, exc)
            if isinstance(exc, FleetError):
                await line.refuse(exc)
        finally:
            self._lines.discard(line)
            await line.close()
        return socket

    async def _speak(self, line: _Line, member: Member, remote: str) -> None:
        """Everything from the hello to the goodbye.

        Raises:
            FleetError: what the peer did wrong; it is told.
            OSError: the connection broke.
        """
        hello = await self._hello(line, member)
        await self._hub.clones.admit(member.device_id, hello)
        membership, epoch = self._hub.push.for_newcomer(hello)
        await line.send(Welcome(PROTOCOL_VERSION, __version__, self._hub.fleet_id, membership))
        session = self._hub.attach(member.spki, hello, remote, send=line.send, close=line.close)
        try:
            session.told = epoch
            self._hub.push.catch_up(session)
            while (text := await line.receive(self._deadlines.silence)) is not None:
                message = self._decode(text)
                self._trust.require(member.spki)
                self._hub.received(session, message)
                if isinstance(message, Heartbeat):
                    await line.send_text("")
                elif isinstance(message, Goodbye):
                    return  # closing tells the member that it was heard
        finally:
            self._hub.detach(session)

    async def _hello(self, line: _Line, member: Member) -> MemberHello:
        text = await line.receive(self._deadlines.hello)
        if text is None:
            raise PeerClosed(f"{member.name} has left without a word.")
        try:
            first = msgspec.json.decode(text, type=_AnyHello)
        except BROKEN_JSON as exc:
            raise Malformed("The PC did not introduce itself.") from exc
        if first.protocol != PROTOCOL_VERSION:
            raise _mismatch(member.name, first.protocol, first.app)
        hello = self._decode(text)
        assert isinstance(hello, MemberHello)
        if hello.device_id != member.device_id:
            raise NotAMember("The PC claims another device's id.")
        return hello

    def _decode(self, text: str) -> FromMember:
        try:
            return self._decoder.decode(text)
        except BROKEN_JSON as exc:
            raise Malformed(f"A message of the control connection is malformed: {exc}.") from exc


@dataclass(frozen=True, eq=False)
class _Call:
    """A request being answered, with the key of the member that asked."""

    request: web.Request
    spki: str


class _Line:
    """This side's end of one control connection; every wait on it is bounded."""

    def __init__(
        self, request: web.Request, socket: web.WebSocketResponse, deadlines: Deadlines, name: str
    ) -> None:
        self._request = request
        self._socket = socket
        self._deadlines = deadlines
        self._name = name
        self._end: asyncio.Future[None] | None = None

    async def receive(self, deadline: float) -> str | None:
        """The next message, or None when the peer has closed.

        Raises:
            PeerTimeout: no whole message within ``deadline`` seconds.
            Malformed: bytes instead of text, or more than a message may have.
        """
        try:
            async with asyncio.timeout(deadline):
                raw = await self._socket.receive()
        except TimeoutError as exc:
            raise PeerTimeout(f"Nothing was heard of {self._name} for too long.") from exc
        if raw.type is WSMsgType.TEXT:
            return str(raw.data)
        if raw.type in (WSMsgType.BINARY, WSMsgType.ERROR):
            raise Malformed(f"{self._name} sent something that is no message.")
        return None

    async def send(self, message: FromHub) -> None:
        """Write one message.

        Raises:
            PeerTimeout: the peer does not read.
            OSError: the connection is gone.
        """
        await self.send_text(msgspec.json.encode(message).decode())

    async def send_text(self, text: str) -> None:
        """Write one message as it is; raises as ``send`` does."""
        try:
            async with asyncio.timeout(self._deadlines.send):
                await self._socket.send_str(text)
        except TimeoutError as exc:
            raise PeerTimeout(f"{self._name} does not read its messages.") from exc

    async def refuse(self, error: FleetError) -> None:
        """Say why, and close."""
        with contextlib.suppress(FleetError, OSError, TimeoutError):
            async with asyncio.timeout(self._deadlines.close):
                await self.send(Refuse(error.code, error.message, error.remedy))
        await self.close(WSCloseCode.POLICY_VIOLATION)

    async def close(self, code: int = WSCloseCode.OK) -> None:
        """End the connection: politely if the peer plays along, but end it. Never raises.

        Several may want it at once (the hub, the handler, the server's end): the first one's way
        is the way it goes.
        """
        if self._end is None:
            self._end = asyncio.ensure_future(self._close(code))
        await asyncio.shield(self._end)

    async def _close(self, code: int) -> None:
        try:
            async with asyncio.timeout(self._deadlines.close):
                await self._socket.close(code=code)
        except (OSError, TimeoutError, RuntimeError) as exc:
            log.debug("%s did not close properly: %r", self._name, exc)
        finally:
            if self._request.transport is not None and not self._request.transport.is_closing():
                self._request.transport.abort()


def _json(value: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _remote(request: web.Request) -> str:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return str(peer[0]) if peer else ""


def _mismatch(who: str, protocol: int, app: str) -> VersionMismatch:
    theirs = f"{who} speaks protocol {protocol}{f' (fleetapp {app})' if app else ''}"
    return VersionMismatch(
        f"{theirs}, the coordinator protocol {PROTOCOL_VERSION} (fleetapp {__version__})."
    )


def _already_authorized(_: web.Request) -> None:
    """The gate has checked the member's certificate."""
