"""The control connection of a member to its hub: found, kept, and found again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import msgspec

from fleetapp.agent.joining import Address, bracket, read_reply
from fleetapp.errors import (
    DownloadFailed,
    FleetError,
    NoHub,
    NotAMember,
    PeerClosed,
    ProtocolError,
    from_code,
)
from fleetapp.fleet import tls
from fleetapp.fleet.control import (
    HEARTBEAT_SECONDS,
    MAX_MESSAGE,
    FromHub,
    FromMember,
    Goodbye,
    Heartbeat,
    MemberHello,
    Refuse,
    Welcome,
)
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.membership import Member
from fleetapp.fleet.trust import TrustList
from fleetapp.platform.keepalive import watch_peer
from fleetapp.platform.network import connect_problem
from fleetapp.types import FleetView

log = logging.getLogger("fleetapp.agent.hublink")

CONNECT_DEADLINE = 5.0
WELCOME_DEADLINE = 5.0
SEND_DEADLINE = 10.0
SILENCE = 15.0
"""The hub answers each heartbeat's ping; longer silence ends the connection (s)."""
AFTER_WAKING = 3.0
"""A hub that lives answers a heartbeat within so long (s)."""
GOODBYE_DEADLINE = 1.0
REST_LIMIT = 30.0
"""A PC that took leave to sleep and is awake so long has not gone to sleep (s)."""
BACKOFF_MIN = 0.1
BACKOFF_MAX = 3.0
"""Between two attempts to connect, give or take a third; a hub that is back waits longer than that
for its members (``hub.models.GRACE``), or what they have kept would be loaded anew (s)."""
STEADY = 5.0
"""A connection that ends sooner counts as a failed attempt (s)."""


REMOVED_REMEDY = (
    "If it was put out, 'fleetapp fleet leave' here and join with a code; if it was revoked, only "
    "an admin can let it in again."
)
"""What to do on a PC that the coordinator does not count as a member any more."""


def removed() -> NotAMember:
    """The error on such a PC."""
    return NotAMember(
        "The coordinator does not count this PC as a member any more.", remedy=REMOVED_REMEDY
    )


