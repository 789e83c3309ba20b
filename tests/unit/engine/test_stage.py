"""A stage between its neighbours: what it sends on for what it is sent."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import numpy as np
import pytest

from fleetapp.engine import pipe
from fleetapp.engine.executor.base import ExecutorInfo
from fleetapp.engine.stage import Stage
from fleetapp.engine.transport import LinkFailed, LinkLost, LinkUp, Received
from fleetapp.engine.worker import Worker
from fleetapp.errors import ChainBroken, Malformed, NoCapacity, PeerTimeout
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import (
    Close,
    Drop,
    Fault,
    Frame,
    Open,
    Passed,
    Segment,
    StageTiming,
    Step,
    Tokens,
)
from tests.support.fake_executor import HIDDEN, FakeExecutor

GREEDY = SamplingParams(seed=1)


class Wire:
    """A transport that keeps what it is given, or refuses it."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.payloads: list[Any] = []
        self.linked = False
        self.gone = False
        self.sent_bytes = self.received_bytes = 0
        self.progress: tuple[Passed, ...] = ()
        self.blame: tuple[int, str] | None = None

    def link(self, link: pipe.Link) -> None:
        self.linked = True

    def unlink(self) -> None:
        self.linked = False

    def send(self, frame: Frame, payload: Any = None) -> None:
        if self.gone:
            raise ChainBroken("Stage 2 (device next) cannot be reached: closed.")
        self.frames.append(frame)
        self.payloads.append(payload)


class Bench:
    """Stage 1 of 3 (or the last one of 2) on epoch 5."""

    def __init__(self, *, last: bool = False, fast: bool = False, link: bool = True) -> None:
        self.executor = FakeExecutor(3, 6 if last else 5)
        self.worker = Worker(self.executor, device_id="me", fast=fast)
        self.wire = Wire()
        self.sent: list[pipe.FromRunner] = []
        self.stage = Stage(self.worker, self.wire, self.sent.append, device_id="me")
        self.last = last
        if link:
            self.link(5)
            self.stage.handle(LinkUp(5))
            assert self.sent.pop() == pipe.Linked(5)

    def link(self, epoch: int) -> None:
        self.stage.handle(
            pipe.Link(
                chain="c",
                epoch=epoch,
                stage=1,
                stages=2 if self.last else 3,
                model="m",
                next_layer=0 if self.last else 5,
                next=pipe.PeerAddress("next", "s", (), 1),
                prev=pipe.PeerAddress("prev", "s", (), 1),
                kv_blocks=64,
                block_size=8,
            )
        )

    def get(self, frame: Frame, payload: Any = None) -> None:
        raw = b"" if payload is None else payload.tobytes()
        self.stage.handle(Received(frame, memoryview(raw)))

    def step(
        self, *segments: Segment, number: int = 1, epoch: int = 5, hidden: int = HIDDEN
    ) -> None:
        rows = np.ones((sum(s.count for s in segments), hidden), np.float32)
        self.get(Step(epoch, number, segments, "f32", hidden), rows)


def untimed(frame: Frame) -> Frame:
    """How long something took is different each time."""
    return msgspec.structs.replace(frame, timings=())


def test_a_middle_stage_sends_on_what_it_computed() -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 3, True))
    opened, step = bench.wire.frames
    assert opened == Open(5, 0, 1, GREEDY)
    assert untimed(step) == Step(5, 1, (Segment(0, 1, 0, 3, True),), "f32", HIDDEN)
    assert bench.wire.payloads[1].shape == (3, HIDDEN)
    bench.get(Close(5, 0, 1))
    assert bench.wire.frames[-1] == Close(5, 0, 1)
    assert bench.worker.open_slots == 0


def test_the_last_stage_sends_tokens_and_only_those_that_were_asked_for() -> None:
    bench = Bench(last=True)
    bench.get(Open(5, 0, 1, GREEDY))
    bench.get(Open(5, 1, 2, GREEDY))
    bench.step(Segment(0, 1, 0, 3, False), Segment(1, 2, 0, 2, True))
    (tokens,) = bench.wire.frames
    assert isinstance(tokens, Tokens)
    assert [(t.slot, t.generation, t.position) for t in tokens.tokens] == [(1, 2, 2)]


def test_a_frame_that_asks_for_no_token_is_answered_all_the_same() -> None:
    bench = Bench(last=True)
    bench.get(Open(5, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 3, False))
    assert [untimed(f) for f in bench.wire.frames] == [Tokens(5, 1, ())]


