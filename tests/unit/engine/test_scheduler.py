from __future__ import annotations

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from fleetapp.engine.kv import SlotTable
from fleetapp.engine.scheduler import (
    Batch,
    Chosen,
    Closed,
    Dropped,
    Frame,
    Kept,
    Limits,
    Opened,
    Scheduler,
    Spilled,
)
from fleetapp.errors import ContextTooLong, NoCapacity, StaleFrame
from fleetapp.types import Priority
from fleetapp.wire.frames import Prefix, SampledToken, Segment

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


def prompt(length: int, first: int = 0) -> tuple[int, ...]:
    """Prompts with another ``first`` share nothing."""
    return tuple(range(first, first + length))


def opened(scheduler: Scheduler) -> list[Opened]:
    return [o for o in scheduler.orders() if isinstance(o, Opened)]


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
    scheduler.add("b", prompt(20, 100), 50)
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
        scheduler.add(f"r{i}", prompt(3, 10 * i), 50)
    frame = next_frame(scheduler)
    scheduler.complete(frame.step, answers(frame))
    widths = [len(next_frame(scheduler).segments) for _ in range(3)]
    assert sorted(widths) == [2, 3, 3]
    assert scheduler.next_frame() is None


def test_frames_grow_back_together_when_groups_shrink() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=2))
    for i in range(8):
        scheduler.add(f"r{i}", prompt(3, 10 * i), 50)
    frame = next_frame(scheduler)
    scheduler.complete(frame.step, answers(frame))
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


def answer_to(scheduler: Scheduler, prompt: tuple[int, ...], count: int, name: str) -> list[int]:
    """Let one request run alone; what it got."""
    scheduler.add(name, prompt, count)
    got: list[int] = []
    while len(got) < count:
        frame = next_frame(scheduler)
        got += [c.token for c in scheduler.complete(frame.step, answers(frame, len(got))).chosen]
    scheduler.finish(name)
    return got


def test_blocks_are_given_for_the_prompt_and_not_for_all_of_the_answer() -> None:
    scheduler = Scheduler(Limits(kv_blocks=8, block_size=8, frames=1))
    scheduler.add("a", prompt(9), 55)
    scheduler.add("b", prompt(9, 100), 55)
    next_frame(scheduler)
    assert [o.request_id for o in opened(scheduler)] == ["a", "b"]
    assert (scheduler.running, scheduler.free_blocks) == (2, 4)


def test_a_large_request_at_the_front_is_not_overtaken() -> None:
    scheduler = Scheduler(Limits(kv_blocks=4, block_size=8, frames=1, keep_blocks=0))
    scheduler.add("a", prompt(9), 7)
    frame = next_frame(scheduler)
    scheduler.add("large", prompt(20, 100), 12)
    scheduler.add("small", prompt(1, 200), 1)
    scheduler.complete(frame.step, answers(frame))
    scheduler.orders()
    next_frame(scheduler)
    assert opened(scheduler) == []
    scheduler.finish("a")
    assert scheduler.waiting == 2
    scheduler.complete(2, [])
    next_frame(scheduler)
    assert [o.request_id for o in opened(scheduler)] == ["large"]


def test_the_later_one_gives_its_blocks_up_and_goes_on_where_it_was() -> None:
    scheduler = Scheduler(Limits(kv_blocks=5, block_size=8, frames=1, keep_blocks=0))
    scheduler.add("a", prompt(9), 23)
    scheduler.add("b", prompt(9, 100), 23)
    got: dict[str, list[Chosen]] = {"a": [], "b": []}
    positions: list[tuple[int, int]] = []
    while any(len(c) < 23 for c in got.values()):
        frame = next_frame(scheduler)
        positions += [(s.past_len, s.count) for s in frame.segments]
        for chosen in scheduler.complete(frame.step, answers(frame, frame.step)).chosen:
            got[chosen.request_id].append(chosen)
            if len(got[chosen.request_id]) == 23:
                scheduler.finish(chosen.request_id)
    assert scheduler.preemptions == 1
    assert [c.index for c in got["b"]] == list(range(23))
    assert (0, 9 + 8) in positions  # prompt and answer of b, computed again
    assert scheduler.free_blocks == 5


