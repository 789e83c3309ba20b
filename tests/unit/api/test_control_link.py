"""A member's own link against the coordinator's control server: it finds its way back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import socket
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from fleetapp.agent import hublink
from fleetapp.agent.downloads import fetch_shard
from fleetapp.errors import NoHub, NotAMember, NotFound, PeerClosed
from fleetapp.fleet.control import MembershipUpdate, Welcome
from fleetapp.fleet.membership import reinstate, rename, revoke, set_roles, sign_membership
from fleetapp.hub.hub import LEFT
from fleetapp.models.store import ShardStore
from fleetapp.types import PROTOCOL_VERSION, FleetView
from tests.support.control_server import DEADLINE, ControlServer, Linked
from tests.support.fleet import TestFleet, TestMember
from tests.support.relay import Relay


def dead_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_connects_greets_and_beats(server: ControlServer, anna: TestMember) -> None:
    hub = server.home.hub
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        assert isinstance(linked.heard[0], Welcome)
        assert linked.link.address == server.base
        await server.until(lambda: [c.name for c in hub.candidates()] == ["anna"])
        linked.contribute = False
        await server.until(lambda: hub.candidates() == ())
    await server.until(lambda: server.online() == set())


async def test_a_change_of_mind_does_not_wait_for_the_next_heartbeat(
    server: ControlServer, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hublink, "HEARTBEAT_SECONDS", 3600.0)
    hub = server.home.hub
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await server.until(lambda: [c.name for c in hub.candidates()] == ["anna"])
        linked.contribute = False
        linked.link.beat()
        await server.until(lambda: hub.candidates() == ())


async def test_a_member_watches_the_fleet_by_change(
    server: ControlServer, anna: TestMember
) -> None:
    def state(view: FleetView | None, name: str) -> str:
        return next((n.state for n in view.nodes if n.name == name), "") if view else ""

    ben = server.home.enrol("ben")
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        async with asyncio.timeout(DEADLINE), aclosing(linked.link.fleet_views()) as views:
            assert state(await anext(views), "ben") == "offline"
            async with Linked(server, ben):
                while state(await anext(views), "ben") != "online":
                    pass
            while state(await anext(views), "ben") != "offline":
                pass
            await server.stop()
            with pytest.raises(NoHub):
                async for _ in views:
                    pass


async def test_a_stranger_watches_nothing(server: ControlServer, anna: TestMember) -> None:
    async with Linked(server, anna) as linked:
        with pytest.raises(NoHub):
            await anext(linked.link.fleet_views())
        await linked.until_connected()
        server.home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
        with pytest.raises((NoHub, NotAMember)):
            async for _ in linked.link.fleet_views():
                pass


async def test_comes_back_after_the_coordinator_restarts(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await server.stop()
        await linked.until(lambda: not linked.connected)
        assert linked.link.address == ""
        server.home.restart()
        await server.start()
        await linked.until_connected()
        await server.until(lambda: server.online() == {"anna"})


async def test_a_kick_tries_again_at_once(server: ControlServer, anna: TestMember) -> None:
    await server.stop()
    async with Linked(server, anna) as linked:
        # Long enough for the pauses between attempts to have become long.
        await linked.until(lambda: len(linked.said) >= 4)
        await server.start()
        linked.link.kick()
        await asyncio.wait_for(linked.until_connected(), 2)


async def test_a_dead_address_before_the_right_one_does_no_harm(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna, dead_port(), server.port) as linked:
        await linked.until_connected()


async def test_an_address_that_accepts_and_says_nothing_does_no_harm(
    server: ControlServer, anna: TestMember
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        async with Linked(server, anna, mute.getsockname()[1], server.port) as linked:
            await linked.until(lambda: linked.connected, 3 * DEADLINE)


async def test_nobody_at_home_is_said_with_the_address(
    server: ControlServer, anna: TestMember
) -> None:
    port = dead_port()
    async with Linked(server, anna, port) as linked:
        assert f"127.0.0.1:{port}" in await linked.until_told("cannot be reached")
        with pytest.raises(NoHub):
            async with linked.link.request("GET", "/fleet"):
                pass


@pytest.mark.parametrize("protocol", [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
async def test_another_version_is_told_with_both_sides(
    server: ControlServer, anna: TestMember, protocol: int
) -> None:
    linked = Linked(server, anna)
    linked.protocol = protocol
    async with linked:
        reason = await linked.until_told("protocol")
    assert f"anna speaks protocol {protocol}" in reason
    assert f"the coordinator protocol {PROTOCOL_VERSION}" in reason
    assert "Update the older of the two." in reason
    assert not any(on for on, _ in linked.said)


async def test_a_member_that_plays_coordinator_is_not_believed(
    server: ControlServer, anna: TestMember
) -> None:
    mallory = server.home.enrol("mallory")
    await server.stop()
    await server.start(mallory.enrolment.credentials)
    async with Linked(server, anna) as linked:
        reason = await linked.until_told("another one")
    assert f"127.0.0.1:{server.port}" in reason
    assert server.home.hub.registry.sessions() == ()


async def test_another_fleets_coordinator_is_told_apart(
    server: ControlServer, tmp_path: Path
) -> None:
    foreign = TestFleet(tmp_path / "other")
    eve = foreign.enrol("eve")
    # Eve's own list must name a coordinator, or she would look for none.
    foreign.membership = set_roles(foreign.membership, eve.identity.device_id, ("coordinator",))
    linked = Linked(server, eve)
    linked.trust.update(sign_membership(foreign.membership, foreign.authority))
    async with linked:
        reason = await linked.until_told("another fleet")
    assert f"127.0.0.1:{server.port} belongs to another fleet" in reason


async def test_an_expired_certificate_is_told_as_a_refusal(server: ControlServer) -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=90)
    old = server.home.fleet.enrol("old", issued=past)
    async with Linked(server, old) as linked:
        await linked.until_told("may have refused this PC")


async def test_one_that_is_no_member_any_more_is_told_and_comes_back_when_let_in(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        device = anna.identity.device_id
        server.home.hub.change_membership(lambda m: revoke(m, device))
        await linked.until_told("removed from the fleet")
        await linked.until_told("does not count this PC as a member")
        server.home.hub.change_membership(lambda m: reinstate(m, device))
        linked.link.kick()
        await linked.until_connected()


async def test_a_change_of_mind_is_heard_at_once(
    server: ControlServer, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetapp.agent.hublink.HEARTBEAT_SECONDS", 60.0)
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await server.until(lambda: [c.name for c in server.home.hub.candidates()] == ["anna"])
        linked.contribute = False
        linked.link.beat()
        await asyncio.wait_for(server.until(lambda: server.home.hub.candidates() == ()), 2)


async def test_it_stays_away_in_sleep_and_comes_back_at_once(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await linked.link.rest("This PC goes to sleep.")
        await asyncio.wait_for(server.until(lambda: server.online() == set()), 2)
        attempts = len(linked.said)
        await asyncio.sleep(
            0.5
        )  # the first attempts of a link that is not asleep come in this time
        assert len(linked.said) <= attempts + 1
        assert not linked.connected
        await linked.link.awaken()
        await asyncio.wait_for(linked.until_connected(), 2)


async def test_who_was_not_told_of_sleep_connects_anew_when_it_wakes(
    server: ControlServer, anna: TestMember
) -> None:
    """The hub has given the connection up; this end could wait for minutes to hear of it."""
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        greetings = sum(connected for connected, _ in linked.said)
        await linked.link.awaken()
        await asyncio.wait_for(
            linked.until(lambda: sum(on for on, _ in linked.said) > greetings), 2
        )


async def test_who_took_leave_and_did_not_sleep_comes_back(
    server: ControlServer, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetapp.agent.hublink.REST_LIMIT", 0.5)
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await linked.link.rest("This PC goes to sleep.")
        await linked.until(lambda: not linked.connected)
        await linked.until_connected()


async def test_hears_of_changes(server: ControlServer, anna: TestMember) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        server.home.hub.change_membership(lambda m: rename(m, anna.identity.device_id, "DESK"))
        await linked.until(lambda: isinstance(linked.heard[-1], MembershipUpdate))
        assert linked.trust.epoch == server.home.trust.epoch


async def test_leaving_is_heard_before_the_link_is_gone(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        await asyncio.wait_for(linked.link.goodbye(LEFT), 3)
        assert anna.identity.device_id not in server.home.members
        await asyncio.wait_for(linked._task, 3)
        assert linked.said[-1] == (True, "Connected to the coordinator."), "and nothing after it"


async def test_a_goodbye_without_a_connection_waits_for_nobody(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna, dead_port()) as linked:
        await linked.until(lambda: bool(linked.said))
        await asyncio.wait_for(linked.link.goodbye("shutting down"), 1)
        await asyncio.wait_for(linked._task, 3)


async def test_a_frozen_coordinator_ends_the_connection_and_the_calls(
    server: ControlServer, anna: TestMember
) -> None:
    sha = server.shard().hashes[0]
    with _held_chunks(server) as begun:
        async with (
            Relay(server.port) as network,
            Linked(server, anna, network.port, silence=3.0) as linked,
        ):
            await linked.until_connected()
            call = asyncio.create_task(_status(linked, f"/blobs/{sha}"))
            await asyncio.wait_for(begun.wait(), 5)
            # As long as heartbeats are answered, a call may take its time.
            await asyncio.wait({call}, timeout=3.5)
            assert not call.done()
            assert linked.connected
            network.freeze()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call, 5)
            await linked.until_told("silent")


async def _status(linked: Linked, path: str) -> int:
    async with linked.link.request("GET", path) as response:
        return response.status


@contextlib.contextmanager
def _held_chunks(server: ControlServer) -> Iterator[asyncio.Event]:
    """Chunks are asked for and not given; the event says that one was."""
    hub, reading = server.home.hub.models, server.home.hub.models.read_chunk
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def held(sha256: str) -> bytes:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(30)
        return reading(sha256)

    hub.read_chunk = held  # type: ignore[method-assign]
    try:
        yield begun
    finally:
        go_on.set()


# ------------------------------------------------------------------ chunks over the link


async def test_a_shard_comes_over_the_link(
    server: ControlServer, anna: TestMember, tmp_path: Path
) -> None:
    shard = server.shard()
    store = ShardStore(tmp_path / "here")
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        assembly = store.assembly(shard.payload, b"signature", "ab" * 32)
        seen: list[int] = []

        async def report(done: int, _: int) -> None:
            seen.append(done)

        await fetch_shard(assembly, linked.link, report)
    assert store.verify(shard.digest) == []
    assert seen[-1] == shard.manifest.size


async def test_a_chunk_is_resumed_over_the_link(server: ControlServer, anna: TestMember) -> None:
    shard = server.shard()
    sha, data = max(shard.chunks.items(), key=lambda item: len(item[1]))
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        got = b"".join([part async for part in linked.link.read(sha, 1000)])
    assert got == data[1000:]


async def test_a_chunk_that_the_hub_lacks_is_its_error(
    server: ControlServer, anna: TestMember
) -> None:
    async with Linked(server, anna) as linked:
        await linked.until_connected()
        with pytest.raises(NotFound):
            async for _ in linked.link.read("0" * 64, 0):
                pass


async def test_a_connection_that_breaks_while_a_chunk_is_sent_is_a_closed_peer(
    server: ControlServer, anna: TestMember
) -> None:
    sha = server.shard().hashes[0]
    with _held_chunks(server) as begun:
        async with Relay(server.port) as network, Linked(server, anna, network.port) as linked:
            await linked.until_connected()

            async def read() -> None:
                async for _ in linked.link.read(sha, 0):
                    pass

            reading = asyncio.create_task(read())
            await asyncio.wait_for(begun.wait(), 5)
            network.down()  # for good, as aiohttp tries a broken GET once more by itself
            with pytest.raises(PeerClosed):
                await asyncio.wait_for(reading, 5)


async def test_a_download_survives_a_break_in_the_middle(
    server: ControlServer, anna: TestMember, tmp_path: Path
) -> None:
    shard = server.shard(chunks=40)
    store = ShardStore(tmp_path / "here")
    async with Relay(server.port) as network, Linked(server, anna, network.port) as linked:
        await linked.until_connected()
        cut_at = [shard.manifest.size // 3, 2 * shard.manifest.size // 3]

        async def report(done: int, _: int) -> None:
            if cut_at and done >= cut_at[0]:
                cut_at.pop(0)
                network.cut()

        assembly = store.assembly(shard.payload, b"signature", "ab" * 32)
        async with asyncio.timeout(30):
            await fetch_shard(assembly, linked.link, report)
    assert store.verify(shard.digest) == []
    assert network.carried < 1.5 * shard.manifest.size, "not all of it was sent again"
