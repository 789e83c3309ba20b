"""A member believes a newer signed list, whoever has it, and nothing else."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleetapp.agent.joining import Address
from fleetapp.agent.successor import RETRY_SECONDS, SuccessorWatch
from fleetapp.fleet.control import Signed
from fleetapp.fleet.membership import hand_over, next_term, revoke, sign_membership
from fleetapp.fleet.trust import TrustList
from tests.support.control_server import ControlServer
from tests.support.fleet import TestMember
from tests.support.hubs import Clock


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "ours") as running:
        yield running


class Watching:
    """A member, and what its watch finds at some ports."""

    def __init__(self, member: TestMember, *servers: ControlServer) -> None:
        self.trust: TrustList = member.enrolment.trust()
        self.found: list[Signed] = []
        self.clock = Clock()
        self.ports = [s.port for s in servers]
        self.watch = SuccessorWatch(
            member.identity,
            member.enrolment.credentials,
            self.trust,
            strangers=lambda: [("127.0.0.1", port) for port in self.ports],
            found=self._found,
            clock=self.clock,
        )

    async def _found(self, signed: Signed, address: Address) -> None:
        assert address[1] in self.ports
        assert self.trust.update(signed)
        self.found.append(signed)


def in_office(server: ControlServer, old: str = "hub") -> None:
    """Make this server's PC one that has taken over from ``old``, of which members know nothing."""
    fleet, me = server.home.fleet, server.home.me.identity.device_id
    fleet.membership = hand_over(
        fleet.membership, fleet.membership.members[me], next_term(fleet.membership.epoch, 0),
        revoke_old=False,
    )  # fmt: skip
    signed = sign_membership(fleet.membership, fleet.authority)
    server.home.me.store.save_membership(signed)
    server.home.trust.update(signed)


def knows_another(server: ControlServer, name: str) -> TestMember:
    """A member whose list names another coordinator than the one that serves."""
    home, fleet = server.home, server.home.fleet
    other = home.enrol("the one before")
    fleet.membership = hand_over(
        fleet.membership, fleet.membership.members[other.identity.device_id],
        next_term(fleet.membership.epoch, 0), revoke_old=False,
    )  # fmt: skip
    return home.enrol(name)


async def test_a_newer_list_is_taken_and_names_the_new_coordinator(server: ControlServer) -> None:
    anna = knows_another(server, "anna")
    watching = Watching(anna, server)
    assert [m.name for m in watching.trust.coordinators()] == ["the one before"]
    in_office(server)
    assert await watching.watch.look()
    assert [m.name for m in watching.trust.coordinators()] == ["hub"]
    assert not await watching.watch.look()
    watching.clock.now += RETRY_SECONDS + 1
    assert not await watching.watch.look(), "that one is known now"
    assert len(watching.found) == 1


async def test_a_certificate_that_has_expired_is_no_hindrance(server: ControlServer) -> None:
    anna = knows_another(server, "anna")
    old = server.home.fleet.authority.issue(
        anna.identity.csr(), now=dt.datetime.now(dt.UTC) - dt.timedelta(days=90)
    )
    anna.store.save_leaf(old)
    watching = Watching(anna, server)
    in_office(server)
    assert await watching.watch.look()


async def test_who_was_revoked_meanwhile_learns_it(server: ControlServer) -> None:
    anna = knows_another(server, "anna")
    watching = Watching(anna, server)
    server.home.fleet.membership = revoke(server.home.fleet.membership, anna.identity.device_id)
    in_office(server)
    assert await watching.watch.look()
    assert not watching.trust.allows(anna.identity.spki)


async def test_an_older_or_the_same_list_is_no_news(server: ControlServer) -> None:
    ben = server.home.enrol("ben")
    anna = knows_another(server, "anna")
    assert server.home.trust.epoch == anna.enrolment.membership.epoch
    watching = Watching(anna, server)
    assert not await watching.watch.look(), "the same"
    del ben
    newer = sign_membership(
        hand_over(server.home.fleet.membership,
                  server.home.fleet.membership.members[anna.identity.device_id],
                  next_term(server.home.trust.epoch, 7), revoke_old=False),
        server.home.fleet.authority,
    )  # fmt: skip
    watching.trust.update(newer)
    watching.clock.now += RETRY_SECONDS + 1
    assert not await watching.watch.look(), "older"
    assert watching.found == []


async def test_another_fleet_an_impostor_and_a_pc_without_a_key_there_change_nothing(
    server: ControlServer, tmp_path: Path
) -> None:
    anna = knows_another(server, "anna")
    async with ControlServer(tmp_path / "theirs") as theirs, ControlServer(tmp_path / "x") as fake:
        # The impostor shows our authority to everybody and has no leaf of it.
        fake.home.hub.gate._authority = server.home.fleet.authority
        watching = Watching(anna, theirs, fake)
        watching.ports.append(1)  # nobody
        assert not await watching.watch.look()
        assert watching.found == []
    in_office(server)
    stranger = Watching(anna, server)
    server.home.hub.gate._listed = TrustList(server.home.fleet.authority.public_key).require
    assert not await stranger.watch.look()


async def test_a_list_that_was_tampered_with_is_not_taken(server: ControlServer) -> None:
    anna = knows_another(server, "anna")
    in_office(server)
    genuine = server.home.hub.signed_membership
    forged = Signed(
        genuine.payload.replace(b'"anna"', b'"anne"'), genuine.signature, genuine.signer
    )
    server.home.hub.gate._listed = lambda _: forged
    watching = Watching(anna, server)
    assert not await watching.watch.look()
    assert watching.found == []


async def test_an_address_without_news_is_left_in_peace_for_a_while(
    server: ControlServer,
) -> None:
    anna = knows_another(server, "anna")
    asked = []
    genuine = server.home.hub.gate.newest_list
    server.home.hub.gate.newest_list = lambda r: (asked.append(r), genuine(r))[1]
    watching = Watching(anna, server)
    for _ in range(3):
        await watching.watch.look()
    assert len(asked) == 1
    watching.clock.now += RETRY_SECONDS + 1
    await watching.watch.look()
    assert len(asked) == 2
