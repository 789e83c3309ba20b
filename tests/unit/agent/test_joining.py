"""A PC finds the one coordinator that its code speaks of, whatever else answers."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from fleetapp.agent.joining import Address, Joined, join, split_address
from fleetapp.errors import (
    BadJoinCode,
    BadRequest,
    ExpiredJoinCode,
    NoHub,
    NotAMember,
    ProtocolError,
    RevokedJoinCode,
    UsedUpJoinCode,
    WrongFleet,
)
from fleetapp.fleet import joincode, tls
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import Membership, add, new_member
from fleetapp.platform.paths import Paths
from tests.support.control_server import ControlServer, Linked
from tests.support.fleet import TestFleet, TestMember


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "ours") as running:
        yield running


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "theirs") as running:
        yield running


@pytest.fixture
def anna(server: ControlServer) -> Identity:
    return server.home.newcomer("anna")


def at(*servers: ControlServer) -> list[Address]:
    return [("127.0.0.1", s.port) for s in servers]


async def ask(
    identity: Identity,
    code: str,
    addresses: list[Address],
    waiting: Callable[[str], None] = lambda _: None,
) -> Joined:
    return await join(
        identity, joincode.decode(code), addresses, "ANNA-PC", waiting, 20.0, poll=0.1
    )


def dead() -> Address:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1", probe.getsockname()[1]


@asynccontextmanager
async def answering(
    fleet: TestFleet, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> AsyncIterator[Address]:
    """Somebody with TLS and no idea of the protocol, or bad intent."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    context = tls.server_context(fleet.enrol("rogue").enrolment.credentials, optional_client=True)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield "127.0.0.1", runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_what_comes_back_makes_a_member(
    server: ControlServer, anna: Identity, tmp_path: Path
) -> None:
    code = server.home.codes.create(hours=1).code
    joined = await ask(anna, code, at(server))
    assert joined.info.name == "office"
    assert joined.info.hub_device == server.home.me.identity.device_id
    assert joined.info.hub_addresses == (f"127.0.0.1:{server.port}",)
    store = FleetStore(Paths(tmp_path / "ours" / "anna"), anna, server.home.platform)
    store.save(joined.info, joined.leaf, joined.authority, joined.membership)
    assert store.load() is not None


async def test_a_large_fleet_is_no_reason_to_cut_its_list_short(
    server: ControlServer, anna: Identity
) -> None:
    people = [server.home.newcomer(f"pc{i}") for i in range(40)]

    def grow(members: Membership) -> Membership:
        for person in people:
            members = add(members, new_member(person.public_key, "x" * 60, 0.0))
        return members

    server.home.hub.change_membership(grow)
    code = server.home.codes.create(hours=1).code
    joined = await ask(anna, code, at(server))
    assert len(joined.membership.payload) > 10_000


@pytest.mark.parametrize("first", ["dead", "foreign", "web page", "garbage", "nested", "flood"])
async def test_whatever_answers_at_another_address_the_right_one_is_found(
    server: ControlServer, other: ControlServer, anna: Identity, first: str, tmp_path: Path
) -> None:
    code = server.home.codes.create(hours=1).code
    if first in ("dead", "foreign"):
        wrong = dead() if first == "dead" else at(other)[0]
        assert (await ask(anna, code, [wrong, *at(server)])).leaf
        return
    body = {
        "web page": b"<html>hello</html>",
        "garbage": b"\xff\x00",
        "nested": b'{"authority": "", "hub_device": "", "x": ' + b"[" * 5000,
        "flood": b" " * (9 << 20),
    }[first]

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, status=404 if first == "web page" else 200)

    async with answering(TestFleet(tmp_path / "rogue"), handler) as wrong:
        assert (await ask(anna, code, [wrong, *at(server)])).leaf


async def test_only_other_fleets_is_said_even_if_others_do_not_answer(
    server: ControlServer, other: ControlServer, anna: Identity
) -> None:
    code = server.home.codes.create(hours=1).code
    with pytest.raises(WrongFleet, match="another fleet"):
        await ask(anna, code, [*at(other), dead()])
    assert len(other.home.members) == 1


async def test_nobody_is_said_with_the_address(server: ControlServer, anna: Identity) -> None:
    code, address = server.home.codes.create(hours=1).code, dead()
    with pytest.raises(NoHub, match=f"127.0.0.1:{address[1]}"):
        await ask(anna, code, [address])
    with pytest.raises(NoHub, match="No coordinator"):
        await ask(anna, code, [])


async def test_the_secret_is_shown_to_nobody_but_the_codes_own_fleet(
    server: ControlServer, anna: Identity, tmp_path: Path
) -> None:
    # Somebody in between answers with the true authority's certificate, which is public, but
    # cannot prove to have its fleet's key.
    seen: list[bytes] = []
    shown = server.home.hub.gate.authority_reply()

    async def handler(request: web.Request) -> web.Response:
        seen.append(await request.read())
        return web.json_response({"authority": shown.authority, "hub_device": shown.hub_device})

    code = server.home.codes.create(hours=1).code
    async with answering(TestFleet(tmp_path / "rogue"), handler) as between:
        with pytest.raises((WrongFleet, ProtocolError)):
            await ask(anna, code, [between])
    secret = joincode.decode(code).secret.hex().encode()
    assert not any(secret in body for body in seen)
    assert len(seen) == 1