def test_a_preempted_sequence_ignores_what_was_on_its_way() -> None:
    scheduler = Scheduler(Limits(kv_blocks=4, block_size=8, frames=1, slots=1))
    scheduler.add("batch", prompt(9), 5, "batch")
    frame = next_frame(scheduler)
    scheduler.add("now", prompt(9, 100), 5)
    assert scheduler.next_frame() is None
    completion = scheduler.complete(frame.step, answers(frame))
    assert [c.request_id for c in completion.chosen] == ["batch"]
    frame = next_frame(scheduler)
    assert [o.request_id for o in opened(scheduler)] == ["batch", "now"]
    late = SampledToken(0, 1, 10, 7)
    assert scheduler.complete(frame.step, [*answers(frame), late]).lost == ()


def test_interactive_requests_go_first_but_not_for_ever() -> None:
    scheduler = Scheduler(Limits(1000, 8, frames=1, slots=1, patience=3))
    scheduler.add("batch", prompt(9), 5, "batch")
    order: list[str] = []
    for i in range(6):
        scheduler.add(f"now{i}", prompt(9, 100 * i), 5)
        frame = next_frame(scheduler)
        order += [o.request_id for o in opened(scheduler)]
        scheduler.finish(order[-1])
        scheduler.complete(frame.step, answers(frame))
    assert order == ["now0", "now1", "now2", "batch", "now3", "now4"]


def test_sequences_of_a_ring_that_is_over_go_on_in_the_next_in_their_old_order() -> None:
    old = Scheduler(Limits(1000, 8, frames=2, slots=2, patience=2))
    old.add("batch", prompt(9), 5, "batch")
    for i in range(3):
        old.add(f"now{i}", prompt(9, 100 * i + 50), 5)
    frame = next_frame(old)
    old.complete(frame.step, answers(frame, token=7))
    assert old.running == 2
    next_frame(old)  # never comes back
    left = old.leave()
    assert [seq.request_id for seq in left] == ["batch", "now0", "now1", "now2"]
    assert all(seq.slot == -1 and seq.past == 0 for seq in left)
    limits = Limits(100, 16, frames=1, slots=1, patience=2)
    new = Scheduler(limits, first_generation=old.last_generation)
    for seq in left:
        new.take(seq)
    new.add("late", prompt(9, 900), 5)
    order: list[str] = []
    for _ in range(5):
        frame = next_frame(new)
        (opening,) = opened(new)
        order.append(opening.request_id)
        assert opening.generation > old.last_generation
        if order[-1] == "now0":
            assert frame.tokens == (*prompt(9, 50), 7)
        chosen = new.complete(frame.step, answers(frame)).chosen
        assert [c.index for c in chosen] == [1 if order[-1] in ("now0", "now1") else 0]
        new.finish(order[-1])
    # Two have overtaken the batch request before: its patience is not given back.
    assert order == ["batch", "now0", "now1", "now2", "late"]


def test_a_turn_with_its_history_computes_only_what_is_new() -> None:
    scheduler = Scheduler(ROOMY)
    first = prompt(100)
    said = answer_to(scheduler, first, 30, "a")
    scheduler.orders()
    again = (*first, *said, *prompt(7, 500))
    scheduler.add("b", again, 5)
    frame = next_frame(scheduler)
    (order, dropped) = scheduler.orders()
    assert isinstance(order, Opened)
    assert order.prefix == Prefix(1, 129)  # its last token was chosen and never fed
    assert frame.segments == (Segment(1, 2, 129, 8, True),)
    assert frame.tokens == again[129:]
    assert dropped == Dropped(1)  # the running one has all of it


