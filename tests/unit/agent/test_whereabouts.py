"""Hints about where the coordinator is, in a useful order; nonsense among them harms nobody."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fleetapp.agent.whereabouts import MAX_ADDRESSES, Whereabouts
from fleetapp.fleet.peer import Peer
from fleetapp.types import Role
from tests.support.fleet import TestMember
from tests.support.hubs import TestHub


class Found:
    """What a search has found."""

    def __init__(self, *peers: Peer) -> None:
        self.peers = peers

    def found(self) -> tuple[Peer, ...]:
        return self.peers


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


def peer(home: TestHub, device: str, address: str, role: Role = "coordinator") -> Peer:
    return Peer(device, home.fleet.authority.fleet_id[:8], role, 1, 8485, (address,))


def of(home: TestHub, *peers: Peer, configured: str = "") -> tuple[Whereabouts, TestMember]:
    anna = home.enrol("anna")
    where = Whereabouts(
        anna.identity.device_id,
        msgspec.structs.replace(anna.enrolment.info, hub_addresses=("192.0.2.9:1",)),
        anna.store,
        home.trust,
        Found(*peers),
        lambda: configured,
    )
    return where, anna


def test_what_was_set_comes_first_then_what_is_announced_then_what_is_known(home: TestHub) -> None:
    hub = peer(home, home.me.identity.device_id, "192.0.2.2")
    other = peer(home, "b" * 20, "192.0.2.3", "member")
    foreign = Peer("c" * 20, "zzzzzzzz", "coordinator", 1, 8485, ("192.0.2.4",))
    where, _ = of(home, hub, other, foreign, configured="pc.example:5")
    assert where.coordinator() == [("pc.example", 5), ("192.0.2.2", 8485), ("192.0.2.9", 1)]


def test_only_those_that_the_list_does_not_name_are_strangers(home: TestHub) -> None:
    hub = peer(home, home.me.identity.device_id, "192.0.2.2")
    new = peer(home, "b" * 20, "192.0.2.3")
    where, anna = of(home, hub, new)
    assert where.strangers(lost=False) == [("192.0.2.3", 8485)]
    assert where.strangers(lost=True) == [("192.0.2.3", 8485), ("192.0.2.9", 1)]
    where._discovery = Found(hub, peer(home, anna.identity.device_id, "192.0.2.5"))
    assert where.strangers(lost=False) == [], "nor is this PC itself one"


def test_new_addresses_go_before_old_ones_and_nonsense_is_dropped(home: TestHub) -> None:
    where, anna = of(home)
    where.remember(["nonsense", "", "192.0.2.7:2", "host:99999999"], home.me.identity.device_id)
    assert where.coordinator() == [("192.0.2.7", 2), ("192.0.2.9", 1)]
    loaded = anna.store.load()
    assert loaded is not None
    assert loaded.info.hub_addresses == ("192.0.2.7:2", "192.0.2.9:1")
    assert loaded.info.hub_device == home.me.identity.device_id
    where.remember([f"192.0.2.1:{n + 1}" for n in range(50)])
    assert len(where.coordinator()) == MAX_ADDRESSES
