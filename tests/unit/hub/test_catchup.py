"""A coordinator from an old recovery file learns what happened since, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.fleet.control import EarlierList, Signed
from fleetapp.fleet.membership import (
    TERM,
    Membership,
    catch_up,
    hand_over,
    new_member,
    next_term,
    reinstate,
    revoke,
    set_roles,
    sign_membership,
)
from tests.support.fleet import TestFleet
from tests.support.hubs import Line, TestHub


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    yield made
    await made.hub.stop()


def signed(home: TestHub, value: Membership) -> Signed:
    return sign_membership(value, home.fleet.authority)


def took_over(home: TestHub, base: Membership) -> None:
    """As from a recovery file that holds ``base``."""
    me = home.me.identity.device_id
    made = hand_over(base, base.members[me], next_term(base.epoch, 3), revoke_old=False)
    home.me.store.save_membership(signed(home, made))
    home.state.change(caught_up=base.epoch)
    home.restart()


def bring(home: TestHub, line: Line, value: Membership) -> None:
    home.hub.received(line.session, EarlierList(signed(home, value)))


async def test_who_was_revoked_since_is_out_and_who_joined_since_is_in(home: TestHub) -> None:
    anna, ben = home.enrol("anna"), home.enrol("ben")
    base = home.fleet.membership
    late = new_member(home.newcomer("late").public_key, "late", 5.0)
    ids = [m.identity.device_id for m in (anna, ben)]
    since = msgspec.structs.replace(
        revoke(base, ids[1]), members={**revoke(base, ids[1]).members, late.device_id: late}
    )
    took_over(home, base)
    line = Line(home, anna)
    assert home.trust.allows(ben.identity.spki), "the file did not know better"
    bring(home, line, since)
    assert not home.trust.allows(ben.identity.spki)
    assert home.members[late.device_id].roles == ("member",)
    said = home.hub.audit.last(1)[0]
    assert (said.action, said.details["revoked"], said.details["added"]) == (
        "caught_up", "ben", "late",
    )  # fmt: skip
    epoch = home.trust.epoch
    bring(home, line, since)
    assert home.trust.epoch == epoch, "once is enough"


async def test_nobody_undoes_with_an_old_list_what_was_decided_since(home: TestHub) -> None:
    anna, ben = home.enrol("anna"), home.enrol("ben")
    base = home.fleet.membership
    device = ben.identity.device_id
    once_admin = set_roles(base, device, ("admin", "member"))
    took_over(home, base)
    line = Line(home, anna)
    home.hub.change_membership(lambda m: revoke(m, device))
    bring(home, line, once_admin)
    assert home.members[device].state == "revoked", "never let in again by a list"
    home.hub.change_membership(lambda m: reinstate(m, device))
    epoch = home.trust.epoch
    for stale in (revoke(base, device), base):  # not newer than what was taken account of
        bring(home, line, stale)
    present = home.hub.membership
    bring(home, line, revoke(present, device))  # of this very term
    forged = signed(home, revoke(once_admin, device))
    home.hub.received(line.session, EarlierList(msgspec.structs.replace(forged, signature=b"x")))
    assert home.trust.epoch == epoch


async def test_a_coordinator_that_founded_the_fleet_needs_no_such_news(home: TestHub) -> None:
    anna = home.enrol("anna")
    base = home.fleet.membership
    epoch = home.trust.epoch
    bring(home, Line(home, anna), revoke(base, anna.identity.device_id))
    assert home.trust.epoch == epoch


ROLES = st.sampled_from([("member",), ("admin", "member"), ("coordinator", "admin", "member")])


@given(here=st.lists(ROLES, min_size=3, max_size=3), there=st.lists(ROLES, min_size=3, max_size=3),
       gone=st.sets(st.integers(0, 2)), out=st.sets(st.integers(0, 2)))  # fmt: skip
def test_nothing_is_ever_given_to_who_is_listed(
    fleet: TestFleet, here: list, there: list, gone: set[int], out: set[int]
) -> None:
    devices = list(fleet.membership.members)
    now, then = fleet.membership, fleet.membership
    for i, device in enumerate(devices):
        now, then = set_roles(now, device, here[i]), set_roles(then, device, there[i])
    for i in out:
        then = revoke(then, devices[i])
    kept = {d: m for i, (d, m) in enumerate(now.members.items()) if i not in gone}
    now = msgspec.structs.replace(now, epoch=now.epoch + TERM, members=kept)
    after = catch_up(now, then)
    assert after.epoch - now.epoch == (after.members != now.members)
    for i, device in enumerate(devices):
        member = after.members[device]
        assert "coordinator" not in member.roles or "coordinator" in here[i]
        if device in kept:
            assert set(member.roles) <= set(here[i])
        if i in out and "coordinator" not in now.members.get(device, member).roles:
            assert member.state == "revoked"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> TestFleet:
    made = TestFleet(tmp_path_factory.mktemp("fleet"))
    for name in ("a", "b", "c"):
        made.enrol(name)
    return made