def test_at_least_one_token_is_computed() -> None:
    scheduler = Scheduler(ROOMY)
    answer_to(scheduler, prompt(64), 5, "a")
    scheduler.add("b", prompt(64), 5)
    frame = next_frame(scheduler)
    assert frame.segments == (Segment(1, 2, 63, 1, True),)


def test_a_shared_beginning_is_computed_once_for_all_who_come_at_once() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=2))
    system = prompt(200)
    for i in range(4):
        scheduler.add(f"r{i}", (*system, *prompt(10, 1000 * (i + 1))), 5)
    frames = [next_frame(scheduler), next_frame(scheduler)]
    computed = sum(len(f.tokens) for f in frames)
    while sum(s.sample for f in frames for s in f.segments) < 4:
        scheduler.complete(frames[-2].step, answers(frames[-2]))
        frames.append(next_frame(scheduler))
        computed += sum(s.count for s in frames[-1].segments if s.count > 1)
    assert computed == 200 + 4 * 10
    kinds = [type(o) for o in scheduler.orders()]
    assert (kinds.count(Opened), kinds.count(Kept), kinds.count(Dropped)) == (4, 3, 3)


def test_kept_blocks_never_hold_up_a_request() -> None:
    scheduler = Scheduler(Limits(kv_blocks=10, block_size=8, frames=1, keep_blocks=10))
    for i in range(3):
        answer_to(scheduler, prompt(20, 100 * i), 4, f"old{i}")
    assert (scheduler.memory.kept, scheduler.free_blocks) == (3, 1)
    scheduler.orders()
    scheduler.add("big", prompt(60, 900), 20)
    next_frame(scheduler)
    assert [o for o in scheduler.orders() if isinstance(o, Dropped)] == [
        Dropped(1),
        Dropped(2),
        Dropped(3),
    ]


def test_the_least_recently_used_leaves_first_to_outside_if_there_is_room() -> None:
    limits = Limits(kv_blocks=10, block_size=8, frames=1, keep_blocks=6, spill_blocks=4)
    scheduler = Scheduler(limits)
    for i in range(4):
        answer_to(scheduler, prompt(20, 100 * i), 4, f"old{i}")
    moved = [o for o in scheduler.orders() if isinstance(o, Spilled | Dropped)]
    assert moved == [Spilled(1), Dropped(1), Spilled(2)]
    scheduler.add("again", prompt(20, 100), 4)  # what was spilled comes back
    frame = next_frame(scheduler)
    (order,) = opened(scheduler)
    assert order.prefix == Prefix(2, 19)
    assert frame.segments[0].past_len == 19


def test_what_a_stage_has_lost_is_computed_again() -> None:
    scheduler = Scheduler(ROOMY)
    answer_to(scheduler, prompt(64), 5, "a")
    scheduler.add("b", (*prompt(50), 7, 8), 5)
    frame = next_frame(scheduler)
    assert frame.segments[0].past_len == 50
    assert scheduler.drop(frame.step, frame.segments[0].slot) == "b"
    scheduler.again("b")
    assert scheduler.memory.kept == 0
    frame = next_frame(scheduler)
    assert frame.segments[0].past_len == 0
    assert scheduler.complete(frame.step, answers(frame)).chosen[0].request_id == "b"


def test_pieces_of_one_prompt_fill_all_stages() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=3))
    scheduler.add("a", prompt(700), 5)
    frames = [next_frame(scheduler) for _ in range(3)]
    assert scheduler.next_frame() is None
    spans = [(f.segments[0].past_len, f.segments[0].count) for f in frames]
    assert all(s[0] + s[1] == t[0] for s, t in itertools.pairwise(spans))
    assert not any(f.segments[0].sample for f in frames)


