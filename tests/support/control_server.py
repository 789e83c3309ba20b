"""A coordinator's real control server on 127.0.0.1, and who connects to it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

from fleetapp.agent.hublink import HubLink
from fleetapp.agent.pc import Bound
from fleetapp.api.control import ControlApi, Deadlines
from fleetapp.api.serve import listen
from fleetapp.fleet import tls
from fleetapp.fleet.control import (
    FromHub,
    FromMember,
    Heartbeat,
    MemberHello,
    Refuse,
    Welcome,
)
from fleetapp.fleet.enrolment import Credentials
from fleetapp.types import PROTOCOL_VERSION
from tests.support.fleet import TestMember
from tests.support.hubs import TestHub, hello
from tests.support.shards import TestShard, make_shard

DEADLINE = 10.0


class ControlServer:
    """Use as an async context manager; ``stop`` and ``start`` again keep the port."""

    def __init__(
        self, root: Path, deadlines: Deadlines | None = None, idle: float | None = None
    ) -> None:
        self.home = TestHub(root)
        self._deadlines = deadlines
        self._idle = idle
        self._bound: Bound | None = None
        self.port = 0

    async def __aenter__(self) -> ControlServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, credentials: Credentials | None = None) -> None:
        """Listen; with other credentials than the coordinator's own, as somebody else."""
        home = self.home
        context = tls.server_context(
            credentials or home.enrolment.credentials, optional_client=True
        )
        app = ControlApi(home.hub, home.trust, self._deadlines).app()
        more = {} if self._idle is None else {"idle": self._idle}
        self._bound = await listen(app, "127.0.0.1", self.port, "control_port", context, **more)
        self.port = self._bound.port
        await home.hub.start()

    async def stop(self) -> None:
        bound, self._bound = self._bound, None
        if bound is not None:
            await self.home.hub.stop()
            await bound.close()

    @property
    def base(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def hostname(self) -> str:
        return self.home.me.hostname

    @property
    def folder(self) -> Path:
        """Where the library keeps what it has split."""
        return self.home.hub.models._library.shards.root

    def shard(self, chunks: int = 4) -> TestShard:
        """Put a shard into the hub's library, as if it had split a model."""
        made = make_shard(self.folder.parent / "made", chunks)
        self.home.hub.models._library.shards.adopt(
            self.folder.parent / "made", made.payload, b"signature", "ab" * 32
        )
        return made

    async def until(self, true: Callable[[], bool], deadline: float = DEADLINE) -> None:
        """Wait for a change of the hub after which ``true`` holds."""
        event = self.home.hub.listen()
        try:
            async with asyncio.timeout(deadline):
                while not true():
                    event.clear()
                    await event.wait()
        finally:
            self.home.hub.unlisten(event)

    def online(self) -> set[str]:
        return {n.name for n in self.home.hub.view().nodes if n.state == "online"}


class Caller:
    """An HTTP client with some certificate or none."""

    def __init__(self, server: ControlServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE))

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def call(
        self, path: str, method: str = "GET", data: object = None, **headers: str
    ) -> Answer:
        async with self.session.request(
            method,
            f"{self._server.base}{path}",
            ssl=self._context,
            server_hostname=self._server.hostname,
            data=data,
            headers=headers,
        ) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        return await self.session.ws_connect(
            f"{self._server.base}/control",
            ssl=self._context,
            server_hostname=self._server.hostname,
        )


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(msgspec.json.decode(self.body)["error"]["code"])

    @property
    def message(self) -> str:
        return str(msgspec.json.decode(self.body)["error"]["message"])


def as_member(server: ControlServer, member: TestMember) -> Caller:
    return Caller(server, tls.client_context(member.enrolment.credentials))


def as_stranger(server: ControlServer) -> Caller:
    """Trusts the fleet but has nothing to show."""
    return Caller(server, tls.pinned_context(server.home.fleet.authority.certificate_pem))


def showing(server: ControlServer, foreign: TestMember) -> ssl.SSLContext:
    """Trusts this fleet and shows a certificate of another."""
    context = tls.pinned_context(server.home.fleet.authority.certificate_pem)
    credentials = foreign.enrolment.credentials
    context.load_cert_chain(credentials.leaf_path, credentials.key_path)
    return context