async def test_what_the_hub_says_of_the_code_is_final(
    server: ControlServer, other: ControlServer, anna: Identity
) -> None:
    home = server.home
    unknown = joincode.encode(joincode.new(home.fleet.authority.spki))
    with pytest.raises(BadJoinCode, match="does not know"):
        await ask(anna, unknown, [*at(server), *at(other)])
    once = home.codes.create(hours=1, uses=1).code
    await ask(home.newcomer("ben"), once, at(server))
    with pytest.raises(UsedUpJoinCode):
        await ask(anna, once, at(server))
    void = home.codes.create(hours=1)
    home.codes.revoke(void.code_id)
    with pytest.raises(RevokedJoinCode):
        await ask(anna, void.code, at(server))
    old = home.codes.create(hours=1).code
    home.clock.now += 3601
    with pytest.raises(ExpiredJoinCode):
        await ask(anna, old, at(server))


async def test_waits_for_the_admin_and_says_which_id_to_compare(
    server: ControlServer, anna: Identity
) -> None:
    code = server.home.codes.create(hours=1, approve=True).code
    told: list[str] = []
    asked = asyncio.Event()

    def waiting(sentence: str) -> None:
        told.append(sentence)
        asked.set()

    joining = asyncio.create_task(ask(anna, code, at(server), waiting))
    await asyncio.wait_for(asked.wait(), 5)
    assert anna.device_id in told[0]
    server.home.hub.gate.approve(anna.device_id)
    assert (await joining).leaf


async def test_goes_on_waiting_while_the_coordinator_restarts(
    server: ControlServer, anna: Identity
) -> None:
    code = server.home.codes.create(hours=1, approve=True).code
    asked = asyncio.Event()
    joining = asyncio.create_task(ask(anna, code, at(server), lambda _: asked.set()))
    await asyncio.wait_for(asked.wait(), 5)
    await server.stop()
    asked.clear()
    await asyncio.wait_for(asked.wait(), 5)
    server.home.restart()
    server.home.hub.gate.approve(anna.device_id)
    await server.start()
    assert (await joining).leaf


async def test_a_no_of_the_admin_ends_the_waiting(server: ControlServer, anna: Identity) -> None:
    code = server.home.codes.create(hours=1, approve=True).code
    asked = asyncio.Event()
    joining = asyncio.create_task(ask(anna, code, at(server), lambda _: asked.set()))
    await asyncio.wait_for(asked.wait(), 5)
    server.home.hub.gate.decline(anna.device_id)
    with pytest.raises(NotAMember, match="declined"):
        await joining


async def test_waiting_has_an_end(server: ControlServer, anna: Identity) -> None:
    code = server.home.codes.create(hours=1, approve=True).code
    with pytest.raises(TimeoutError):
        await join(anna, joincode.decode(code), at(server), "A", lambda _: None, 0.5)


async def test_two_pcs_that_join_at_once_over_the_wire_both_get_in(server: ControlServer) -> None:
    code = server.home.codes.create(hours=1, uses=10).code
    people = [server.home.newcomer(f"pc{i}") for i in range(6)]
    await asyncio.gather(*(ask(p, code, at(server)) for p in people))
    assert {p.device_id for p in people} < set(server.home.members)
    server.home.restart()
    assert {p.device_id for p in people} < set(server.home.members)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.7:8485", ("192.0.2.7", 8485)),
        (" pc.example:1 ", ("pc.example", 1)),
        ("[2001:db8::1]:65535", ("2001:db8::1", 65535)),
    ],
)
def test_an_address_in_its_parts(text: str, address: Address) -> None:
    assert split_address(text) == address


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_what_is_no_address_says_how_one_looks(text: str) -> None:
    with pytest.raises(BadRequest, match="host:port"):
        split_address(text)


@pytest.mark.parametrize(("days", "word"), [(400, "ahead of"), (-400, "behind")])
async def test_clocks_that_are_far_apart_are_said(
    server: ControlServer, anna: Identity, days: int, word: str
) -> None:
    """The coordinator's certificate is of its own time; the joining PC compares it with its own."""
    home = server.home
    elsewhen = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    home.me.store.save_leaf(home.fleet.authority.issue(home.me.identity.csr(), now=elsewhen))
    await server.stop()
    await server.start()

    now = time.time()
    with pytest.MonkeyPatch.context() as patch:
        # not the clock that the server reads in this process
        there = types.SimpleNamespace(time=lambda: now + days * 86_400)
        patch.setattr("fleetapp.agent.joining.time", there)
        with pytest.raises(NotAMember) as caught:
            await ask(anna, home.codes.create(hours=1).code, at(server))
    assert f"400 days {word} the coordinator's" in caught.value.message
    assert "Set date and time" in caught.value.remedy


@pytest.mark.parametrize("hours", [-25, 25])
async def test_a_clock_that_is_a_day_wrong_is_no_hindrance(
    server: ControlServer, anna: Identity, hours: int, tmp_path: Path
) -> None:
    """As a PC whose clock is so many hours ahead sees the coordinator's new certificates."""
    home = server.home
    then = dt.datetime.now(dt.UTC) - dt.timedelta(hours=hours)
    issue = home.fleet.authority.issue
    object.__setattr__(home.hub.gate._authority, "issue", lambda csr: issue(csr, now=then))
    home.me.store.save_leaf(issue(home.me.identity.csr(), now=then))
    await server.stop()
    await server.start()
    joined = await ask(anna, home.codes.create(hours=1).code, at(server))
    store = FleetStore(Paths(tmp_path / "ours" / "anna"), anna, home.platform)
    enrolment = store.save(joined.info, joined.leaf, joined.authority, joined.membership)
    async with Linked(server, TestMember(anna, store, enrolment)) as linked:
        await linked.until_connected()
