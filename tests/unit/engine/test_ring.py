"""Forming the ring over real TLS on 127.0.0.1, in any order, and refusing what does not fit."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from fleetapp.bench.link import Link as Hop
from fleetapp.engine.neighbours import Self, objection, release
from fleetapp.engine.pipe import Link, PeerAddress
from fleetapp.engine.ring import Ring, Security
from fleetapp.engine.transport import LinkFailed, LinkLost, LinkUp, Received
from fleetapp.errors import ChainBroken, FleetUnavailable, StaleFrame
from fleetapp.fleet.tls import client_context, hostname_of, peer_spki, server_context
from fleetapp.wire.connect import connect
from fleetapp.wire.frames import Drop, Fault, Hello, Passed, Segment, Step, Tokens
from fleetapp.wire.hello import client_hello
from tests.support.fleet import TestFleet, TestMember

E = TypeVar("E")
MODEL = "m" * 64
SILENCE = 3.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> TestFleet:
    return TestFleet(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def members(fleet: TestFleet) -> list[TestMember]:
    return [fleet.enrol(f"node{i}") for i in range(4)]


def security(member: TestMember) -> Security:
    credentials = member.enrolment.credentials

    def spki(tls: Any) -> str:
        found = peer_spki(tls)
        assert found is not None
        return found

    return Security(
        server_context(credentials),
        client_context(credentials),
        spki,
        lambda device: hostname_of(device, credentials.fleet_id),
    )


class Node:
    """A ring without anything behind it."""

    def __init__(self, member: TestMember, index: int, **changes: Any) -> None:
        self.member = member
        self.index = index
        self.events: queue.Queue[Any] = queue.Queue()
        identity = member.identity
        me = Self(
            identity.device_id, member.enrolment.info.fleet_id, MODEL, index * 10, "exact", "OV 1"
        )
        self.ring = Ring(
            msgspec.structs.replace(me, **changes),
            self.events.put,
            security(member),
            host="127.0.0.1",
            port=0,
            message_deadline=20.0,
            silence=SILENCE,
        )

    @property
    def address(self) -> PeerAddress:
        identity = self.member.identity
        return PeerAddress(identity.device_id, identity.spki, ("127.0.0.1",), self.ring.port)

    def expect(self, kind: type[E], seconds: float = 15.0) -> E:
        event = self.events.get(timeout=seconds)
        assert isinstance(event, kind), event
        return event


def link_of(nodes: list[Node], index: int, epoch: int = 1, **changes: Any) -> Link:
    count = len(nodes)
    link = Link(
        chain="c",
        epoch=epoch,
        stage=index,
        stages=count,
        model=MODEL,
        next_layer=(index + 1) % count * 10,
        next=nodes[(index + 1) % count].address,
        prev=nodes[index - 1].address,
        kv_blocks=1,
        block_size=1,
        deadline=10.0,
    )
    return msgspec.structs.replace(link, **changes)


def _threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("ring-", "wire-"))]


@pytest.fixture
def nodes(members: list[TestMember]) -> Iterator[list[Node]]:
    made = [Node(m, i) for i, m in enumerate(members[:3])]
    yield made
    for node in made:
        node.ring.close()
    # a handshake that was cut has its own thread, which needs a moment to see it
    end = time.monotonic() + 10.0
    while (left := _threads()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not left


def form(nodes: list[Node], epoch: int = 1, order: tuple[int, ...] = (0, 1, 2)) -> None:
    for i in order:
        nodes[i].ring.link(link_of(nodes, i, epoch))
    for node in nodes:
        assert node.expect(LinkUp) == LinkUp(epoch)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_order_of_starting_does_not_matter(nodes: list[Node], order: tuple[int, ...]) -> None:
    for i in order[:-1]:
        nodes[i].ring.link(link_of(nodes, i))
    time.sleep(0.15)  # not in hope: the first two must really be at it before the third begins
    nodes[order[-1]].ring.link(link_of(nodes, order[-1]))
    for node in nodes:
        assert node.expect(LinkUp) == LinkUp(1)


def test_frames_go_around_with_their_payload(nodes: list[Node]) -> None:
    form(nodes)
    hidden = np.arange(12, dtype=np.float32).reshape(3, 4)
    step = Step(1, 7, (Segment(0, 1, 0, 3, True),), "f32", 4)
    nodes[0].ring.send(step, hidden)
    event = nodes[1].expect(Received)
    assert event.frame == step
    assert (np.frombuffer(event.payload, np.float32).reshape(3, 4) == hidden).all()
    nodes[2].ring.send(Tokens(1, 7, ()))
    assert nodes[0].expect(Received).frame == Tokens(1, 7, ())
    assert nodes[0].ring.sent_bytes == nodes[1].ring.received_bytes > hidden.nbytes


def test_a_neighbour_that_leaves_is_named(nodes: list[Node]) -> None:
    form(nodes)
    nodes[1].ring.close()
    lost = nodes[2].expect(LinkLost)
    device = nodes[1].member.identity.device_id
    assert (lost.epoch, lost.stage, lost.device) == (1, 1, device)
    assert isinstance(lost.error, ChainBroken)
    assert device in lost.error.message
    until = time.monotonic() + 10
    refused = None
    while refused is None and time.monotonic() < until:
        try:
            nodes[0].ring.send(Drop(1, 1))
        except ChainBroken as exc:
            refused = exc
    assert refused is not None
    assert device in refused.message


@pytest.mark.parametrize("stood_still", [True, False])
def test_who_stood_still_and_cannot_send_blames_nobody_else(
    nodes: list[Node], stood_still: bool
) -> None:
    """Its loop may send before the thread that reads has come to know of anything."""
    form(nodes)
    epoch = nodes[0].ring._current
    assert epoch is not None
    assert epoch.next is not None
    epoch.next.close()
    if stood_still:
        epoch._heard -= 10.0
    culprit = nodes[0 if stood_still else 1].member.identity.device_id
    with pytest.raises(ChainBroken, match=culprit) as caught:
        nodes[0].ring.send(Drop(1, 1))
    assert ("stood still for 10" in caught.value.message) is stood_still
    assert nodes[0].ring.blame == ((0, culprit) if stood_still else None)


def test_a_new_epoch_closes_the_connections_of_the_old_one(nodes: list[Node]) -> None:
    form(nodes)
    first = nodes[0].ring.sent_bytes
    nodes[0].ring.send(Drop(1, 1))
    nodes[1].expect(Received)
    for i in (1, 0, 2):
        nodes[i].ring.link(link_of(nodes, i, 2))
    ups = set()
    for node in nodes:
        event = node.events.get(timeout=15)
        # Of epoch 1, seen before the node's own new link.
        while isinstance(event, LinkLost | Received):
            assert (event.epoch if isinstance(event, LinkLost) else event.frame.epoch) == 1  # type: ignore[union-attr]
            event = node.events.get(timeout=15)
        ups.add(event)
    assert ups == {LinkUp(2)}
    nodes[0].ring.send(Drop(2, 2))
    assert nodes[1].expect(Received).frame == Drop(2, 2)
    assert nodes[0].ring.sent_bytes > first


@pytest.fixture
def hops(nodes: list[Node]) -> Iterator[list[Hop]]:
    """A relay behind each node: what it sends to the next one passes there."""
    made = [Hop(nodes[(i + 1) % 3].ring.port) for i in range(3)]
    yield made
    for hop in made:
        hop.close()


def form_over(nodes: list[Node], hops: list[Hop]) -> None:
    for i, node in enumerate(nodes):
        link = link_of(nodes, i)
        assert link.next is not None
        there = msgspec.structs.replace(link.next, port=hops[i].port)
        node.ring.link(msgspec.structs.replace(link, next=there))
    for node in nodes:
        assert node.expect(LinkUp) == LinkUp(1)


def test_neighbours_that_have_nothing_to_say_are_not_given_up(nodes: list[Node]) -> None:
    form(nodes)
    time.sleep(SILENCE * 1.1)  # longer than anybody may be silent
    assert all(node.events.empty() for node in nodes)
    nodes[0].ring.send(Drop(1, 1))
    assert nodes[1].expect(Received).frame == Drop(1, 1)


@pytest.mark.parametrize("silent", [0, 2])
def test_a_silent_stage_is_named_all_the_way_around(
    nodes: list[Node], hops: list[Hop], silent: int
) -> None:
    form_over(nodes, hops)
    device = nodes[silent].member.identity.device_id
    behind, further = nodes[(silent + 1) % 3], nodes[(silent + 2) % 3]
    hops[silent].partition()
    began = time.monotonic()
    lost = behind.expect(LinkLost)
    assert (lost.stage, lost.device) == (silent, device)
    assert device in lost.error.message
    for node in (further, nodes[silent]):
        fault = node.expect(Received).frame
        assert isinstance(fault, Fault)
        assert (fault.stage, fault.device, fault.slot) == (silent, device, -1)
    assert time.monotonic() - began <= SILENCE
    assert further.ring.blame == (silent, device)
    with pytest.raises(ChainBroken, match=device):
        further.ring.send(Drop(1, 1))


def test_a_pause_shorter_than_the_silence_harms_nobody(nodes: list[Node], hops: list[Hop]) -> None:
    form_over(nodes, hops)
    hops[1].partition()
    sent = [Drop(1, i) for i in range(3)]
    for frame in sent:
        nodes[1].ring.send(frame)
    time.sleep(SILENCE / 2)
    hops[1].heal()
    assert [nodes[2].expect(Received).frame for _ in sent] == sent
    assert all(node.events.empty() for node in nodes)


def test_who_sends_to_a_stage_that_does_not_read_is_not_held_up_for_long(
    nodes: list[Node], hops: list[Hop]
) -> None:
    """What the network takes in is full; the stage behind notices, and frees the sender."""
    form_over(nodes, hops)
    rows = np.zeros((256, 4096), np.float32)
    step = Step(1, 7, (Segment(0, 1, 0, 256, True),), "f32", 4096)
    for hop in (hops[0], hops[1]):  # device 1 is frozen
        hop.partition()
    began = time.monotonic()

    def fill() -> None:
        while time.monotonic() - began < 10:
            nodes[0].ring.send(step, rows)

    with pytest.raises(ChainBroken, match=nodes[1].member.identity.device_id):
        fill()
    assert time.monotonic() - began <= SILENCE + 0.5


def test_the_head_knows_how_far_each_stage_has_come(nodes: list[Node]) -> None:
    form(nodes)
    devices = [node.member.identity.device_id for node in nodes]
    step = Step(1, 7, (Segment(0, 1, 0, 1, True),), "f32", 4)
    nodes[1].ring.send(step, np.zeros((1, 4), np.float32))
    nodes[2].ring.send(Tokens(1, 6, ()))
    expected = (Passed(devices[1], 7), Passed(devices[2], 6))
    until = time.monotonic() + 10
    while nodes[0].ring.progress != expected:
        assert time.monotonic() < until, nodes[0].ring.progress
        time.sleep(0.02)


def test_leaving_ends_all_threads_and_sending_is_refused_by_name(nodes: list[Node]) -> None:
    form(nodes)
    nodes[0].ring.unlink()
    with pytest.raises(StaleFrame):
        nodes[0].ring.send(Drop(1, 1))


def test_alone_there_is_no_network(members: list[TestMember]) -> None:
    node = Node(members[0], 0)
    link = Link("c", 3, 0, 1, MODEL, 0, None, None, 1, 1)
    node.ring.link(link)
    assert node.expect(LinkUp) == LinkUp(3)
    node.ring.close()


def test_nobody_there_fails_within_the_deadline_naming_both(nodes: list[Node]) -> None:
    started = time.monotonic()
    nodes[0].ring.link(link_of(nodes, 0, deadline=0.6))
    failed = nodes[0].expect(LinkFailed, 5)
    assert time.monotonic() - started < 3
    assert nodes[0].member.identity.device_id in failed.error.message
    assert nodes[1].member.identity.device_id in failed.error.message


def test_the_stage_before_that_never_comes_is_named(nodes: list[Node]) -> None:
    nodes[1].ring.link(link_of(nodes, 1, deadline=2.0))
    nodes[2].ring.link(link_of(nodes, 2, deadline=2.0))
    failed = nodes[1].expect(LinkFailed)
    assert "did not connect" in failed.error.message
    assert nodes[0].member.identity.device_id in failed.error.message


def test_a_link_for_another_model_fails_at_once(nodes: list[Node]) -> None:
    nodes[0].ring.link(link_of(nodes, 0, model="x"))
    assert MODEL in nodes[0].expect(LinkFailed).error.message


@pytest.mark.parametrize(
    ("mine", "link", "words"),
    [
        ({"precision": "fast"}, {}, ("precision", "fast", "exact")),
        ({"runtime": "OV 2"}, {}, ("OV 1", "OV 2")),
        ({"first_layer": 11}, {}, ("first layer", "10", "11")),
        ({"model": "x" * 64}, {"model": "x" * 64}, ("model", "mmmmmm", "xxxxxx")),
        ({}, {"stages": 4}, ("number of stages", "3", "4")),
    ],
)
def test_a_neighbour_that_does_not_fit_is_refused_on_both_sides_naming_both(
    members: list[TestMember], mine: dict[str, Any], link: dict[str, Any], words: tuple[str, ...]
) -> None:
    nodes = [Node(members[0], 0), Node(members[1], 1, **mine), Node(members[2], 2)]
    try:
        for i in (0, 1, 2):
            nodes[i].ring.link(link_of(nodes, i, **(link if i == 1 else {}), deadline=5.0))
        for node in nodes[:2]:
            message = node.expect(LinkFailed).error.message
            assert all(word in message for word in words)
            named = [m for m in members if m.identity.device_id in message]
            assert len(named) >= 2
            assert members[1] in named
    finally:
        for node in nodes:
            node.ring.close()


def test_another_member_in_the_neighbours_place_is_refused(
    nodes: list[Node], members: list[TestMember]
) -> None:
    intruder = Node(members[3], 0)
    try:
        nodes[1].ring.link(link_of(nodes, 1, deadline=1.5))
        intruder.ring.link(link_of(nodes, 0, deadline=1.5))
        failed = intruder.expect(LinkFailed)
        assert "expects" in failed.error.message
        nodes[1].expect(LinkFailed)
    finally:
        intruder.ring.close()


def test_somebody_else_at_the_next_address_is_not_trusted(nodes: list[Node]) -> None:
    wrong = msgspec.structs.replace(nodes[1].address, spki="0" * 64)
    nodes[0].ring.link(link_of(nodes, 0, next=wrong))
    assert "should be" in nodes[0].expect(LinkFailed).error.message


def test_a_certificate_of_another_fleet_gets_nothing(nodes: list[Node], tmp_path: Path) -> None:
    stranger = TestFleet(tmp_path).enrol("stranger")
    nodes[1].ring.link(link_of(nodes, 1, deadline=2.0))
    node = Node(stranger, 0)
    try:
        node.ring.link(link_of(nodes, 0, deadline=2.0))
        assert node.expect(LinkFailed).error.code == "wrong_fleet"
    finally:
        node.ring.close()


def test_garbage_after_the_hello_ends_the_link_with_its_cause(nodes: list[Node]) -> None:
    form(nodes)
    connection = nodes[0].ring._current.next  # type: ignore[union-attr]
    assert connection is not None
    connection._sock.sendall(b"\x00" * 64)
    lost = nodes[1].expect(LinkLost)
    assert "not a frame" in lost.error.message


def test_a_second_connection_of_the_same_epoch_is_refused(nodes: list[Node]) -> None:
    form(nodes)
    secure = security(nodes[0].member)
    connection = connect(
        ["127.0.0.1"],
        nodes[1].ring.port,
        secure.client,
        server_hostname=secure.hostname(nodes[1].member.identity.device_id),
        authenticate=secure.spki_of,
        deadline=5,
    )
    fleet_id = nodes[0].member.enrolment.info.fleet_id
    hello = Hello(1, "0", "OV 1", fleet_id, "c", 1, 0, 1, 3, MODEL, 10, "exact")
    with pytest.raises(Exception, match="already"):
        client_hello(connection, hello)
    nodes[0].ring.send(Drop(1, 5))
    assert nodes[1].expect(Received).frame == Drop(1, 5)


ME = Self("me", "f", MODEL, 10, "exact", "OpenVINO 2026.4.1 Some CPU")
LINK = Link(
    "c", 4, 1, 3, MODEL, 20, PeerAddress("n", "sn", (), 1), PeerAddress("p", "sp", (), 1), 1, 1
)
HELLO = Hello(1, "1.0", "OpenVINO 2026.4.1-99 Other CPU", "f", "c", 4, 0, 1, 3, MODEL, 10, "exact")


def test_a_fitting_hello_meets_no_objection() -> None:
    assert objection(HELLO, "sp", ME, LINK, taken=False) is None


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"epoch": 5}, True),
        ({"chain": "other"}, True),
        ({"epoch": 3}, False),
        ({"fleet": "g"}, False),
        ({"from_stage": 2}, False),
        ({"to_stage": 2}, False),
        ({"model": "n"}, False),
        ({"runtime": "OpenVINO 2026.3.0"}, False),
    ],
)
def test_only_what_time_can_mend_may_be_asked_again(change: dict[str, Any], again: bool) -> None:
    error = objection(msgspec.structs.replace(HELLO, **change), "sp", ME, LINK, taken=False)
    assert error is not None
    assert (type(error) is FleetUnavailable) == again


def test_runtimes_are_compared_by_name_and_version() -> None:
    assert release("OpenVINO 2026.4.1-1234-abc Intel(R) Core(TM)") == "OpenVINO 2026.4.1"