class HubLink:
    """Keeps one connection.

    Args:
        credentials: certificate and authority of this node's fleet.
        trust: the signed membership, to know who is a coordinator.
        addresses: asked before each attempt; best first.
        hello, heartbeat: made fresh for each use.
        on_message: awaited in order for every message of the hub.
        on_change: told (connected, sentence).
        silence: seconds without a word of the hub after which it counts as gone.
    """

    def __init__(
        self,
        credentials: Credentials,
        trust: TrustList,
        addresses: Callable[[], Awaitable[list[Address]]],
        hello: Callable[[], MemberHello],
        heartbeat: Callable[[int], Awaitable[Heartbeat]],
        on_message: Callable[[FromHub], Awaitable[None]],
        on_change: Callable[[bool, str], Awaitable[None]],
        silence: float = SILENCE,
    ) -> None:
        self._credentials = credentials
        self._trust = trust
        self._addresses = addresses
        self._hello = hello
        self._heartbeat = heartbeat
        self._on_message = on_message
        self._on_change = on_change
        self._silence = silence
        self.on_refusal: Callable[[FleetError], None] = lambda _: None
        """Told why the hub does not want this PC, before the next attempt."""
        self.removed = False
        """Whether the hub said at the last attempt that this PC is no member any more."""
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._session: aiohttp.ClientSession | None = None
        self._base = ""
        self._hub_name = ""
        self._context = tls.client_context(credentials)
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(FromHub)
        self._kick = asyncio.Event()
        self._due = asyncio.Event()
        self._ended = asyncio.Event()
        self._leaving = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()
        self._calls: set[asyncio.Timeout] = set()
        self._listening: asyncio.Timeout | None = None

    @property
    def address(self) -> str:
        """Where the hub is, or empty while not connected."""
        return self._base if self._socket is not None else ""

    async def run(self) -> None:
        """Connect, serve, reconnect, until ``goodbye`` or for ever."""
        pause = BACKOFF_MIN
        loop = asyncio.get_running_loop()
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE)
        ) as session:
            self._session = session
            while not self._leaving.is_set():
                await self._rest_over()
                since = loop.time()
                try:
                    await self._connect(session)
                    since = loop.time()
                    await self._serve()
                    reason = "The connection to the coordinator ended."
                except FleetError as exc:
                    reason = str(exc)
                except TimeoutError:
                    reason = "The coordinator has gone silent."
                except (aiohttp.ClientError, OSError, ssl.SSLError) as exc:
                    reason = f"The coordinator cannot be reached: {connect_problem(exc)}."
                log.info("%s", reason)
                await self._close()
                if self._leaving.is_set():
                    return
                await self._on_change(False, reason)
                if loop.time() - since > STEADY:
                    pause = BACKOFF_MIN
                self._kick.clear()
                spread = pause * random.uniform(0.7, 1.3)  # noqa: S311 - spreads reconnects, no secret
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(spread):
                        await self._kick.wait()
                pause = min(pause * 2, BACKOFF_MAX)

    def kick(self) -> None:
        """Try again now (the network changed, a hub was discovered)."""
        self._kick.set()

    def beat(self) -> None:
        """Send a heartbeat now: what it says has changed."""
        self._due.set()

    async def rest(self, reason: str) -> None:
        """Take leave before sleep, and stay away until ``awaken`` (or some time awake)."""
        self._awake.clear()
        socket = self._socket
        if socket is None or socket.closed:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_DEADLINE):
                await self.send(Goodbye(reason=reason))
                await socket.close()

    async def awaken(self) -> None:
        """After sleep: whatever was connected is not any more, whether or not it shows."""
        self._awake.set()
        self.kick()
        await self._close()

    async def _rest_over(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_LIMIT):
                await self._awake.wait()
        self._awake.set()

    def renew(self) -> None:
        """Show the leaf that is on disk now on new connections, and try at once."""
        tls.show_leaf(self._context, self._credentials)
        self.kick()

    def woke(self) -> None:
        """This PC has slept: the hub must be heard soon, or the connection is made anew."""
        scope = self._listening
        if scope is not None:
            soon = asyncio.get_running_loop().time() + AFTER_WAKING
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                when = scope.when()
                scope.reschedule(soon if when is None else min(when, soon))
        self.kick()

    async def send(self, message: FromMember) -> None:
        """Write one message; dropped with a log line while not connected."""
        socket = self._socket
        if socket is None or socket.closed:
            log.debug("not connected; dropped %s", type(message).__name__)
            return
        try:
            async with asyncio.timeout(SEND_DEADLINE):
                await socket.send_str(self._encoder.encode(message).decode())
        except (OSError, TimeoutError, aiohttp.ClientError) as exc:
            log.info("sending %s failed: %s", type(message).__name__, exc)

    async def goodbye(self, reason: str) -> None:
        """Tell the hub, wait a moment until it has heard it, and do not connect again."""
        self._leaving.set()
        self._kick.set()
        socket = self._socket
        if socket is None or socket.closed:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_DEADLINE):
                await self.send(Goodbye(reason=reason))
                await self._ended.wait()  # the hub closes when it has heard

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        """A chunk from the hub, from ``offset`` on (a ``ChunkSource``)."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        try:
            async with self._request("GET", f"/blobs/{sha256}", headers=headers) as response:
                if response.status >= 400:
                    await read_reply(response)
                if offset and response.status != 206:
                    raise DownloadFailed("The coordinator did not resume the chunk.")
                async for data in response.content.iter_chunked(1 << 18):
                    yield data
        except aiohttp.ClientError as exc:
            raise PeerClosed(f"The coordinator broke off ({exc or type(exc).__name__}).") from exc

    async def fleet_views(self) -> AsyncIterator[FleetView | None]:
        """The fleet as the hub sees it, now and after each change; None every second without.

        Raises:
            NoHub: not connected, or nothing was heard for too long.
        """
        clock, buffer = asyncio.get_running_loop().time, bytearray()
        heard = clock()
        try:
            async with self._request("GET", "/fleet/events") as response:
                if response.status >= 400:
                    await read_reply(response)
                while clock() - heard < self._silence:
                    try:
                        async with asyncio.timeout(1.0):
                            data = await response.content.readany()
                    except TimeoutError:
                        yield None
                        continue
                    if not data:
                        break
                    heard = clock()
                    buffer += data
                    *lines, rest = buffer.split(b"\n")
                    buffer = bytearray(rest)
                    for line in filter(None, lines):
                        yield msgspec.json.decode(line, type=FleetView)
        except (aiohttp.ClientError, OSError) as exc:
            raise NoHub(f"The coordinator broke off: {connect_problem(exc)}.") from exc
        except msgspec.MsgspecError as exc:
            raise ProtocolError(f"The coordinator sent something unknown: {exc}.") from exc
        raise NoHub("The coordinator has gone silent.")

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, path: str, **more: object
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One HTTP call to the hub over the same trust.

        Raises:
            NoHub: not connected.
            TimeoutError: the hub fell silent on the control connection; it may be frozen, and
                without this an answer would be waited for for ever.
        """
        scope = asyncio.timeout(None)
        self._calls.add(scope)
        try:
            async with scope, self._request(method, path, **more) as response:
                yield response
        finally:
            self._calls.discard(scope)

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, path: str, **more: object
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None or not self._base:
            raise NoHub("The coordinator is not reachable now.")
        async with self._session.request(
            method,
            f"{self._base}{path}",
            ssl=self._context,
            server_hostname=self._hub_name,
            **more,  # type: ignore[arg-type]
        ) as response:
            yield response

    async def _connect(self, session: aiohttp.ClientSession) -> None:
        """Reach the hub at one of its addresses and greet it."""
        failure: Exception = NoHub(
            "No coordinator was found.",
            remedy="Check that it runs and is on this network.",
        )
        out: NotAMember | None = None
        for host, port in await self._addresses():
            for coordinator in self._coordinators():
                try:
                    await self._connect_at(session, host, port, coordinator)
                except aiohttp.WSServerHandshakeError as exc:
                    failure = exc
                    if exc.status == 403:
                        out = removed()
                except TimeoutError:
                    failure = NoHub(f"The coordinator at {host}:{port} does not answer.")
                except (aiohttp.ClientError, OSError) as exc:
                    cause = _tls_cause(exc) or _hung_up(exc)
                    at = f"{host}:{port}"
                    failure = (
                        tls.explain_tls_error(cause, at)
                        if cause
                        else NoHub(
                            f"The coordinator at {at} cannot be reached: {connect_problem(exc)}."
                        )
                    )
                else:
                    self.removed = False
                    return
                await self._close()
        self.removed = out is not None
        raise out or failure  # what the hub says goes before what an old address does not

    async def _connect_at(
        self, session: aiohttp.ClientSession, host: str, port: int, coordinator: Member
    ) -> None:
        name = tls.hostname_of(coordinator.device_id, self._credentials.fleet_id)
        base = f"https://{bracket(host)}:{port}"
        # Not wait_for: until Python 3.12 it swallows a cancellation that comes with the result
        # (python/cpython#86296), and this task would then go on for ever.
        async with asyncio.timeout(CONNECT_DEADLINE):
            self._socket = await session.ws_connect(
                f"{base}/control",
                ssl=self._context,
                server_hostname=name,
                max_msg_size=MAX_MESSAGE,
            )
        watch_peer(self._socket.get_extra_info("socket"))
        self._ended.clear()
        self._check_peer(coordinator.spki)
        self._base, self._hub_name = base, name
        await self._greet()

    def _coordinators(self) -> list[Member]:
        membership = self._trust.membership
        members = membership.members.values() if membership is not None else ()
        return [m for m in members if m.state == "active" and "coordinator" in m.roles]

    def _check_peer(self, expected: str) -> None:
        assert self._socket is not None
        peer = self._socket.get_extra_info("ssl_object")
        if peer is None or tls.peer_spki(peer) != expected:
            raise NotAMember("The PC that answered is not the coordinator of this fleet.")

    async def _greet(self) -> None:
        await self.send(self._hello())
        welcome = await self._receive(WELCOME_DEADLINE)
        if isinstance(welcome, Refuse):
            refusal = from_code(welcome.code, welcome.message, welcome.remedy)
            self.on_refusal(refusal)
            raise refusal
        if not isinstance(welcome, Welcome):
            raise ProtocolError("The coordinator did not greet.")
        await self._on_message(welcome)
        await self._on_change(True, "Connected to the coordinator.")

    async def _serve(self) -> None:
        beats = asyncio.create_task(self._beat())
        try:
            while True:
                try:
                    message = await self._receive(self._silence)
                except TimeoutError:
                    self._break_off_calls()
                    raise
                if message is None:
                    return
                if isinstance(message, Refuse):
                    raise from_code(message.code, message.message, message.remedy)
                await self._on_message(message)
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)

    def _break_off_calls(self) -> None:
        now = asyncio.get_running_loop().time()
        for scope in self._calls:
            scope.reschedule(now)

    async def _receive(self, deadline: float) -> FromHub | None:
        assert self._socket is not None
        while True:
            async with asyncio.timeout(deadline) as self._listening:
                raw = await self._socket.receive()
            if raw.type is aiohttp.WSMsgType.TEXT:
                if not raw.data:
                    continue  # the hub's answer to a heartbeat
                try:
                    return self._decoder.decode(raw.data)
                except msgspec.MsgspecError as exc:
                    raise ProtocolError(f"The coordinator sent something unknown: {exc}.") from exc
            if raw.type in (
                aiohttp.WSMsgType.CLOSE,
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.CLOSING,
                aiohttp.WSMsgType.ERROR,
            ):
                return None

    async def _beat(self) -> None:
        seq = 0
        while True:
            seq += 1
            self._due.clear()
            await self.send(await self._heartbeat(seq))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._due.wait()

    async def _close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1.0):
                    await socket.close()
        self._ended.set()


def _tls_cause(exc: BaseException) -> BaseException | None:
    """What TLS had against a connection, wherever aiohttp has put it.

    In TLS 1.3 the server looks at the client's certificate after the client's handshake is done:
    its refusal arrives with the first read, wrapped as any other broken connection.
    """
    for found in (getattr(exc, "certificate_error", None), getattr(exc, "os_error", None), exc):
        if isinstance(found, ssl.SSLError | ssl.CertificateError):
            return found
    cause = exc.__cause__ or exc.__context__
    return _tls_cause(cause) if cause is not None else None


def _hung_up(exc: BaseException) -> BaseException | None:
    """A connection that was made and then ended without an answer, as a refused certificate's is:
    asyncio's server closes without the alert that would name the reason.
    """
    if isinstance(exc, aiohttp.ClientConnectorError):
        return None  # nobody listens there
    broken = aiohttp.ServerDisconnectedError, ConnectionError
    return ConnectionResetError() if isinstance(exc, broken) else None
