"""New membership lists reach everybody: soon, together, and as differences where possible."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from fleetapp.fleet.control import FromHub, MembershipDelta, MembershipUpdate, Signed
from fleetapp.fleet.membership import fingerprint, rename
from fleetapp.fleet.trust import TrustList
from fleetapp.hub import broadcast
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub, hello


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


class Reader(Line):
    """A member that knows differences, and has the list of the moment it connected."""

    def __init__(self, home: TestHub, member: TestMember) -> None:
        super().__init__(home, member)
        signed, self.session.told = home.hub.push.for_newcomer(self.session.hello)
        assert signed is not None
        self.trust = TrustList(member.enrolment.authority_public, signed)
        self.session.hello = structs.replace(self.session.hello, holds=fingerprint(signed))

    def read(self) -> None:
        for message in self.said:
            assert isinstance(message, MembershipDelta)
            assert self.trust.update(self.trust.advanced(message))


def renamed(home: TestHub, member: TestMember, name: str) -> Signed:
    return home.hub.change_membership(lambda m: rename(m, member.identity.device_id, name))


async def told(home: TestHub, line: Line) -> None:
    """Until it has been sent the newest list."""
    newest = home.hub.signed_membership.signature
    async with asyncio.timeout(5):
        while not line.said or _signature(line.said[-1]) != newest:
            line.spoken.clear()
            await line.spoken.wait()


def _signature(message: FromHub) -> bytes:
    if isinstance(message, MembershipDelta):
        return message.signature
    assert isinstance(message, MembershipUpdate)
    return message.membership.signature


async def test_many_changes_at_once_are_told_in_two_messages(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Reader(home, anna)
    for number in range(50):
        renamed(home, anna, f"desk {number}")
    await told(home, line)
    assert len(line.said) == 2, "the first at once, the others together"
    line.read()
    assert line.trust.signed == home.hub.signed_membership


async def test_a_difference_weighs_little_however_many_members_there_are(home: TestHub) -> None:
    members = [home.enrol(f"pc-{n}") for n in range(15)]
    line = Reader(home, members[0])
    signed = renamed(home, members[1], "desk")
    await told(home, line)
    [message] = line.said
    assert isinstance(message, MembershipDelta)
    assert len(message.change) < len(signed.payload) / 5
    line.read()


async def test_who_does_not_know_differences_gets_whole_lists(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    signed = renamed(home, anna, "desk")
    await told(home, line)
    assert line.said == [MembershipUpdate(membership=signed)]


async def test_who_has_a_list_nobody_remembers_gets_the_whole(
    home: TestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "REMEMBERED", 2)
    anna = home.enrol("anna")
    line = Reader(home, anna)
    renamed(home, anna, "one")  # told at once
    for name in ("two", "three", "four"):
        renamed(home, anna, name)
    await told(home, line)
    assert [type(m) for m in line.said] == [MembershipDelta, MembershipUpdate]


async def test_a_newcomer_that_has_the_list_is_not_sent_it_again(home: TestHub) -> None:
    anna = home.enrol("anna")
    signed, epoch = home.hub.push.for_newcomer(hello(anna.identity))
    assert signed == home.hub.signed_membership
    knows = structs.replace(hello(anna.identity), holds=fingerprint(signed))
    assert home.hub.push.for_newcomer(knows) == (None, epoch)
    renamed(home, anna, "desk")
    assert home.hub.push.for_newcomer(knows)[0] == home.hub.signed_membership


async def test_what_changed_during_the_greeting_is_told_afterwards(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Reader(home, anna)
    home.hub.detach(line.session)
    renamed(home, anna, "desk")
    assert line.said == []
    home.hub.push.catch_up(line.session)
    await told(home, line)
    line.read()
    assert line.trust.signed == home.hub.signed_membership
