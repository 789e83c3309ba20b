"""Somebody between a joining PC and its coordinator learns nothing and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from fleetapp.agent.joining import join
from fleetapp.errors import FleetError, Malformed, UsedUpJoinCode, WrongFleet
from fleetapp.fleet import joincode
from fleetapp.fleet.enrolment import FleetInfo, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.platform.paths import Paths
from tests.support.control_server import ControlServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "ours") as running:
        yield running


class Between:
    """Passes bytes on, keeps a copy, and changes one of them if told to."""

    def __init__(self, port: int, change: int | None = None) -> None:
        self._target = port
        self._change = change
        self.seen = bytearray()
        self.changed = False
        self.sent = 0
        """Bytes from the joining PC."""
        self.port = 0

    async def accept(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, on = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(self._pump(near, on, spoil=True), self._pump(far, back, spoil=False))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, spoil: bool
    ) -> None:
        try:
            while data := bytearray(await reader.read(1 << 16)):
                self.seen += data
                if spoil:
                    at = -1 if self._change is None else self._change - self.sent
                    if 0 <= at < len(data):
                        data[at] ^= 1
                        self.changed = True
                    self.sent += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def between(server: ControlServer, change: int | None = None) -> AsyncIterator[Between]:
    relay = Between(server.port, change)
    listening = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.port = listening.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listening.close()


async def ask(identity: Identity, code: str, port: int) -> object:
    where = [("127.0.0.1", port)]
    return await join(identity, joincode.decode(code), where, "X-PC", lambda _: None, 5.0, 0.05)


async def test_a_relay_sees_no_secret_no_request_and_no_name(server: ControlServer) -> None:
    anna, code = server.home.newcomer("anna"), server.home.codes.create(hours=1).code
    async with between(server) as relay:
        await ask(anna, code, relay.port)
    secret = joincode.decode(code).secret
    for word in (secret, secret.hex().encode(), b"CERTIFICATE REQUEST", b"X-PC", b"membership"):
        assert word not in relay.seen
    assert len(relay.seen) > 2000, "it did pass through here"


async def test_a_relay_that_changes_a_byte_ends_it(server: ControlServer) -> None:
    code = server.home.codes.create(hours=1, uses=2).code
    async with between(server) as honest:
        await ask(server.home.newcomer("ben"), code, honest.port)
    anna = server.home.newcomer("anna")
    for part in (0.1, 0.4, 0.6, 0.9):
        async with between(server, int(honest.sent * part)) as relay:
            with pytest.raises((FleetError, TimeoutError)):
                await ask(anna, code, relay.port)
            assert relay.changed
    # At worst an answer was lost: the same PC may ask again with the same code.
    await ask(anna, code, server.port)
    assert server.home.codes.views()[0].uses_left == 0


async def test_an_authority_of_its_own_is_noticed_before_anything_is_sent(
    server: ControlServer, tmp_path: Path
) -> None:
    anna, code = server.home.newcomer("anna"), server.home.codes.create(hours=1).code
    async with ControlServer(tmp_path / "mallory") as mallory:
        asked = []
        mallory.home.hub.gate.request = lambda *a: asked.append(a)
        with pytest.raises(WrongFleet):
            await ask(anna, code, mallory.port)
    assert asked == []
    assert server.home.codes.views()[0].uses_left == 1


async def test_a_certificate_for_another_key_is_not_kept(
    server: ControlServer, tmp_path: Path
) -> None:
    """Even a coordinator cannot exchange the key: what it would sign for is another device."""
    home = server.home
    anna, mallory = home.newcomer("anna"), home.newcomer("mallory")
    genuine = home.hub.gate.request

    def swapped(request, source):
        return genuine(msgspec.structs.replace(request, csr=mallory.csr().decode()), source)

    home.hub.gate.request = swapped
    joined = await ask(anna, home.codes.create(hours=1).code, server.port)
    store = FleetStore(Paths(tmp_path / "ours" / "anna"), anna, home.platform)
    with pytest.raises(Malformed, match="another device"):
        store.save(joined.info, joined.leaf, joined.authority, joined.membership)
    assert store.load() is None


async def test_a_replayed_request_admits_nobody_new(server: ControlServer) -> None:
    """Who has copied a request can have a certificate for its key, which he does not have."""
    home = server.home
    anna, mallory = home.newcomer("anna"), home.newcomer("mallory")
    kept = []
    genuine = home.hub.gate.request
    home.hub.gate.request = lambda r, s: (kept.append(r), genuine(r, s))[1]
    code = home.codes.create(hours=1, uses=1).code
    await ask(anna, code, server.port)
    before = dict(home.members)
    reply = genuine(kept[0], "192.0.2.66")
    assert home.members == before
    store = FleetStore(Paths(home.folder.parent.parent / "mallory"), mallory, home.platform)
    with pytest.raises(Malformed, match="another device"):
        store.save(
            FleetInfo(home.fleet.authority.fleet_id, "office", anna.device_id), reply.leaf.encode(),
            home.fleet.authority.certificate_pem, reply.membership,
        )  # fmt: skip
    other = msgspec.structs.replace(kept[0], csr=mallory.csr().decode())
    with pytest.raises(UsedUpJoinCode):
        genuine(other, "192.0.2.66")
