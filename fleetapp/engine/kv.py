"""Which cache blocks belong to which sequence. Pure bookkeeping, no arrays of keys or values.

A sequence's cache is a list of blocks of a fixed number of tokens (PagedAttention, Kwon et al.
2023). A rewind frees the blocks beyond the new end; a sequence that leaves frees all of its own.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetapp.errors import ContextTooLong, Malformed, NoCapacity, StaleFrame
from fleetapp.wire.frames import Segment


class BlockAllocator:
    """Hands out the numbers ``0 .. blocks-1``, each to one taker at a time.

    Last in, first out: a block that was just freed is warm.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._free = list(range(blocks - 1, -1, -1))
        self._taken = [False] * blocks

    @property
    def free(self) -> int:
        """Blocks nobody holds."""
        return len(self._free)

    def take(self, count: int) -> list[int]:
        """Take ``count`` blocks or none.

        Raises:
            NoCapacity: fewer are free.
        """
        if count > len(self._free):
            raise NoCapacity(
                f"{count} cache blocks are needed, {len(self._free)} of {self.blocks} are free."
            )
        cut = len(self._free) - count
        taken = self._free[cut:]
        del self._free[cut:]
        for block in taken:
            self._taken[block] = True
        return taken

    def give(self, blocks: Seq[int]) -> None:
        """Give blocks back.

        Raises:
            ValueError: one of them was not taken; nothing is given back then.
        """
        if len(set(blocks)) != len(blocks) or not all(self._taken[b] for b in blocks):
            raise ValueError("a block was given back that nobody holds")
        for block in blocks:
            self._taken[block] = False
        self._free.extend(blocks)


@dataclass(slots=True)
class Held:
    """The cache of one sequence."""

    generation: int
    length: int
    """Tokens whose keys and values are valid."""
    count: int
    """Blocks in use; the first ``count`` of ``table``."""
    table: npt.NDArray[np.int32]


class SlotTable:
    """The sequences of one stage, by slot.

    Args:
        blocks: of the cache.
        block_size: tokens per block.
        max_context: tokens a sequence may have.
    """

    def __init__(self, blocks: int, block_size: int, max_context: int) -> None:
        self._allocator = BlockAllocator(blocks)
        self._block_size = block_size
        self._max_context = max_context
        self._slots: dict[int, Held] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks that no slot holds."""
        return self._allocator.free

    def open(self, slot: int, generation: int) -> None:
        """Begin an empty sequence; whoever was in the slot is dropped."""
        self._drop(slot)
        size = -(-self._max_context // self._block_size)
        self._slots[slot] = Held(generation, 0, 0, np.zeros(size, np.int32))

    def close(self, slot: int, generation: int) -> None:
        """Free a slot; another generation's close is ignored."""
        held = self._slots.get(slot)
        if held is not None and held.generation == generation:
            self._drop(slot)

    def reset(self) -> None:
        """Drop every slot."""
        for slot in list(self._slots):
            self._drop(slot)

    def reserve(self, segments: Seq[Segment]) -> list[Held]:
        """Rewind and grow the slots so that all segments fit; all of them or none.

        Until ``commit`` the slots count as holding only what precedes their segments.

        Returns:
            The sequence of each segment, in order.

        Raises:
            StaleFrame: unknown slot, another generation, ``past_len`` beyond what is held.
            ContextTooLong: a sequence would pass the context limit.
            NoCapacity: not enough free blocks.
            Malformed: no position to compute, or a slot named twice.
        """
        found: list[Held] = []
        wanted: list[int] = []
        growth = 0
        for segment in segments:
            held = self._checked(segment)
            blocks = -(-(segment.past_len + segment.count) // self._block_size)
            growth += blocks - held.count
            found.append(held)
            wanted.append(blocks)
        if len(segments) > 1 and len({s.slot for s in segments}) < len(segments):
            raise Malformed("A step names a slot twice.")
        if growth > self._allocator.free:
            raise NoCapacity(
                f"{growth} more cache blocks are needed, {self._allocator.free} of "
                f"{self._allocator.blocks} are free."
            )
        for segment, held, blocks in zip(segments, found, wanted, strict=True):
            held.length = segment.past_len
            if blocks < held.count:
                self._shrink(held, blocks)
        for held, blocks in zip(found, wanted, strict=True):
            if blocks > held.count:
                held.table[held.count : blocks] = self._allocator.take(blocks - held.count)
                held.count = blocks
        return found

    def commit(self, segments: Seq[Segment], found: Seq[Held]) -> None:
        """The segments' keys and values are now in the cache."""
        for segment, held in zip(segments, found, strict=True):
            held.length = segment.past_len + segment.count

    def _checked(self, segment: Segment) -> Held:
        held = self._slots.get(segment.slot)
        if held is None or held.generation != segment.generation:
            owner = "nobody" if held is None else f"generation {held.generation}"
            raise StaleFrame(
                f"Slot {segment.slot} is held by {owner}, not by generation {segment.generation}."
            )
        if not 0 <= segment.past_len <= held.length:
            raise StaleFrame(
                f"Slot {segment.slot} holds {held.length} tokens; a segment that follows "
                f"{segment.past_len} does not fit."
            )
        if segment.count < 1:
            raise Malformed(f"A segment of slot {segment.slot} has {segment.count} positions.")
        if segment.past_len + segment.count > self._max_context:
            raise ContextTooLong(
                f"Slot {segment.slot} would hold {segment.past_len + segment.count} tokens; "
                f"the limit is {self._max_context}."
            )
        return held

    def _shrink(self, held: Held, blocks: int) -> None:
        self._allocator.give(held.table[blocks : held.count].tolist())
        held.count = blocks

    def _drop(self, slot: int) -> None:
        held = self._slots.pop(slot, None)
        if held is not None:
            self._shrink(held, 0)
