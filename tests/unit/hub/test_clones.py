"""Two PCs with one identity are told apart; a quick restart is not taken for that (T17, T18)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from fleetapp.errors import BadRequest, BadSignature, ClonedIdentity, Malformed, NotAMember
from fleetapp.fleet.control import Heartbeat, MemberHello, Reissue, ReissueRequest, Signed
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import set_roles
from fleetapp.hub import clones
from fleetapp.hub.decisions import decide
from fleetapp.types import PROTOCOL_VERSION
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub, hello


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    yield made
    await made.hub.stop()


@pytest.fixture
def anna(home: TestHub) -> TestMember:
    return home.enrol("anna")


def greeting(member: TestMember, instance: str, hardware: str = "h1") -> MemberHello:
    return msgspec.structs.replace(hello(member.identity), instance=instance, hardware_id=hardware)


class Present:
    """An agent that is connected and beats as long as the block lasts."""

    def __init__(self, home: TestHub, member: TestMember, instance: str) -> None:
        self._home = home
        self.line = Line(home, member)
        self.line.session.hello = greeting(member, instance)

    async def __aenter__(self) -> Present:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        while True:
            self._home.hub.received(self.line.session, Heartbeat(1, 1, 1, contribute=True))
            await asyncio.sleep(0.05)


async def turned_away(home: TestHub, anna: TestMember, instance: str = "copy") -> None:
    async with Present(home, anna, "first"):
        with pytest.raises(ClonedIdentity):
            await home.hub.clones.admit(anna.identity.device_id, greeting(anna, instance))


async def test_who_comes_while_the_first_one_lives_is_the_copy(
    home: TestHub, anna: TestMember
) -> None:
    device = anna.identity.device_id
    async with Present(home, anna, "first") as first:
        for hardware in ("h2", "h1", ""):
            with pytest.raises(ClonedIdentity, match=device):
                await home.hub.clones.admit(device, greeting(anna, "copy", hardware))
        assert not first.line.closed.is_set(), "the first one is not disturbed"
        # The same agent after a break in the network is let in at once.
        await asyncio.wait_for(home.hub.clones.admit(device, greeting(anna, "first")), 0.1)
    assert [e.action for e in home.hub.audit.last(9)] == ["copy_turned_away"]


async def test_a_quick_restart_is_no_copy(
    home: TestHub, anna: TestMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its predecessor says nothing more, even if its connection still stands."""
    monkeypatch.setattr(clones, "HOLD_SECONDS", 0.6)
    device = anna.identity.device_id
    Line(home, anna).session.hello = greeting(anna, "before")
    admitted = asyncio.create_task(home.hub.clones.admit(device, greeting(anna, "after")))
    await asyncio.wait_for(admitted, clones.HOLD_SECONDS + 1)


async def test_a_restart_whose_predecessor_is_seen_to_go_does_not_wait(
    home: TestHub, anna: TestMember
) -> None:
    device, line = anna.identity.device_id, Line(home, anna)
    line.session.hello = greeting(anna, "before")
    admitted = asyncio.create_task(home.hub.clones.admit(device, greeting(anna, "after")))
    await asyncio.sleep(0)
    home.hub.detach(line.session)
    await asyncio.wait_for(admitted, 0.5)
    await home.hub.clones.admit(device, greeting(anna, "later"))


async def test_an_agent_of_before_that_says_nothing_of_itself_is_let_in(
    home: TestHub, anna: TestMember
) -> None:
    async with Present(home, anna, "first"):
        await home.hub.clones.admit(anna.identity.device_id, hello(anna.identity))


async def test_two_that_are_never_on_at_once_are_told_apart_by_their_hardware(
    home: TestHub, anna: TestMember
) -> None:
    device = anna.identity.device_id

    async def comes(hardware: str, start: str) -> None:
        await home.hub.clones.admit(device, greeting(anna, start, hardware))

    await comes("h1", "1")
    await comes("h1", "2")
    await comes("h2", "3")  # a new mainboard, for all we know
    home.restart()
    await comes("h2", "4")
    await comes("h1", "5")  # but then the old one would not be back
    with pytest.raises(ClonedIdentity):
        await comes("h2", "6")
    await comes("h1", "7")
    home.hub.clones.redeem(device, "6", anna.identity.device_id)


