from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fleetapp.engine.executor.blocks import BlockCache, HostBlocks
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.engine.kv import BlockAllocator, SlotTable
from fleetapp.errors import ContextTooLong, KeptLost, Malformed, NoCapacity, StaleFrame
from fleetapp.wire.frames import Prefix, Segment


@given(st.integers(1, 40), st.lists(st.integers(0, 12), max_size=60), st.randoms())
def test_no_block_is_lost_or_given_twice(blocks: int, takes: list[int], random) -> None:
    allocator = BlockAllocator(blocks)
    held: list[list[int]] = []
    for count in takes:
        if held and random.random() < 0.4:
            allocator.give(held.pop(random.randrange(len(held))))
        if count <= allocator.free:
            held.append(allocator.take(count))
        else:
            with pytest.raises(NoCapacity):
                allocator.take(count)
        flat = [b for taken in held for b in taken]
        assert len(set(flat)) == len(flat)
        assert all(0 <= b < blocks for b in flat)
        assert allocator.free == blocks - len(flat)
    for taken in held:
        allocator.give(taken)
    assert allocator.free == blocks


def test_a_block_cannot_be_given_back_twice() -> None:
    allocator = BlockAllocator(4)
    taken = allocator.take(2)
    with pytest.raises(ValueError, match="nobody holds"):
        allocator.give([taken[0], taken[0]])
    allocator.give(taken)
    with pytest.raises(ValueError, match="nobody holds"):
        allocator.give(taken)
    assert allocator.free == 4


def test_a_shared_block_is_free_when_the_last_holder_gives_it_back() -> None:
    allocator = BlockAllocator(2)
    taken = allocator.take(1)
    allocator.share(taken)
    assert allocator.shared(taken[0])
    allocator.give(taken)
    assert (allocator.free, allocator.shared(taken[0]), allocator.alone(taken)) == (1, False, 1)
    allocator.give(taken)
    assert allocator.free == 2
    with pytest.raises(ValueError, match="nobody holds"):
        allocator.share(taken)


BLOCKS, SIZE, CONTEXT = 12, 4, 20
SLOTS = st.integers(0, 3)
KEEPS = st.integers(1, 4)
LENGTHS = st.integers(0, CONTEXT)


