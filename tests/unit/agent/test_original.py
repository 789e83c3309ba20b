"""Only the holder of this PC's own key is taken for its original."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fleetapp.agent.original import Place, find_original
from fleetapp.fleet.peer import Peer
from fleetapp.platform.fake import FakePlatform
from tests.support.control_server import ControlServer


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "ours") as running:
        yield running


class Found:
    """A search that has found these."""

    def __init__(self, *peers: Peer) -> None:
        self.peers = peers

    def found(self) -> tuple[Peer, ...]:
        return self.peers

    async def wait_for(self, predicate: Callable[[tuple[Peer, ...]], bool], _: float) -> bool:
        return predicate(self.peers)


def announced(server: ControlServer, *ports: int, role: str = "coordinator") -> Found:
    home = server.home
    fleet = home.fleet.authority.fleet_id[:8]
    me = home.me.identity.device_id
    return Found(*(Peer(me, fleet, role, 1, port, ("127.0.0.1",)) for port in ports))


async def test_the_one_that_has_the_same_key_is_found(server: ControlServer) -> None:
    home = server.home
    found = await find_original(home.me.identity, home.trust, announced(server, 1, server.port))
    assert found == [("127.0.0.1", server.port)]


async def test_nobody_keeps_a_coordinator_from_starting_by_saying_so(
    server: ControlServer, tmp_path: Path
) -> None:
    home = server.home
    async with ControlServer(tmp_path / "mallory") as mallory:
        # It shows the true authority and this PC's id, both public, and has another key.
        mallory.home.hub.gate._authority = home.fleet.authority
        mallory.home.hub.gate._device = home.me.identity.device_id
        for search in (announced(server, mallory.port), announced(server, 1), announced(server, 0)):
            assert await find_original(home.me.identity, home.trust, search) == []
    # A member of the fleet has a leaf of its own and not this PC's.
    eve = home.enrol("eve")
    await server.stop()
    await server.start(eve.enrolment.credentials)
    assert await find_original(
        home.me.identity, home.trust, announced(server, server.port)
    ) == []  # fmt: skip
    assert await find_original(
        home.me.identity, home.trust, announced(server, server.port, role="member")
    ) == []  # fmt: skip


def test_another_folder_or_another_pc_is_another_place(tmp_path: Path) -> None:
    file, home = tmp_path / "place", tmp_path / "state"
    here = Place(file, home, FakePlatform())
    assert not here.is_the_same, "never noted: it may be a copy"
    here.note()
    assert Place(file, home, FakePlatform()).is_the_same
    assert not Place(file, tmp_path / "copy", FakePlatform()).is_the_same
    assert not Place(file, home, FakePlatform(facts=("another",))).is_the_same
    file.write_bytes(b"\xff")
    assert not here.is_the_same
    here.note()
    assert here.is_the_same
