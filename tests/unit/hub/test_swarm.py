"""Who is named as a source of a shard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fleetapp.fleet.control import Assign, Heartbeat, Neighbour, Release, Signed
from fleetapp.hub.swarm import MOST, Holder, choose
from fleetapp.models.manifest import digest
from fleetapp.types import LayerRange
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub, hello


def holder(name: str, **shards: str) -> Holder:
    return Holder(Neighbour(name, name * 2, ("192.0.2.1",), 7), shards)


def names(sources: tuple[Neighbour, ...]) -> list[str]:
    return [s.device_id for s in sources]


def test_who_holds_the_shard_comes_before_who_holds_another_of_the_model() -> None:
    holders = [holder("near", b="model"), holder("exact", a="model"), holder("other", c="else")]
    assert names(choose({"a": "model"}, holders, "me")) == ["exact", "near"]


def test_nobody_is_a_source_of_its_own() -> None:
    assert choose({"a": "m"}, [holder("me", a="m")], "me") == ()


def test_different_receivers_are_sent_to_different_members_first() -> None:
    holders = [holder(f"pc{n}", a="m") for n in range(20)]
    firsts = {choose({"a": "m"}, holders, f"me{n}")[0].device_id for n in range(40)}
    assert len(firsts) > 10


held = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["m", "n"]), max_size=3)


@given(st.dictionaries(st.sampled_from("uvwxyz"), held), st.sampled_from("uvwxyz"))
def test_a_choice_is_bounded_repeatable_and_of_members_that_have_something(
    shards: dict[str, dict[str, str]], receiver: str
) -> None:
    holders = [holder(name, **mine) for name, mine in shards.items()]
    chosen = choose({"a": "m"}, holders, receiver)
    assert chosen == choose({"a": "m"}, reversed(holders), receiver)
    assert len(chosen) <= MOST
    assert len(set(names(chosen))) == len(chosen)
    assert receiver not in names(chosen)
    for name in names(chosen):
        assert "a" in shards[name] or "m" in shards[name].values()


# ------------------------------------------------------------------ on its way out of the hub


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


SHARD = Signed(b'{"model_digest": "m", "files": []}', b"", "")


def assign() -> Assign:
    return Assign("a1", "c1", "tiny", 0, 1, LayerRange(0, 2), False, SHARD, "fast", 0, 0, 0)


def joins(home: TestHub, member: TestMember, port: int = 7, *shards: Signed) -> Line:
    line = Line(home, member)
    home.hub.detach(line.session)
    held = {digest(s.payload): "m" for s in shards}
    said = structs.replace(hello(member.identity, "192.0.2.7"), shard_port=port, shards=held)
    line.session = home.hub.attach(
        member.identity.spki, said, "192.0.2.7", send=line._send, close=line._close
    )
    return line


async def sources_sent(home: TestHub, line: Line) -> list[str]:
    line.said.clear()
    await home.hub.send(line.session.device_id, assign())
    await asyncio.wait_for(line.spoken.wait(), 5)
    [message] = line.said
    assert isinstance(message, Assign)
    return names(message.sources)


async def test_an_assignment_names_who_holds_it_and_shares(home: TestHub) -> None:
    anna, ben, carl, dora = (home.enrol(n) for n in ("anna", "ben", "carl", "dora"))
    line = joins(home, anna)
    joins(home, ben, 7, SHARD)
    joins(home, carl, 0, SHARD)  # shares nothing
    later = joins(home, dora, 7)
    assert await sources_sent(home, line) == [ben.identity.device_id]
    held = {digest(SHARD.payload): "m"}
    home.hub.received(later.session, Heartbeat(1, 1, 1, True, shards=held))
    home.hub.received(later.session, Heartbeat(2, 1, 1, True))  # unchanged
    both = {ben.identity.device_id, dora.identity.device_id}
    assert set(await sources_sent(home, line)) == both
    home.hub.received(later.session, Heartbeat(3, 1, 1, False))
    assert await sources_sent(home, line) == [ben.identity.device_id], "only who contributes"


async def test_other_messages_go_out_as_they_are(home: TestHub) -> None:
    line = joins(home, home.enrol("anna"))
    message = Release("a1", "because")
    await home.hub.send(line.session.device_id, message)
    assert line.said == [message]


def test_an_older_member_understands_an_assignment_with_sources() -> None:
    class Old(msgspec.Struct, tag="assign"):
        assignment: str

    sent = structs.replace(assign(), sources=(Neighbour("x", "y", (), 1),))
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Old).assignment == "a1"
