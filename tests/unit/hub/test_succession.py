"""The office is given to a member that takes it, or it stays; meanwhile nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleetapp.errors import (
    FleetError,
    NotAMember,
    NotFound,
    PeerTimeout,
    ProtocolError,
    StorageError,
    UserError,
)
from fleetapp.fleet.control import HandedOver, Handover, HandoverRefused, MembershipUpdate, Signed
from fleetapp.fleet.membership import add, hand_over, new_member, next_term, sign_membership
from fleetapp.hub import succession
from fleetapp.hub.decisions import decide
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    yield made
    await made.hub.stop()


@pytest.fixture
def anna(home: TestHub) -> TestMember:
    return home.enrol("anna")


def taken(home: TestHub, by: TestMember, draw: int = 0) -> Signed:
    base = home.hub.membership
    member = base.members[by.identity.device_id]
    made = hand_over(base, member, next_term(base.epoch, draw), revoke_old=False)
    return sign_membership(made, home.fleet.authority)


async def offered(line: Line) -> None:
    async with asyncio.timeout(5):
        while not any(isinstance(m, Handover) for m in line.said):
            line.spoken.clear()
            await line.spoken.wait()


async def test_meanwhile_nothing_is_changed_and_afterwards_nothing_is_signed(
    home: TestHub, anna: TestMember
) -> None:
    line, device = Line(home, anna), anna.identity.device_id
    code = home.codes.create(hours=1, uses=9, approve=True).code
    carl = home.newcomer("carl")
    home.ask(carl, code)
    giving = asyncio.create_task(home.hub.succession.give(device, b"bundle"))
    await offered(line)
    with pytest.raises(UserError, match="being given"):
        decide(home.hub, "approve", carl.device_id)
    assert home.state.value is not None
    assert home.state.value.pending, "who waits goes on waiting"
    with pytest.raises(UserError, match="being given"):
        await home.hub.succession.give(device, b"again")
    signed = taken(home, anna)
    home.hub.received(line.session, HandedOver(signed, 8485))
    assert (await giving).membership is signed
    for change in (
        lambda: decide(home.hub, "approve", carl.device_id),
        lambda: home.hub.change_membership(
            lambda m: add(m, new_member(carl.public_key, "carl", 1.0))
        ),
    ):
        with pytest.raises(NotAMember, match="does not coordinate"):
            change()


async def test_a_no_leaves_everything_as_it_was(home: TestHub, anna: TestMember) -> None:
    line, device = Line(home, anna), anna.identity.device_id
    giving = asyncio.create_task(home.hub.succession.give(device, b"bundle"))
    await offered(line)
    home.hub.received(line.session, HandoverRefused("disk_full", "There is no room."))
    with pytest.raises(StorageError, match="no room"):
        await giving
    decide(home.hub, "revoke", device)


async def test_a_connection_that_breaks_ends_the_waiting(home: TestHub, anna: TestMember) -> None:
    line = Line(home, anna)
    giving = asyncio.create_task(home.hub.succession.give(anna.identity.device_id, b"bundle"))
    await offered(line)
    home.hub.detach(line.session)
    with pytest.raises(FleetError, match="broke"):
        await asyncio.wait_for(giving, 5)
    home.hub.succession.require_office()


async def test_no_answer_is_no(
    home: TestHub, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "ANSWER_SECONDS", 0.1)
    Line(home, anna)
    with pytest.raises(PeerTimeout, match="anna"):
        await home.hub.succession.give(anna.identity.device_id, b"bundle")
    home.hub.succession.require_office()


async def test_only_the_one_that_was_asked_can_answer(home: TestHub, anna: TestMember) -> None:
    ben = home.enrol("ben")
    line, other = Line(home, anna), Line(home, ben)
    giving = asyncio.create_task(home.hub.succession.give(anna.identity.device_id, b"bundle"))
    await offered(line)
    home.hub.received(other.session, HandedOver(taken(home, ben)))
    home.hub.received(other.session, HandoverRefused("x", "x"))
    await asyncio.sleep(0)
    assert not giving.done()
    home.hub.received(line.session, HandedOver(taken(home, ben, 5)))
    with pytest.raises(ProtocolError, match="somebody else"):
        await giving


async def test_a_list_that_is_not_newer_is_no_answer(home: TestHub, anna: TestMember) -> None:
    line = Line(home, anna)
    giving = asyncio.create_task(home.hub.succession.give(anna.identity.device_id, b"bundle"))
    await offered(line)
    home.hub.received(line.session, HandedOver(home.hub.signed_membership))
    with pytest.raises(ProtocolError, match="not newer"):
        await giving
    home.hub.succession.require_office()


async def test_who_cannot_take_it_is_not_asked(home: TestHub, anna: TestMember) -> None:
    give = home.hub.succession.give
    with pytest.raises(NotFound):
        await give("nobody", b"")
    with pytest.raises(UserError, match="already"):
        await give(home.me.identity.device_id, b"")
    with pytest.raises(NotAMember, match="not connected"):
        await give(anna.identity.device_id, b"")
    line = Line(home, anna)
    decide(home.hub, "revoke", anna.identity.device_id)
    await line.until_closed()
    with pytest.raises(NotFound):
        await give(anna.identity.device_id, b"")


async def test_everybody_is_told_and_who_does_not_read_holds_nobody_up(
    home: TestHub, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "ANNOUNCE_SECONDS", 0.1)
    line, deaf = Line(home, anna), Line(home, home.enrol("ben"))
    deaf.blocked = True
    signed = taken(home, anna)
    await asyncio.wait_for(home.hub.succession.announce(signed, ("192.0.2.7:1",)), 2)
    assert MembershipUpdate(signed, ("192.0.2.7:1",)) in line.said


def test_a_bundle_shows_in_no_log() -> None:
    assert "secret" not in repr(Handover(b"secret"))
