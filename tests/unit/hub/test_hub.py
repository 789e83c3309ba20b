"""The coordinator knows who is there, tells everyone what changed, and cuts off who is out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from fleetapp.errors import BadRequest, NotAMember, NotFound, StorageError
from fleetapp.fleet.control import FromHub, Goodbye, Heartbeat, MembershipUpdate, Signed
from fleetapp.fleet.membership import add, new_member, rename, revoke
from fleetapp.hub import decisions
from fleetapp.hub.hub import LEFT
from fleetapp.hub.overview import fleet_view
from fleetapp.types import DeviceId
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub, hello


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    yield made
    await made.hub.stop()


def states(home: TestHub) -> dict[str, str]:
    return {n.name: n.state for n in home.hub.view().nodes}


async def settled() -> None:
    """Let what was spawned run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_connected_member_is_seen_and_a_lost_one_is_offline(home: TestHub) -> None:
    anna = home.enrol("anna")
    assert states(home)["anna"] == "offline"
    line = Line(home, anna)
    assert states(home)["anna"] == "online"
    home.hub.detach(line.session)
    assert states(home)["anna"] == "offline"


async def test_a_new_name_reaches_the_fleet_with_the_next_connection(home: TestHub) -> None:
    anna = home.enrol("anna")
    renamed = structs.replace(hello(anna.identity), name="Büro 📎")

    async def send(_: FromHub) -> None: ...

    async def close() -> None: ...

    home.hub.attach(anna.identity.spki, renamed, "192.0.2.9", send, close)
    assert states(home)["Büro 📎"] == "online"
    assert [c.name for c in home.hub.candidates()] == ["Büro 📎"]


async def test_who_is_not_in_the_list_is_not_attached(home: TestHub) -> None:
    stranger = home.newcomer("stranger")

    async def send(_: FromHub) -> None: ...

    async def close() -> None: ...

    with pytest.raises(NotAMember):
        home.hub.attach(stranger.spki, hello(stranger), "192.0.2.9", send, close)
    assert home.hub.registry.sessions() == ()


async def test_a_quick_leave_and_rejoin_is_one_member_and_the_old_line_is_closed(
    home: TestHub,
) -> None:
    anna = home.enrol("anna")
    first = Line(home, anna)
    second = Line(home, anna)
    await first.until_closed()
    assert home.hub.registry.sessions() == (second.session,)
    home.hub.detach(first.session)
    assert states(home)["anna"] == "online", "the end of the old line does not end the new one"
    assert [n.name for n in home.hub.view().nodes].count("anna") == 1
    numbers = {c.device_id: c.session for c in home.hub.candidates()}
    third = Line(home, anna)
    after = {c.device_id: c.session for c in home.hub.candidates()}
    assert after[anna.identity.device_id] > numbers[anna.identity.device_id], (
        "a chain must not take the new one for the old one"
    )
    assert third.session.device_id == anna.identity.device_id


async def test_leaving_removes_the_member_and_a_code_lets_it_in_again(home: TestHub) -> None:
    text = home.codes.create(hours=1, uses=1).code
    anna = home.newcomer("anna")
    home.ask(anna, text)
    epoch = home.trust.epoch
    line = Line(home, TestMember(anna, home.me.store, home.enrolment))
    home.hub.received(line.session, Goodbye(reason=LEFT))
    await line.until_closed()
    assert anna.device_id not in home.members
    assert home.trust.epoch == epoch + 1
    home.restart()
    assert anna.device_id not in home.members, "it is on disk"
    reply = home.ask(anna, text)
    assert reply.leaf, "the code remembers the device: a second use is not spent"
    assert [m for m in home.members if m == anna.device_id] == [anna.device_id]
    assert home.trust.epoch == epoch + 2


