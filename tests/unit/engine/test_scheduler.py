from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from fleetapp.engine.scheduler import Frame, Limits, Scheduler
from fleetapp.errors import ContextTooLong, NoCapacity, StaleFrame
from fleetapp.wire.frames import SampledToken, Segment

ROOMY = Limits(kv_blocks=1000, block_size=16, frames=1)


def answers(frame: Frame, token: int = 5) -> list[SampledToken]:
    """What the last stage would say to a frame."""
    return [
        SampledToken(s.slot, s.generation, s.past_len + s.count, token)
        for s in frame.segments
        if s.sample
    ]


def next_frame(scheduler: Scheduler) -> Frame:
    frame = scheduler.next_frame()
    assert frame is not None
    return frame


def prompt(length: int) -> tuple[int, ...]:
    return tuple(range(length))


def test_a_prompt_is_fed_whole_and_then_token_by_token() -> None:
    scheduler = Scheduler(ROOMY)
    scheduler.add("a", prompt(5), 3)
    first = next_frame(scheduler)
    assert first.segments == (Segment(0, 1, 0, 5, True),)
    assert first.tokens == (0, 1, 2, 3, 4)
    assert scheduler.next_frame() is None
    completion = scheduler.complete(first.step, answers(first, token=42))
    assert [(c.request_id, c.token, c.index) for c in completion.chosen] == [("a", 42, 0)]
    second = next_frame(scheduler)
    assert second.segments == (Segment(0, 1, 5, 1, True),)
    assert second.tokens == (42,)


def test_a_long_prompt_shares_frames_with_decodes() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=1, slots=4, frame_tokens=8))
    scheduler.add("a", prompt(2), 50)
    frame = next_frame(scheduler)
    scheduler.add("b", prompt(20), 50)
    shapes = []
    for _ in range(4):
        scheduler.complete(frame.step, answers(frame))
        frame = next_frame(scheduler)
        shapes.append([(s.slot, s.count, s.sample) for s in frame.segments])
    assert shapes == [
        [(0, 1, True), (1, 7, False)],
        [(0, 1, True), (1, 7, False)],
        [(0, 1, True), (1, 6, True)],
        [(0, 1, True), (1, 1, True)],
    ]


def test_sequences_are_divided_so_that_every_stage_is_busy() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=3))
    for i in range(8):
        scheduler.add(f"r{i}", prompt(3), 50)
    widths = [len(next_frame(scheduler).segments) for _ in range(3)]
    assert sorted(widths) == [2, 3, 3]
    assert scheduler.next_frame() is None


def test_frames_grow_back_together_when_groups_shrink() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=2))
    for i in range(8):
        scheduler.add(f"r{i}", prompt(3), 50)
    frames = [next_frame(scheduler), next_frame(scheduler)]
    for i in range(3):
        scheduler.finish(f"r{i}")
    widths: list[int] = []
    for _ in range(6):
        frame = frames.pop(0)
        scheduler.complete(frame.step, answers(frame))
        frames.append(next_frame(scheduler))
        widths.append(len(frames[-1].segments))
    assert sorted(widths[-2:]) == [2, 3]


def test_blocks_for_the_whole_answer_are_reserved_at_admission() -> None:
    scheduler = Scheduler(Limits(kv_blocks=4, block_size=8, frames=1))
    scheduler.add("a", prompt(9), 8)
    scheduler.add("b", prompt(9), 8)
    assert len(next_frame(scheduler).opened) == 1
    assert (scheduler.running, scheduler.waiting, scheduler.free_blocks) == (1, 1, 1)
    scheduler.finish("a")
    assert scheduler.free_blocks == 4


def test_a_large_request_at_the_front_is_not_overtaken() -> None:
    scheduler = Scheduler(Limits(kv_blocks=4, block_size=8, frames=1))
    scheduler.add("a", prompt(9), 7)
    frame = next_frame(scheduler)
    scheduler.add("large", prompt(20), 12)
    scheduler.add("small", prompt(1), 1)
    scheduler.complete(frame.step, answers(frame))
    assert next_frame(scheduler).opened == ()
    scheduler.finish("a")
    assert scheduler.waiting == 2
    scheduler.complete(2, [])
    assert [o.request_id for o in next_frame(scheduler).opened] == ["large"]