class Slots(RuleBasedStateMachine):
    """A table, and bytes moved as it says, against the plain idea: a text for each slot.

    Every position ever written gets another number. What a slot's blocks hold must be its text,
    whatever was shared, copied, spilled and brought back meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = SlotTable(BLOCKS, SIZE, CONTEXT)
        self.bytes = np.zeros((BLOCKS, SIZE), np.int64)
        self.cache = BlockCache(self.table, [HostBlocks(self.bytes)], Spilled(1 << 20))
        self.texts: dict[int, tuple[int, list[int]]] = {}
        self.kept: dict[int, list[int]] = {}
        self.spilled: set[int] = set()
        self.written = 0

    @rule(slot=SLOTS, generation=st.integers(0, 3))
    def open(self, slot: int, generation: int) -> None:
        self.cache.open(slot, generation, None)
        self.texts[slot] = (generation, [])

    @rule(slot=SLOTS, generation=st.integers(0, 3), keep=KEEPS, length=LENGTHS)
    def open_with_prefix(self, slot: int, generation: int, keep: int, length: int) -> None:
        text = self.kept.get(keep)
        self.texts.pop(slot, None)
        if text is None or length > len(text):
            with pytest.raises(KeptLost, match=str(keep)):
                self.cache.open(slot, generation, Prefix(keep, length))
            return
        try:
            self.cache.open(slot, generation, Prefix(keep, length))
        except NoCapacity:
            assert keep in self.spilled
            assert self.table.free_blocks < -(-length // SIZE)
            return
        self.texts[slot] = (generation, text[:length])

    @rule(slot=SLOTS, generation=st.integers(0, 3), keep=st.integers(0, 4), length=LENGTHS)
    def close(self, slot: int, generation: int, keep: int, length: int) -> None:
        self.table.close(slot, generation, keep, length)
        held, text = self.texts.get(slot, (None, []))
        if held != generation:
            return
        if keep:
            self._kept_as(keep, text, length)
        del self.texts[slot]

    @rule(slot=SLOTS, generation=st.integers(0, 3), keep=KEEPS, length=LENGTHS)
    def keep(self, slot: int, generation: int, keep: int, length: int) -> None:
        self.table.keep(slot, generation, keep, length)
        held, text = self.texts.get(slot, (None, []))
        self._kept_as(keep, text if held == generation else None, length)

    def _kept_as(self, keep: int, text: list[int] | None, length: int) -> None:
        self.kept.pop(keep, None)
        self.spilled.discard(keep)
        if text is not None and length <= len(text):
            self.kept[keep] = text[:length]

    @rule(keep=KEEPS)
    def drop(self, keep: int) -> None:
        freed, before = self.table.frees(keep), self.table.free_blocks
        self.cache.drop(keep)
        assert self.table.free_blocks == before + freed
        self._kept_as(keep, None, 0)

    @rule(keep=KEEPS)
    def spill(self, keep: int) -> None:
        freed, before = self.table.frees(keep), self.table.free_blocks
        self.cache.spill(keep)
        assert self.table.free_blocks == before + freed
        if self.kept.get(keep):
            self.spilled.add(keep)

    @rule()
    def reset(self) -> None:
        self.cache.reset()
        self.texts.clear()
        self.kept.clear()
        self.spilled.clear()
        assert self.table.free_blocks == BLOCKS

    @rule(
        segments=st.lists(
            st.builds(
                Segment,
                slot=SLOTS,
                generation=st.integers(0, 3),
                past_len=LENGTHS,
                count=st.integers(0, 9),
                sample=st.just(True),
            ),
            min_size=1,
            max_size=3,
        ),
        fit=st.booleans(),
        works=st.booleans(),
    )
    def step(self, segments: list[Segment], fit: bool, works: bool) -> None:
        if fit:  # most random segments would be refused
            found = {s.slot: s for s in segments if s.slot in self.texts}
            segments = [self._fitting(s) for s in found.values()]
        if not segments:
            return
        expected = self._verdict(segments)
        free = self.table.free_blocks
        if expected is not None:
            with pytest.raises(expected):
                self.cache.reserve(tuple(segments))
            assert self.table.free_blocks == free
            return
        cost = sum(self.table.cost(s) for s in segments)
        held = self.cache.reserve(tuple(segments))
        assert self.table.free_blocks >= free - cost
        for s, one in zip(segments, held, strict=True):
            assert one.count == -(-(s.past_len + s.count) // SIZE)
            text = self.texts[s.slot][1]
            del text[s.past_len :]
            if not works:
                continue
            for i in range(s.past_len, s.past_len + s.count):
                self.written += 1
                text.append(self.written)
                self.bytes[one.table[i // SIZE], i % SIZE] = self.written
        if works:
            self.table.commit(segments, held)
        else:  # an inference that failed ends its sequences
            for s in segments:
                self.table.close(s.slot, s.generation)
                del self.texts[s.slot]

    def _fitting(self, segment: Segment) -> Segment:
        generation, text = self.texts[segment.slot]
        past = min(segment.past_len, len(text))
        count = max(1, min(segment.count, CONTEXT - past))
        return Segment(segment.slot, generation, past, count, sample=True)

    def _verdict(self, segments: list[Segment]) -> type[Exception] | None:
        for s in segments:
            generation, text = self.texts.get(s.slot, (None, []))
            if generation != s.generation or s.past_len > len(text):
                return StaleFrame
            if s.count < 1:
                return Malformed
            if s.past_len + s.count > CONTEXT:
                return ContextTooLong
        if len({s.slot for s in segments}) < len(segments):
            return Malformed
        cost = sum(self.table.cost(s) for s in segments)
        return NoCapacity if cost > self.table.free_blocks else None

    @invariant()
    def every_slot_holds_its_text(self) -> None:
        for slot, (generation, text) in self.texts.items():
            held = self.table._slots[slot]
            assert (held.generation, held.length) == (generation, len(text))
            assert self._read(held.table, len(text)) == text
        for keep, text in self.kept.items():
            if keep not in self.spilled:
                assert self._read(self.table._kept[keep].blocks or [], len(text)) == text
        assert self.table.kept == len(self.kept)

    def _read(self, blocks: Any, length: int) -> list[int]:
        return [int(self.bytes[blocks[i // SIZE], i % SIZE]) for i in range(length)]

    @invariant()
    def every_block_is_free_or_held(self) -> None:
        running = {
            b
            for slot in self.texts
            for held in [self.table._slots[slot]]
            for b in held.table[: held.count].tolist()
        }
        idle = {b for kept in self.table._kept.values() for b in kept.blocks or []} - running
        assert self.table.idle_blocks() == len(idle)
        assert self.table.free_blocks == BLOCKS - len(running) - len(idle)


Slots.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestSlots = Slots.TestCase


def test_blocks_of_different_slots_never_overlap() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.open(1, 1)
    segments = (Segment(0, 1, 0, 9, True), Segment(1, 1, 0, 13, True))
    held, copies = table.reserve(segments)
    assert copies == []
    used = [b for h in held for b in h.table[: h.count].tolist()]
    assert len(set(used)) == len(used) == 7


def test_a_rewind_frees_what_lies_beyond_it() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.commit(first := (Segment(0, 1, 0, 30, True),), table.reserve(first).held)
    assert table.free_blocks == 0
    table.commit(again := (Segment(0, 1, 5, 1, True),), table.reserve(again).held)
    assert table.free_blocks == 6


def test_a_partly_used_block_is_copied_only_when_somebody_writes_into_it() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.commit(first := (Segment(0, 1, 0, 10, True),), table.reserve(first).held)
    table.close(0, 1, keep=7, keep_len=10)
    assert table.free_blocks == 5
    assert table.open(1, 2, Prefix(7, 10)) == []
    assert table.free_blocks == 5
    held, copies = table.reserve((Segment(1, 2, 10, 1, True),))
    assert copies == [(table._kept[7].blocks[2], held[0].table[2])]
    assert table.free_blocks == 4
    table.open(2, 3, Prefix(7, 8))  # ends with a full block: nothing to copy
    assert table.reserve((Segment(2, 3, 8, 1, True),)).copies == []


def test_the_last_holder_of_a_block_writes_in_place() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.commit(first := (Segment(0, 1, 0, 10, True),), table.reserve(first).held)
    table.close(0, 1, keep=7, keep_len=10)
    table.open(1, 2, Prefix(7, 10))
    table.drop(7)
    assert table.reserve((Segment(1, 2, 10, 1, True),)).copies == []
    assert table.free_blocks == 5