def test_a_decode_shares_each_frame_with_one_piece_within_the_pace() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=1))
    scheduler.add("a", prompt(10), 500)
    frame = next_frame(scheduler)
    scheduler.pace(64)
    scheduler.add("b", prompt(700, 1000), 5)
    for _ in range(700 // 64):
        scheduler.complete(frame.step, answers(frame))
        frame = next_frame(scheduler)
        assert [s.count for s in frame.segments] == [1, 64]


@pytest.mark.parametrize("stages", [2, 3, 5])
def test_pieces_between_two_tokens_of_an_answer_are_within_the_pace_together(stages: int) -> None:
    scheduler = Scheduler(Limits(2000, 16, frames=stages))
    scheduler.pace(96)
    for name in "abcd":
        scheduler.add(name, prompt(4, ord(name) * 1000), 400)
    flying = [next_frame(scheduler)]
    scheduler.complete(flying[0].step, answers(flying.pop(0)))
    scheduler.add("long", prompt(1500, 10**6), 5)
    left = 1500
    for _ in range(400):
        while (frame := scheduler.next_frame()) is not None:
            flying.append(frame)
        pieces = [s.count for f in flying for s in f.segments if s.count > 1]
        assert sum(pieces) <= 96
        first = flying.pop(0)
        left -= sum(s.count for s in first.segments if s.count > 1)
        scheduler.complete(first.step, answers(first))
        if left <= 1:
            return
    raise AssertionError(f"{left} positions of the prompt were never computed")


def test_a_crowd_of_short_prompts_is_divided_among_the_stages() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=2))
    for i in range(16):
        scheduler.add(str(i), prompt(16, 1000 * i), 4)
    frames = [next_frame(scheduler), next_frame(scheduler)]
    assert scheduler.next_frame() is None
    sizes = [len(f.tokens) for f in frames]
    assert max(sizes) <= 64
    assert min(sizes) >= 32


def test_a_short_question_does_not_wait_for_a_long_text() -> None:
    scheduler = Scheduler(Limits(1000, 16, frames=1, frame_tokens=64))
    scheduler.add("long", prompt(700), 5)
    scheduler.add("short", prompt(20, 1000), 5)
    frame = next_frame(scheduler)
    assert [(s.count, s.sample) for s in frame.segments] == [(44, False), (20, True)]


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