def test_what_never_fits_is_refused() -> None:
    scheduler = Scheduler(Limits(kv_blocks=2, block_size=8, frames=1, waiting=1))
    with pytest.raises(ContextTooLong, match="16"):
        scheduler.add("a", prompt(10), 7)
    scheduler.add("b", prompt(10), 6)
    with pytest.raises(NoCapacity):
        scheduler.add("c", prompt(1), 1)


def test_a_slot_never_has_the_same_generation_twice() -> None:
    scheduler = Scheduler(ROOMY, first_generation=10)
    seen = set()
    for i in range(5):
        scheduler.add(f"r{i}", prompt(1), 1)
        frame = next_frame(scheduler)
        seen.add(frame.segments[0].generation)
        scheduler.finish(f"r{i}")
        scheduler.complete(frame.step, answers(frame))
    assert seen == {11, 12, 13, 14, 15}
    assert scheduler.last_generation == 15


def test_a_step_that_is_not_in_flight_is_refused_by_name() -> None:
    scheduler = Scheduler(ROOMY)
    with pytest.raises(StaleFrame, match="Step 3"):
        scheduler.complete(3, [])


def test_a_missing_or_misplaced_token_is_reported_as_lost() -> None:
    scheduler = Scheduler(ROOMY)
    for name in "abc":
        scheduler.add(name, prompt(2), 5)
    frame = next_frame(scheduler)
    good, wrong, _ = answers(frame)
    wrong = SampledToken(wrong.slot, wrong.generation, wrong.position + 1, wrong.token)
    completion = scheduler.complete(frame.step, [good, wrong])
    assert [c.request_id for c in completion.chosen] == ["a"]
    assert completion.lost == ("b", "c")


def test_a_frame_of_which_every_segment_was_dropped_is_complete() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=1))
    scheduler.add("a", prompt(2), 5)
    scheduler.add("b", prompt(2), 5)
    frame = next_frame(scheduler)
    assert scheduler.drop(frame.step, 0) == "a"
    assert scheduler.drop(frame.step, 0) is None
    scheduler.finish("a")
    assert scheduler.in_flight == (frame.step,)
    scheduler.finish("b")
    assert scheduler.drop(frame.step, 1) is None
    assert scheduler.in_flight == ()
    assert scheduler.drop(99, 0) is None