@pytest.mark.parametrize("last", [False, True])
def test_where_the_time_went_travels_on_with_the_step(last: bool) -> None:
    bench = Bench(last=last)
    bench.get(Open(5, 0, 1, GREEDY))
    bench.wire.frames.clear()
    earlier = StageTiming(began=7, wait=1, compute=2, host=3)
    rows = np.ones((3, HIDDEN), np.float32)
    step = Step(5, 1, (Segment(0, 1, 0, 3, True),), "f32", HIDDEN, (earlier,))
    before = time.perf_counter()
    bench.stage.handle(Received(step, memoryview(rows.tobytes()), before - 1.0))
    spent = time.perf_counter() - before
    (frame,) = bench.wire.frames
    first, mine = frame.timings
    assert first == earlier
    assert before * 1e6 - 1 <= mine.began <= (before + spent) * 1e6 + 1
    assert 1e6 - 1 <= mine.wait <= (1.0 + spent) * 1e6 + 1
    assert 0 <= mine.compute + mine.host <= spent * 1e6 + 2


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        (Segment(3, 1, 0, 1, True), "nobody"),
        (Segment(0, 2, 0, 1, True), "generation 1"),
        (Segment(0, 1, 4, 1, True), "holds 3"),
    ],
)
def test_an_impossible_segment_is_refused_by_name_and_the_others_run(
    segment: Segment, reason: str
) -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.get(Open(5, 1, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 3, True))
    bench.step(segment, Segment(1, 1, 0, 2, True), number=2)
    fault, step = bench.wire.frames[-2:]
    assert isinstance(fault, Fault)
    assert (fault.code, fault.slot, fault.step, fault.device) == (
        "stale_frame",
        segment.slot,
        2,
        "me",
    )
    assert reason in fault.message
    assert isinstance(step, Step)
    assert step.segments == (Segment(1, 1, 0, 2, True),)
    assert bench.wire.payloads[-1].shape == (2, HIDDEN)


def test_a_rewind_is_a_shorter_past() -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 5, True))
    first = bench.wire.payloads[-1].copy()
    bench.step(Segment(0, 1, 2, 3, True), number=2)
    assert (bench.wire.payloads[-1] == first[2:]).all()


def test_a_frame_of_another_epoch_is_dropped() -> None:
    bench = Bench()
    bench.get(Open(4, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 1, True), epoch=6)
    bench.get(Drop(4, 1))
    assert bench.wire.frames == []
    assert bench.worker.open_slots == 0


def test_nothing_is_computed_before_the_ring_stands() -> None:
    bench = Bench(link=False)
    bench.link(5)
    bench.get(Open(5, 0, 1, GREEDY))
    assert bench.worker.open_slots == 0


def test_when_no_segment_is_left_nothing_but_faults_goes_on() -> None:
    bench = Bench(last=True)

    def full(_: object) -> None:
        raise NoCapacity("No block is free.")

    bench.executor._before = full
    bench.get(Open(5, 0, 1, GREEDY))
    bench.get(Open(5, 1, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 1, True), Segment(1, 1, 0, 1, True))
    assert [(f.slot, f.code) for f in bench.wire.frames if isinstance(f, Fault)] == [
        (0, "no_capacity"),
        (1, "no_capacity"),
    ]
    assert len(bench.wire.frames) == 2


def test_a_lost_neighbour_is_told_to_the_agent_and_the_next_link_can_come_at_once() -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 3, True))
    error = ChainBroken("Stage 0 (device prev) left the chain: it closed the connection.")
    bench.stage.handle(LinkLost(5, error, 0, "prev"))
    assert bench.sent == [pipe.ChainFault(5, "chain_broken", error.message, 0, "prev")]
    assert bench.worker.open_slots == 0
    assert bench.executor.free_blocks == bench.executor.info.blocks
    assert not bench.wire.linked
    bench.link(6)
    bench.stage.handle(LinkUp(6))
    assert bench.sent[-1] == pipe.Linked(6)
    bench.get(Open(6, 0, 2, GREEDY))
    bench.step(Segment(0, 2, 0, 3, True), epoch=6)
    assert isinstance(bench.wire.frames[-1], Step)


def test_a_fault_of_the_chain_ends_the_epoch() -> None:
    bench = Bench()
    fault = Fault(5, 0, "prev", "runner_failed", "It failed.")
    bench.get(fault)
    assert bench.wire.frames == [], "the transport has passed it on"
    assert bench.sent == [pipe.ChainFault(5, "runner_failed", "It failed.", 0, "prev")]
    assert not bench.wire.linked


def test_a_fault_of_one_slot_is_only_passed_on() -> None:
    bench = Bench()
    fault = Fault(5, 0, "prev", "stale_frame", "It is stale.", step=1, slot=3)
    bench.get(fault)
    assert bench.wire.frames == [fault]
    assert bench.sent == []


