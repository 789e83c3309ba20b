"""The hub's mutually authenticated front: joining, the control connection, chunks, and the API.

A connection without a client certificate reaches nothing but ``/join``; one with a certificate
of another fleet does not get past the handshake. Every request's key is checked against the
signed membership, not only its certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from fleetapp import __version__
from fleetapp.api.errors import error_middleware
from fleetapp.api.openai import add_openai_routes
from fleetapp.errors import (
    BadRequest,
    FleetError,
    Malformed,
    NotAMember,
    PeerTimeout,
    VersionMismatch,
)
from fleetapp.fleet import tls
from fleetapp.fleet.control import (
    GONE_AFTER,
    MAX_MESSAGE,
    FromHub,
    FromMember,
    Heartbeat,
    JoinRequest,
    MemberHello,
    Refuse,
    Welcome,
)
from fleetapp.fleet.membership import Member
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.hub import Hub
from fleetapp.types import PROTOCOL_VERSION

log = logging.getLogger("fleetapp.api.control")

HELLO_DEADLINE = 5.0
SEND_DEADLINE = 10.0
MAX_JOIN_BODY = 64 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ControlApi:
    """Routes of the control port.

    Args:
        hub: what answers.
        trust: who is a member.
    """

    def __init__(self, hub: Hub, trust: TrustList) -> None:
        self._hub = hub
        self._trust = trust
        self._decoder = msgspec.json.Decoder(FromMember)
        self._encoder = msgspec.json.Encoder()

    def app(self) -> web.Application:
        """An aiohttp application to be served behind ``tls.server_context``."""
        app = web.Application(
            middlewares=[error_middleware, self._gate],
            client_max_size=MAX_JOIN_BODY,
        )
        app.router.add_get("/join/authority", self._authority)
        app.router.add_post("/join/request", self._join)
        app.router.add_get("/control", self._control)
        app.router.add_get("/blobs/{sha256}", self._blob)
        app.router.add_get("/fleet", self._fleet)
        members = web.Application(client_max_size=16 * 2**20)
        add_openai_routes(members, self._hub.router, _already_authorized)
        app.add_subapp("/api", members)
        return app

    @web.middleware
    async def _gate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.startswith("/join/"):
            self._member(request)
        return await handler(request)

    def _member(self, request: web.Request) -> Member:
        ssl_object = request.transport.get_extra_info("ssl_object") if request.transport else None
        spki = tls.peer_spki(ssl_object) if ssl_object is not None else None
        if spki is None:
            raise NotAMember("This address serves members of the fleet only.")
        return self._trust.require(spki)

    async def _authority(self, _: web.Request) -> web.Response:
        return _json(self._hub.gate.authority_reply())

    async def _join(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(HELLO_DEADLINE):
                body = await request.read()
            ask = msgspec.json.decode(body, type=JoinRequest)
        except TimeoutError as exc:
            raise PeerTimeout("The join request did not arrive in time.") from exc
        except msgspec.MsgspecError as exc:
            raise BadRequest(f"The join request is malformed: {exc}.") from exc
        if ask.protocol != PROTOCOL_VERSION:
            raise _mismatch("the joining PC", ask.protocol, "")
        # On the loop and not in a thread: two PCs that join at once must not both extend the same
        # membership list; a few milliseconds of signing disturb nobody.
        return _json(self._hub.gate.request(ask, _remote(request)))

    async def _fleet(self, _: web.Request) -> web.Response:
        return _json(self._hub.view())

    async def _blob(self, request: web.Request) -> web.Response:
        data = await asyncio.to_thread(self._hub.read_chunk, request.match_info["sha256"])
        size = len(data)
        offset = _offset(request.headers.get("Range", ""), size)
        headers = {"Content-Range": f"bytes {offset}-{size - 1}/{size}"} if offset else {}
        return web.Response(
            body=data[offset:] if offset else data, status=206 if offset else 200, headers=headers
        )

    # ------------------------------------------------------------------ the control connection

    async def _control(self, request: web.Request) -> web.StreamResponse:
        member = self._member(request)
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, autoping=True, timeout=2.0)
        await socket.prepare(request)
        try:
            hello = await self._hello(socket)
        except FleetError as exc:
            await self._refuse(socket, exc)
            return socket
        if hello.device_id != member.device_id:
            await self._refuse(socket, NotAMember("The PC claims another device's id."))
            return socket

        async def send(message: FromHub) -> None:
            try:
                async with asyncio.timeout(SEND_DEADLINE):
                    await socket.send_str(self._encoder.encode(message).decode())
            except TimeoutError as exc:
                raise PeerTimeout(f"{member.name} does not read its messages.") from exc

        async def close() -> None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(socket.close(), 2.0)

        await send(
            Welcome(
                protocol=PROTOCOL_VERSION,
                app=__version__,
                fleet=self._hub.fleet_id,
                membership=self._hub.signed_membership,
            )
        )
        session = self._hub.attach(member.spki, hello, _remote(request), send=send, close=close)
        try:
            while True:
                message = await self._receive(socket, GONE_AFTER * 2)
                if message is None:
                    break
                self._trust.require(member.spki)
                self._hub.received(session, message)
                if isinstance(message, Heartbeat):
                    await socket.send_str("")
        except (FleetError, OSError) as exc:
            log.info("control connection of %s ended: %s", member.device_id, exc)
            if isinstance(exc, FleetError):
                await self._refuse(socket, exc)
        finally:
            self._hub.detach(session)
        return socket

    async def _hello(self, socket: web.WebSocketResponse) -> MemberHello:
        hello = await self._receive(socket, HELLO_DEADLINE)
        if not isinstance(hello, MemberHello):
            raise Malformed("The PC did not introduce itself.")
        if hello.protocol != PROTOCOL_VERSION:
            raise _mismatch(hello.name, hello.protocol, hello.app)
        return hello

    async def _receive(self, socket: web.WebSocketResponse, deadline: float) -> FromMember | None:
        try:
            raw = await asyncio.wait_for(socket.receive(), deadline)
        except TimeoutError as exc:
            raise PeerTimeout("Nothing was heard for too long.") from exc
        if raw.type is not WSMsgType.TEXT:
            return None
        try:
            return self._decoder.decode(raw.data)
        except msgspec.MsgspecError as exc:
            raise Malformed(f"A message of the control connection is malformed: {exc}.") from exc

    async def _refuse(self, socket: web.WebSocketResponse, error: FleetError) -> None:
        message = Refuse(code=error.code, message=error.message, remedy=error.remedy)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(2.0):
                await socket.send_str(self._encoder.encode(message).decode())
                await socket.close(code=WSCloseCode.POLICY_VIOLATION)


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


def _offset(header: str, size: int) -> int:
    """Start of a ``bytes=N-`` range; 0 without one.

    Raises:
        BadRequest: another form of range, or beyond the end.
    """
    if not header:
        return 0
    value = header.removeprefix("bytes=").removesuffix("-")
    if not value.isdecimal() or int(value) >= size:
        raise BadRequest(f"The range '{header}' cannot be served.")
    return int(value)


def _already_authorized(_: web.Request) -> None:
    """The gate has checked the member's certificate."""