async def test_shutting_down_is_no_leaving(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    home.hub.received(line.session, Goodbye(reason="shutting down"))
    assert anna.identity.device_id in home.members


async def test_the_coordinator_cannot_remove_itself_by_a_goodbye(home: TestHub) -> None:
    line = Line(home, home.me)
    home.hub.received(line.session, Goodbye(reason=LEFT))
    assert home.me.identity.device_id in home.members


async def test_a_member_that_moved_is_reached_where_it_is_now(home: TestHub) -> None:
    line = Line(home, home.enrol("anna"), "192.0.2.7", remote="192.0.2.7")
    beat = Heartbeat(1, 1, 1, contribute=True, hosts=("192.0.2.33", "127.0.0.1"))
    home.hub.received(line.session, beat)
    assert set(line.session.hosts) == {"192.0.2.7", "192.0.2.33"}
    home.hub.received(line.session, Heartbeat(2, 1, 1, contribute=True))
    [candidate] = home.hub.candidates()
    assert "192.0.2.33" in candidate.hosts
    coordinator = Line(home, home.me, "192.0.2.1", remote="127.0.0.1")
    home.hub.received(
        coordinator.session, Heartbeat(1, 1, 1, contribute=True, hosts=("192.0.2.31",))
    )
    assert coordinator.session.hosts == ("192.0.2.31",)


async def test_everyone_is_told_of_a_new_list_once(home: TestHub) -> None:
    anna, ben = home.enrol("anna"), home.enrol("ben")
    lines = [Line(home, anna), Line(home, ben)]
    signed = home.hub.change_membership(lambda m: rename(m, anna.identity.device_id, "DESK-7"))
    await settled()
    for line in lines:
        assert line.said == [MembershipUpdate(membership=signed)]
    same = home.hub.change_membership(lambda m: rename(m, anna.identity.device_id, "DESK-7"))
    await settled()
    assert same == signed, "what changes nothing is not signed and sent again"
    assert all(len(line.said) == 1 for line in lines)


async def test_a_new_name_of_the_fleet_reaches_everyone_and_lasts(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    decisions.rename_fleet(home.hub, " Büro Süd ", "local")
    await settled()
    assert fleet_view(home.hub).name == "Büro Süd"
    assert home.hub.membership.fleet_name == "Büro Süd"
    assert line.said == [MembershipUpdate(membership=home.hub.signed_membership)]
    assert home.hub.audit.last(1)[0].action == "fleet_renamed"
    decisions.rename_fleet(home.hub, "Büro Süd", "local")
    await settled()
    assert len(line.said) == 1, "the same name again is no news"
    with pytest.raises(BadRequest, match="1 to 64 printable"):
        decisions.rename_fleet(home.hub, "\n", "local")


async def test_a_revoked_member_is_cut_at_once_and_told_why(home: TestHub) -> None:
    anna, ben = home.enrol("anna"), home.enrol("ben")
    theirs, others = Line(home, anna), Line(home, ben)
    home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
    assert states(home)["anna"] == "revoked"
    assert anna.identity.device_id not in {c.device_id for c in home.hub.candidates()}
    await theirs.until_closed()
    assert [r.code for r in theirs.refusals] == ["not_a_member"]
    assert not others.closed.is_set()
    assert others.refusals == []


async def test_a_revoked_member_that_reads_nothing_is_cut_all_the_same(home: TestHub) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    line.blocked = True
    home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
    await line.until_closed()


async def test_a_list_that_cannot_be_stored_does_not_count(home: TestHub) -> None:
    anna = home.newcomer("anna")
    epoch = home.trust.epoch
    member = new_member(anna.public_key, "anna", 0.0)

    def full(_: Signed) -> None:
        raise StorageError("The disk is full.")

    home.hub._store_membership = full
    with pytest.raises(StorageError):
        home.hub.change_membership(lambda m: add(m, member))
    assert home.trust.epoch == epoch
    assert anna.device_id not in home.members
    home.hub._store_membership = home.me.store.save_membership
    home.hub.change_membership(lambda m: add(m, member))
    home.restart()
    assert home.trust.epoch == epoch + 1


async def test_a_heartbeat_keeps_alive_and_carries_consent(home: TestHub) -> None:
    line = Line(home, home.enrol("anna"))
    assert [c.name for c in home.hub.candidates()] == ["anna"]
    watched = home.hub.listen()
    home.hub.received(line.session, Heartbeat(1, 5, 5, contribute=False))
    assert watched.is_set(), "people see at once that consent was taken back"
    assert home.hub.candidates() == ()
    watched.clear()
    home.hub.received(line.session, Heartbeat(2, 5, 5, contribute=False))
    assert not watched.is_set(), "a heartbeat that says nothing new wakes nobody"
    home.hub.unlisten(watched)


async def test_people_see_why_a_pc_does_not_contribute(home: TestHub) -> None:
    line = Line(home, home.enrol("anna"))
    watched = home.hub.listen()
    beats = [
        Heartbeat(1, 5, 5, contribute=False, reason="on_battery"),
        Heartbeat(2, 5, 5, contribute=False, reason="user_active"),
        Heartbeat(3, 5, 5, contribute=True, reason="draining", draining=True),
    ]
    for beat in beats:
        watched.clear()
        home.hub.received(line.session, beat)
        assert watched.is_set(), beat
        node = next(n for n in home.hub.view().nodes if n.name == "anna")
        assert (node.contribute, node.reason) == (beat.contribute, beat.reason)
        assert line.session.draining is beat.draining
    home.hub.unlisten(watched)


@pytest.mark.parametrize(
    ("remote", "hosts", "reachable"),
    [
        ("192.0.2.7", ("192.0.2.7", "198.51.100.3"), ("192.0.2.7", "198.51.100.3")),
        ("198.51.100.3", ("192.0.2.7",), ("198.51.100.3", "192.0.2.7")),
        ("127.0.0.1", ("192.0.2.7",), ("192.0.2.7",)),
        ("::1", ("fe80::1%eth0", "127.0.0.1"), ("fe80::1%eth0",)),
        ("127.0.0.1", ("127.0.0.1",), ("127.0.0.1",)),
    ],
    ids=["told", "behind another address", "the coordinator itself", "v6", "demo"],
)
async def test_where_others_reach_a_member(
    home: TestHub, remote: str, hosts: tuple[str, ...], reachable: tuple[str, ...]
) -> None:
    line = Line(home, home.enrol("anna"), *hosts, remote=remote)
    assert line.session.hosts == reachable


async def test_one_that_is_silent_for_six_seconds_is_gone(home: TestHub) -> None:
    anna, ben = home.enrol("anna"), home.enrol("ben")
    silent, alive = Line(home, anna), Line(home, ben)
    await home.hub.start()
    silent.session.last_heard -= 4.0
    assert states(home)["anna"] == "suspected"
    silent.session.last_heard -= 3.0
    await silent.until_closed()
    assert states(home) == {"hub": "offline", "anna": "offline", "ben": "online"}
    assert not alive.closed.is_set()


async def test_a_message_for_somebody_who_is_not_there_is_an_error(home: TestHub) -> None:
    with pytest.raises(NotAMember, match="not connected"):
        await home.hub.send(DeviceId("nobody"), MembershipUpdate(home.hub.signed_membership))


async def test_a_model_that_is_not_here_is_not_wanted(home: TestHub) -> None:
    with pytest.raises(NotFound):
        home.hub.models.serve("no-such-model", "exact", 0)
    assert home.state.value is not None
    assert home.state.value.wanted == ()
    with pytest.raises(NotFound, match="not being served"):
        await home.hub.models.unserve("no-such-model")


async def test_stopping_closes_every_line(home: TestHub) -> None:
    lines = [Line(home, home.enrol(n)) for n in ("anna", "ben")]
    await home.hub.start()
    await home.hub.stop()
    assert all(line.closed.is_set() for line in lines)