def test_a_next_stage_that_is_gone_is_named_to_the_agent() -> None:
    bench = Bench()
    bench.wire.gone = True
    bench.get(Open(5, 0, 1, GREEDY))
    (fault,) = bench.sent
    assert isinstance(fault, pipe.ChainFault)
    assert (fault.stage, fault.device) == (2, "next")
    assert bench.wire.linked, "the stage before shall not think that this one left"
    bench.get(Open(5, 1, 1, GREEDY))
    assert bench.worker.open_slots == 0
    assert len(bench.sent) == 1


def test_who_is_to_blame_is_named_if_it_is_known() -> None:
    bench = Bench()
    bench.wire.gone, bench.wire.blame = True, (0, "head")
    bench.get(Open(5, 0, 1, GREEDY))
    (fault,) = bench.sent
    assert isinstance(fault, pipe.ChainFault)
    assert (fault.stage, fault.device) == (0, "head")


@pytest.mark.parametrize(
    "frame", [Tokens(5, 1, ()), Step(5, 1, (Segment(0, 1, 0, 1, True),), "f32", 9)]
)
def test_what_makes_no_sense_ends_the_epoch_with_a_sentence(frame: Frame) -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.get(frame, np.zeros((1, 9), np.float32))
    fault = bench.wire.frames[-1]
    assert isinstance(fault, Fault)
    assert (fault.code, fault.slot, fault.device) == (Malformed.code, -1, "me")
    assert bench.worker.open_slots == 0
    (told,) = bench.sent
    assert isinstance(told, pipe.ChainFault)
    assert (told.stage, told.device) == (1, "me")


def test_a_slot_named_twice_in_one_step_is_malformed() -> None:
    bench = Bench()
    bench.get(Open(5, 0, 1, GREEDY))
    bench.step(Segment(0, 1, 0, 1, True), Segment(0, 1, 1, 1, True))
    fault = bench.wire.frames[-1]
    assert isinstance(fault, Fault)
    assert fault.code == Malformed.code


def test_a_ring_that_cannot_be_formed_is_reported_and_another_can_follow() -> None:
    bench = Bench(link=False)
    bench.link(5)
    bench.stage.handle(LinkFailed(5, PeerTimeout("Stage 0 did not connect.", remedy="Look.")))
    assert bench.sent == [pipe.Failed("peer_timeout", "Stage 0 did not connect.", "Look.")]
    bench.link(6)
    bench.stage.handle(LinkUp(5))
    assert len(bench.sent) == 1
    bench.stage.handle(LinkUp(6))
    assert bench.sent[-1] == pipe.Linked(6)


def test_a_stage_is_no_head() -> None:
    bench = Bench()
    bench.stage.handle(pipe.Generate("a", GREEDY, prompt="x"))
    (end,) = bench.sent
    assert isinstance(end, pipe.Finished)
    assert end.code == "bad_request"


class _Constant:
    """An executor whose hidden states are what the test wants."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.info = ExecutorInfo(False, False, 1, values.shape[1], 9, 8, 9, 99, 1, "fake")
        self.free_blocks = 9

    def open(self, slot: int, generation: int, prefix: object = None) -> None: ...

    def close(self, slot: int, generation: int) -> None: ...

    def reset(self) -> None: ...

    def forward(self, segments: tuple[Segment, ...], inputs: Any) -> np.ndarray:
        return self.values


@pytest.mark.parametrize(
    ("peak", "fast", "dtype"),
    [
        (1.0, False, "f32"),
        (1.0, True, "f16"),
        (65504.0, True, "f16"),
        (-65504.0, True, "f16"),
        (65536.0, True, "f32"),
        (-7e4, True, "f32"),
        (float("nan"), True, "f32"),
        (float("inf"), True, "f32"),
    ],
)
def test_hidden_states_are_narrowed_only_where_every_value_fits(
    peak: float, fast: bool, dtype: str
) -> None:
    values = np.array([[0.5, peak, -0.25]], np.float32)
    worker = Worker(_Constant(values), device_id="me", fast=fast)
    worker.reset(1, 1)
    worker.open(Open(1, 0, 1, GREEDY))
    outcome = worker.step(1, (Segment(0, 1, 0, 1, True),), np.zeros((1, 3), np.float32))
    assert isinstance(outcome.frame, Step)
    assert outcome.frame.dtype == dtype
    assert outcome.payload is not None
    assert np.array_equal(outcome.payload.astype(np.float32), values, equal_nan=True)