class Speaker:
    """The member's end of a control connection, spoken by hand."""

    def __init__(self, caller: Caller, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.caller = caller
        self.socket = socket
        self._decoder = msgspec.json.Decoder(FromHub)

    async def say(self, message: FromMember) -> None:
        await self.socket.send_str(msgspec.json.encode(message).decode())

    async def hear(self) -> FromHub | None:
        """The next message; None when the connection has ended."""
        async with asyncio.timeout(DEADLINE):
            while True:
                raw = await self.socket.receive()
                if raw.type is not aiohttp.WSMsgType.TEXT:
                    return None
                if raw.data:
                    return self._decoder.decode(raw.data)

    async def beat(self, seq: int = 1) -> bool:
        """Send a heartbeat; whether it was answered."""
        await self.say(Heartbeat(seq, 1, 1, contribute=True))
        async with asyncio.timeout(DEADLINE):
            raw = await self.socket.receive()
        return raw.type is aiohttp.WSMsgType.TEXT and raw.data == ""

    async def refusal(self) -> Refuse:
        """What the hub says before it closes."""
        last = None
        while (message := await self.hear()) is not None:
            last = message
        assert isinstance(last, Refuse), f"closed without a reason: {last}"
        return last


@contextlib.asynccontextmanager
async def speaking(
    server: ControlServer, member: TestMember, greeting: MemberHello | None = None
) -> AsyncIterator[Speaker]:
    """A member that has greeted; with a greeting of its own nothing is expected of the hub."""
    async with as_member(server, member) as caller:
        speaker = Speaker(caller, await caller.socket())
        await speaker.say(greeting or hello(member.identity))
        if greeting is None:
            assert isinstance(await speaker.hear(), Welcome)
        yield speaker
        await speaker.socket.close()


class Linked:
    """A member's own HubLink, and what it was told."""

    def __init__(
        self, server: ControlServer, member: TestMember, *ports: int, silence: float | None = None
    ) -> None:
        self.said: list[tuple[bool, str]] = []
        self.heard: list[FromHub] = []
        self.news = asyncio.Event()
        self.protocol = PROTOCOL_VERSION
        self.contribute = True
        self._ports = ports or (server.port,)
        self._member = member
        more = {} if silence is None else {"silence": silence}
        self.trust = member.enrolment.trust()
        self.link = HubLink(
            credentials=member.enrolment.credentials,
            trust=self.trust,
            addresses=self._addresses,
            hello=self._hello,
            heartbeat=self._heartbeat,
            on_message=self._on_message,
            on_change=self._on_change,
            **more,
        )

    async def __aenter__(self) -> Linked:
        self._task = asyncio.create_task(self.link.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def connected(self) -> bool:
        return bool(self.said) and self.said[-1][0]

    async def until(self, true: Callable[[], bool], deadline: float = DEADLINE) -> None:
        async with asyncio.timeout(deadline):
            while not true():
                self.news.clear()
                await self.news.wait()

    async def until_connected(self) -> None:
        await self.until(lambda: self.connected)

    async def until_told(self, words: str) -> str:
        """The first reason for not being connected that contains ``words``."""
        await self.until(lambda: any(words in reason for on, reason in self.said if not on))
        return next(reason for on, reason in self.said if not on and words in reason)

    async def _addresses(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", port) for port in self._ports]

    def _hello(self) -> MemberHello:
        return hello(self._member.identity, protocol=self.protocol)

    async def _heartbeat(self, seq: int) -> Heartbeat:
        return Heartbeat(seq, 1, 1, contribute=self.contribute)

    async def _on_message(self, message: FromHub) -> None:
        self.heard.append(message)
        membership = getattr(message, "membership", None)
        if membership is not None:
            self.trust.update(membership)
            self.trust.require(self._member.identity.spki)
        self.news.set()

    async def _on_change(self, connected: bool, reason: str) -> None:
        self.said.append((connected, reason))
        self.news.set()
