import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fleetapp.engine.kv import BlockAllocator, SlotTable
from fleetapp.errors import ContextTooLong, Malformed, NoCapacity, StaleFrame
from fleetapp.wire.frames import Segment


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


BLOCKS, SIZE, CONTEXT = 12, 4, 20


class Slots(RuleBasedStateMachine):
    """A table against the plain idea: a generation and a length for each slot."""

    def __init__(self) -> None:
        super().__init__()
        self.table = SlotTable(BLOCKS, SIZE, CONTEXT)
        self.model: dict[int, tuple[int, int]] = {}

    @rule(slot=st.integers(0, 3), generation=st.integers(0, 3))
    def open(self, slot: int, generation: int) -> None:
        self.table.open(slot, generation)
        self.model[slot] = (generation, 0)

    @rule(slot=st.integers(0, 3), generation=st.integers(0, 3))
    def close(self, slot: int, generation: int) -> None:
        self.table.close(slot, generation)
        if self.model.get(slot, (None,))[0] == generation:
            del self.model[slot]

    @rule()
    def reset(self) -> None:
        self.table.reset()
        self.model.clear()

    @rule(
        segments=st.lists(
            st.builds(
                Segment,
                slot=st.integers(0, 3),
                generation=st.integers(0, 3),
                past_len=st.integers(0, CONTEXT),
                count=st.integers(0, 9),
                sample=st.just(True),
            ),
            min_size=1,
            max_size=3,
        ),
        works=st.booleans(),
    )
    def step(self, segments: list[Segment], works: bool) -> None:
        before = dict(self.model)
        expected = self._verdict(segments)
        if expected is not None:
            free = self.table.free_blocks
            with pytest.raises(expected):
                self.table.reserve(segments)
            assert self.table.free_blocks == free
            assert self.model == before
            return
        found = self.table.reserve(segments)
        for s, held in zip(segments, found, strict=True):
            assert held.count * SIZE >= s.past_len + s.count
            self.model[s.slot] = (s.generation, s.past_len)
        if works:
            self.table.commit(segments, found)
            for s in segments:
                self.model[s.slot] = (s.generation, s.past_len + s.count)
        else:  # an inference that failed: blocks stay reserved until the next step or close
            for s, held in zip(segments, found, strict=True):
                assert held.length == s.past_len
            for s in segments:
                self.table.close(s.slot, s.generation)
                del self.model[s.slot]

    def _verdict(self, segments: list[Segment]) -> type[Exception] | None:
        growth = 0
        for s in segments:
            generation, length = self.model.get(s.slot, (None, 0))
            if generation != s.generation or s.past_len > length:
                return StaleFrame
            if s.count < 1:
                return Malformed
            if s.past_len + s.count > CONTEXT:
                return ContextTooLong
            growth += -(-(s.past_len + s.count) // SIZE) - -(-length // SIZE)
        if len({s.slot for s in segments}) < len(segments):
            return Malformed
        return NoCapacity if growth > self.table.free_blocks else None

    @invariant()
    def every_block_is_free_or_held_once(self) -> None:
        held = sum(-(-length // SIZE) for _, length in self.model.values())
        assert self.table.free_blocks == BLOCKS - held


TestSlots = Slots.TestCase


def test_blocks_of_different_slots_never_overlap() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.open(1, 1)
    segments = (Segment(0, 1, 0, 9, True), Segment(1, 1, 0, 13, True))
    held = table.reserve(segments)
    used = [b for h in held for b in h.table[: h.count].tolist()]
    assert len(set(used)) == len(used) == 7


def test_a_rewind_frees_what_lies_beyond_it() -> None:
    table = SlotTable(8, 4, 32)
    table.open(0, 1)
    table.commit(first := (Segment(0, 1, 0, 30, True),), table.reserve(first))
    assert table.free_blocks == 0
    table.commit(again := (Segment(0, 1, 5, 1, True),), table.reserve(again))
    assert table.free_blocks == 6