async def test_a_memory_that_is_damaged_is_begun_anew(home: TestHub, anna: TestMember) -> None:
    (home.folder / "seen.json").write_text("{")
    home.restart()
    await home.hub.clones.admit(anna.identity.device_id, greeting(anna, "1"))


# ------------------------------------------------------------------ an identity of its own


def wish(home: TestHub, anna: TestMember, fresh: Identity, **other: str) -> ReissueRequest:
    fields = {
        "device_id": anna.identity.device_id,
        "fleet_id": home.fleet.authority.fleet_id,
        "instance": "copy",
        "csr": fresh.csr().decode(),
        **other,
    }
    payload = msgspec.json.encode(Reissue(**fields))
    signed = Signed(payload, anna.identity.sign(payload), anna.identity.spki)
    return ReissueRequest(PROTOCOL_VERSION, signed, "COPY")


async def test_a_copy_becomes_a_plain_member_of_its_own(
    home: TestHub, anna: TestMember, tmp_path: Path
) -> None:
    device = anna.identity.device_id
    home.hub.change_membership(lambda m: set_roles(m, device, ("admin", "member")))
    await turned_away(home, anna)
    fresh = home.newcomer("fresh")
    reply = home.hub.gate.reissue(wish(home, anna, fresh))
    assert reply.leaf
    assert home.members[fresh.device_id].roles == ("member",), "no role is inherited"
    assert home.members[fresh.device_id].name == "COPY"
    assert home.members[device].role == "admin"
    (warning,) = home.hub.view().warnings
    assert device in warning
    assert fresh.device_id in warning
    said = home.hub.audit.last(1)[0]
    assert (said.actor, said.action) == (device, "copy_renamed")
    assert said.details["device"] == fresh.device_id
    again = home.hub.gate.reissue(wish(home, anna, fresh))
    assert again.leaf, "the answer may have got lost"
    assert len(home.hub.view().warnings) == 1


async def test_one_copy_gets_one_identity(home: TestHub, anna: TestMember) -> None:
    await turned_away(home, anna)
    home.hub.gate.reissue(wish(home, anna, home.newcomer("fresh")))
    with pytest.raises(BadRequest, match="already"):
        home.hub.gate.reissue(wish(home, anna, home.newcomer("another")))


async def test_nobody_else_gets_one(home: TestHub, anna: TestMember, tmp_path: Path) -> None:
    fresh, before = home.newcomer("fresh"), home.trust.epoch
    with pytest.raises(NotAMember, match="no copy"):
        home.hub.gate.reissue(wish(home, anna, fresh))
    await turned_away(home, anna)
    ben = home.enrol("ben")
    before = home.trust.epoch
    good = wish(home, anna, fresh)
    theirs = TestHub(tmp_path / "theirs")
    for wrong, error in (
        (wish(home, anna, fresh, instance="first"), NotAMember),
        (wish(home, anna, fresh, device_id=ben.identity.device_id), BadRequest),
        (wish(home, anna, fresh, fleet_id=theirs.fleet.authority.fleet_id), BadRequest),
        (wish(home, anna, fresh, csr="nonsense"), Malformed),
        (wish(home, ben, fresh), NotAMember),
        (wish(home, theirs.enrol("x"), fresh), NotAMember),
        (_forged(good, ben), BadSignature),
        (_about(good, anna, b"{}"), Malformed),
    ):
        with pytest.raises(error):
            home.hub.gate.reissue(wrong)
    assert home.trust.epoch == before
    home.hub.clones._clock = lambda: 1e12
    with pytest.raises(NotAMember, match="no copy"):
        home.hub.gate.reissue(good)


def _forged(request: ReissueRequest, by: TestMember) -> ReissueRequest:
    signature = by.identity.sign(request.wish.payload)
    return msgspec.structs.replace(
        request, wish=msgspec.structs.replace(request.wish, signature=signature)
    )


def _about(request: ReissueRequest, by: TestMember, payload: bytes) -> ReissueRequest:
    signed = Signed(payload, by.identity.sign(payload), by.identity.spki)
    return msgspec.structs.replace(request, wish=signed)


async def test_a_revoked_device_cannot_multiply(home: TestHub, anna: TestMember) -> None:
    await turned_away(home, anna)
    decide(home.hub, "revoke", anna.identity.device_id)
    with pytest.raises(NotAMember):
        home.hub.gate.reissue(wish(home, anna, home.newcomer("fresh")))