def next_of(text: list[int]) -> int:
    """The token that follows a text: of everything in it, and yet sometimes easy to guess."""
    return (sum(text[-7:]) * 31 + len(text) // 5) % 11


class Stages:
    """Does what stages do, with texts instead of keys and values; all bounds are checked."""

    def __init__(self, limits: Limits) -> None:
        self.table = SlotTable(limits.kv_blocks, limits.block_size, limits.tokens)
        self.texts: dict[int, list[int]] = {}
        self.kept: dict[int, list[int]] = {}
        self.slots: dict[str, Opened] = {}

    def obey(self, order: object) -> None:
        match order:
            case Opened():
                assert order.slot not in self.texts
                self.table.open(order.slot, order.generation, order.prefix)
                prefix = order.prefix
                begin = [] if prefix is None else self.kept[prefix.keep][: prefix.length]
                self.texts[order.slot] = begin
                self.slots[order.request_id] = order
            case Closed():
                text = self.texts.pop(order.slot)
                assert len(text) >= order.keep_len
                self.table.close(order.slot, order.generation, order.keep, order.keep_len)
                if order.keep:
                    self.kept[order.keep] = text[: order.keep_len]
            case Kept():
                assert len(self.texts[order.slot]) >= order.length
                self.table.keep(order.slot, order.generation, order.keep, order.length)
                self.kept[order.keep] = self.texts[order.slot][: order.length]
            case Dropped():
                self.table.drop(order.keep)
                del self.kept[order.keep]
            case Spilled():
                assert self.table.spill(order.keep)

    def compute(self, frame: Frame) -> list[SampledToken]:
        self.table.commit(frame.segments, self.table.reserve(frame.segments).held)
        assert len(frame.tokens) == sum(s.count for s in frame.segments)
        found: list[SampledToken] = []
        at = 0
        for s in frame.segments:
            text = self.texts[s.slot]
            assert s.past_len <= len(text)
            text[s.past_len :] = frame.tokens[at : at + s.count]
            at += s.count
            if s.sample:
                end = len(text) - len(s.drafts)
                for i in range(1 + len(s.drafts)):
                    token = next_of(text[: end + i])
                    found.append(SampledToken(s.slot, s.generation, end + i, token))
                    if i < len(s.drafts) and token != s.drafts[i]:
                        break
        return found


class SchedulerMachine(RuleBasedStateMachine):
    """Any interleaving of arrivals, frames, answers, faults and cancels.

    Stages compute a frame when it is sent, the head hears of it when the machine likes.
    """

    @initialize(
        frames=st.integers(1, 4),
        slots=st.integers(1, 6),
        budget=st.integers(7, 40),
        kv=st.integers(3, 20),
        keep=st.integers(0, 20),
        spill=st.integers(0, 12),
    )
    def begin(self, frames: int, slots: int, budget: int, kv: int, keep: int, spill: int) -> None:
        self.limits = Limits(
            kv,
            4,
            frames=frames,
            slots=slots,
            frame_tokens=budget,
            keep_blocks=keep,
            spill_blocks=spill,
            keep_sequences=5,
            patience=2,
        )
        self.scheduler = Scheduler(self.limits)
        self.stages = Stages(self.limits)
        self.wanted: dict[str, tuple[tuple[int, ...], int]] = {}
        self.got: dict[str, list[int]] = {}
        self.sent: list[tuple[Frame, list[SampledToken]]] = []
        self.done: list[str] = []
        self.guess: list[int] = []

    @rule(
        base=st.integers(0, 1),
        length=st.integers(1, 30),
        own=st.integers(0, 3),
        answer=st.integers(1, 12),
        priority=st.sampled_from(["interactive", "batch"]),
    )
    def add(self, base: int, length: int, own: int, answer: int, priority: Priority) -> None:
        self._add((*prompt(length, 100 * base), *prompt(own, 900)), answer, priority)

    @precondition(lambda self: self.done)
    @rule(data=st.data(), answer=st.integers(1, 8))
    def next_turn(self, data: st.DataObject, answer: int) -> None:
        """Prompt and answer of somebody who ended, and a question."""
        name = data.draw(st.sampled_from(self.done))
        self._add((*self.wanted[name][0], *self.got[name], 77), answer, "interactive")

    def _add(self, ids: tuple[int, ...], answer: int, priority: Priority) -> None:
        name = f"r{len(self.wanted)}"
        if self.limits.blocks(len(ids) + answer) > self.limits.kv_blocks:
            with pytest.raises(ContextTooLong):
                self.scheduler.add(name, ids, answer)
            return
        self.scheduler.add(name, ids, answer, priority)
        self.wanted[name] = (ids, answer)
        self.got[name] = []

    @rule(guess=st.lists(st.integers(0, 10), max_size=3), drafts=st.booleans())
    def launch(self, guess: list[int], drafts: bool) -> None:
        self.guess = guess
        self._launch(drafts)

    def _launch(self, drafts: bool) -> bool:
        frame = self.scheduler.next_frame(self._propose if drafts else None)
        for order in self.scheduler.orders():
            self.stages.obey(order)
        if frame is None:
            # Somebody can always go on: nothing waits for what never comes.
            assert self.scheduler.in_flight or not self.scheduler.running
            assert self.scheduler.in_flight or not self.scheduler.waiting
            return False
        assert 0 < len(frame.tokens) <= self.limits.frame_tokens
        owed = {(t.slot, t.generation) for _, tokens in self.sent for t in tokens}
        assert not owed & {(s.slot, s.generation) for s in frame.segments}
        self.sent.append((frame, self.stages.compute(frame)))
        return True

    def _propose(self, batch: Batch) -> dict[str, tuple[int, ...]]:
        """Half of the guesses are right."""
        drafts: dict[str, tuple[int, ...]] = {}
        room = batch.room
        for decode in batch.decodes:
            text = [*self.wanted[decode.request_id][0], *self.got[decode.request_id]]
            assert decode.room == self.wanted[decode.request_id][1] - (
                len(self.got[decode.request_id]) + 1
            )
            guess: list[int] = []
            for g in self.guess[: min(decode.room, room)]:
                guess.append(next_of([*text, *guess]) if g % 2 else g)
            room -= len(guess)
            drafts[decode.request_id] = tuple(guess)
        return drafts

    @precondition(lambda self: self.sent)
    @rule()
    def answer(self) -> None:
        """Frames come back in the order in which they were sent."""
        self._answer()

    def _answer(self) -> None:
        frame, tokens = self.sent.pop(0)
        if frame.step not in self.scheduler.in_flight:
            with pytest.raises(StaleFrame):
                self.scheduler.complete(frame.step, tokens)
            return
        completion = self.scheduler.complete(frame.step, tokens)
        assert not completion.lost
        for chosen in completion.chosen:
            ids, count = self.wanted[chosen.request_id]
            got = self.got[chosen.request_id]
            if len(got) == count:
                continue  # the head ends it there
            assert chosen.index == len(got)
            assert chosen.token == next_of([*ids, *got])
            got.append(chosen.token)
            if len(got) == count:
                self._finish(chosen.request_id)
                self.done.append(chosen.request_id)

    @precondition(lambda self: self.sent)
    @rule(index=st.integers(0, 5), lost=st.booleans())
    def fault(self, index: int, lost: bool) -> None:
        frame, tokens = self.sent[0]
        if index >= len(frame.segments):
            return
        slot = frame.segments[index].slot
        name = self.scheduler.drop(frame.step, slot)
        tokens[:] = [t for t in tokens if t.slot != slot]
        if name is None:
            return
        assert name in self._alive()
        if lost:
            self.scheduler.again(name)
        else:
            self._finish(name, keep=False)

    @precondition(lambda self: self._alive())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self._finish(data.draw(st.sampled_from(self._alive())))

    def _alive(self) -> list[str]:
        return sorted(n for n, got in self.got.items() if n not in self.done)

    def _finish(self, name: str, *, keep: bool = True) -> None:
        before = self.scheduler.running + self.scheduler.waiting
        self.scheduler.finish(name, keep=keep)
        self.scheduler.finish(name)
        assert self.scheduler.running + self.scheduler.waiting == before - 1
        if len(self.got[name]) < self.wanted[name][1]:
            del self.got[name]

    @invariant()
    def everything_is_accounted_for(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for order in self.scheduler.orders():
            self.stages.obey(order)
        memory = self.scheduler.memory
        assert self.scheduler.running == len(self.stages.texts) <= self.limits.slots
        assert memory.free == self.stages.table.free_blocks
        assert memory.kept == len(self.stages.kept) == self.stages.table.kept <= 5
        assert len(self.scheduler.in_flight) <= self.limits.frames

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for _ in range(10_000):  # everybody gets to the end: nobody starves
            if not self._alive():
                break
            if not self._launch(drafts=False):
                self._answer()
        assert not self._alive()
        while self.sent:
            self._answer()
        for order in self.scheduler.orders():
            self.stages.obey(order)
        assert (self.scheduler.running, self.scheduler.waiting) == (0, 0)
        memory = self.scheduler.memory
        assert memory.free + memory.kept_blocks == self.limits.kv_blocks
        for keep in list(self.stages.kept):
            memory.forget(keep)
        assert memory.free == self.limits.kv_blocks
        assert len(memory._computed) == 0


SchedulerMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
TestAnyInterleaving = SchedulerMachine.TestCase