class SchedulerMachine(RuleBasedStateMachine):
    """Any interleaving of arrivals, frames, answers, faults and cancels."""

    frames = Bundle("frames")

    @initialize(
        frames=st.integers(1, 4),
        slots=st.integers(1, 6),
        budget=st.integers(7, 20),
        kv=st.integers(3, 20),
    )
    def begin(self, frames: int, slots: int, budget: int, kv: int) -> None:
        self.limits = Limits(kv, 4, frames=frames, slots=slots, frame_tokens=budget)
        self.scheduler = Scheduler(self.limits)
        self.prompts: dict[str, tuple[int, int]] = {}
        self.alive: set[str] = set()
        self.order: list[str] = []
        self.slots: dict[int, tuple[str, int]] = {}
        self.fed: dict[str, int] = {}
        self.in_flight: set[str] = set()
        self.passed_over: dict[str, int] = {}
        self.count = 0

    @rule(length=st.integers(1, 40), answer=st.integers(1, 10))
    def add(self, length: int, answer: int) -> None:
        name = f"r{self.count}"
        self.count += 1
        if self.limits.blocks(length + answer) > self.limits.kv_blocks:
            with pytest.raises(ContextTooLong):
                self.scheduler.add(name, prompt(length), answer)
            return
        self.scheduler.add(name, prompt(length), answer)
        self.prompts[name] = (length, answer)
        self.alive.add(name)
        self.order.append(name)

    @rule(target=frames)
    def launch(self) -> Frame | None:
        ready = {n for n in self.fed if n in self.alive and n not in self.in_flight}
        frame = self.scheduler.next_frame()
        if frame is None:
            full = len(self.scheduler.in_flight) == self.limits.frames
            assert full or not ready
            return None
        for opened in frame.opened:
            assert opened.slot not in self.slots
            assert opened.request_id == self.order.pop(0)
            self.slots[opened.slot] = (opened.request_id, opened.generation)
            self.fed[opened.request_id] = 0
        assert len(frame.tokens) == sum(s.count for s in frame.segments) <= self.limits.frame_tokens
        taken = set()
        for segment in frame.segments:
            name, generation = self.slots[segment.slot]
            assert generation == segment.generation
            assert name not in self.in_flight
            assert segment.past_len == self.fed[name]
            assert segment.count > 0
            self.fed[name] += segment.count
            length = self.prompts[name][0]
            assert segment.sample == (self.fed[name] >= length)
            assert segment.count == 1 or self.fed[name] <= length
            self.in_flight.add(name)
            taken.add(name)
        for name in taken:
            self.passed_over.pop(name, None)
        for name in ready - taken:
            # Each frame takes from the front, so nobody is passed over more often than there
            # are others in front of it.
            self.passed_over[name] = self.passed_over.get(name, 0) + 1
            assert self.passed_over[name] <= self.limits.slots
        return frame

    @rule(frame=consumes(frames), lose=st.booleans())
    def answer(self, frame: Frame | None, lose: bool) -> None:
        if frame is None:
            return
        names = self._names(frame)
        if frame.step not in self.scheduler.in_flight:
            with pytest.raises(StaleFrame):
                self.scheduler.complete(frame.step, answers(frame))
            return
        completion = self.scheduler.complete(frame.step, answers(frame)[int(lose) :])
        self.in_flight -= names
        for name in completion.lost:
            assert lose
            self._finish(name)
        for chosen in completion.chosen:
            if chosen.index + 1 >= self.prompts[chosen.request_id][1]:
                self._finish(chosen.request_id)

    @rule(frame=frames, index=st.integers(0, 5))
    def fault(self, frame: Frame | None, index: int) -> None:
        if frame is None or index >= len(frame.segments):
            return
        name = self.scheduler.drop(frame.step, frame.segments[index].slot)
        if name is not None:
            assert name in self.in_flight
            self._finish(name)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self._finish(data.draw(st.sampled_from(sorted(self.alive))))

    def _names(self, frame: Frame) -> set[str]:
        pairs = {(s.slot, s.generation) for s in frame.segments}
        return {n for slot, (n, g) in self.slots.items() if (slot, g) in pairs}

    def _finish(self, name: str) -> None:
        closed = self.scheduler.finish(name)
        self.alive.discard(name)
        self.in_flight.discard(name)
        self.passed_over.pop(name, None)
        if name in self.fed:
            assert closed is not None
            assert self.slots.pop(closed.slot) == (name, closed.generation)
            del self.fed[name]
        else:
            assert closed is None
            self.order.remove(name)
        assert self.scheduler.finish(name) is None

    @invariant()
    def everything_is_accounted_for(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        assert self.scheduler.running == len(self.slots) <= self.limits.slots
        assert self.scheduler.waiting == len(self.order)
        reserved = sum(
            self.limits.blocks(sum(self.prompts[name])) for name, _ in self.slots.values()
        )
        assert self.scheduler.free_blocks == self.limits.kv_blocks - reserved >= 0
        assert len(self.scheduler.in_flight) <= self.limits.frames

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for name in sorted(self.alive):
            self._finish(name)
        assert self.scheduler.free_blocks == self.limits.kv_blocks
        assert (self.scheduler.running, self.scheduler.waiting) == (0, 0)


SchedulerMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
TestAnyInterleaving = SchedulerMachine.TestCase
