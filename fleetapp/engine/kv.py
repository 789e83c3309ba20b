"""Which cache blocks belong to which sequence. Pure bookkeeping, no arrays of keys or values.

A sequence's cache is a list of blocks of a fixed number of tokens (PagedAttention, Kwon et al.
2023). Sequences that begin alike share blocks, which are counted; whoever writes into a shared
block gets a copy of it first. A rewind gives back the blocks beyond the new end.

The head of a chain has a table of its own in which it does what its frames will make every
stage do, in the same order. That is how it knows what fits without asking anybody.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fleetapp.errors import ContextTooLong, Malformed, NoCapacity, StaleFrame
from fleetapp.wire.frames import Prefix, Segment

_FIRST_BLOCKS = 16


class BlockAllocator:
    """Hands out the numbers ``0 .. blocks-1`` and counts who holds each.

    Last in, first out: a block that was just freed is warm.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._free = list(range(blocks - 1, -1, -1))
        self._holders = [0] * blocks

    @property
    def free(self) -> int:
        """Blocks nobody holds."""
        return len(self._free)

    def shared(self, block: int) -> bool:
        """Whether more than one holds it."""
        return self._holders[block] > 1

    def alone(self, blocks: Seq[int]) -> int:
        """How many of these blocks have one holder only."""
        return sum(self._holders[b] == 1 for b in blocks)

    def take(self, count: int) -> list[int]:
        """Take ``count`` free blocks or none.

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
            self._holders[block] = 1
        return taken

    def share(self, blocks: Seq[int]) -> None:
        """One more holds each of these blocks, which somebody holds already."""
        for block in blocks:
            if not self._holders[block]:
                raise ValueError("a block that nobody holds cannot be shared")
            self._holders[block] += 1

    def give(self, blocks: Seq[int]) -> None:
        """One holder less for each; the last one frees it.

        Raises:
            ValueError: one of them was not held; nothing is given back then.
        """
        if len(set(blocks)) != len(blocks) or not all(self._holders[b] for b in blocks):
            raise ValueError("a block was given back that nobody holds")
        for block in blocks:
            self._holders[block] -= 1
            if not self._holders[block]:
                self._free.append(block)


@dataclass(slots=True)
class Held:
    """The cache of one running sequence."""

    generation: int
    length: int
    """Tokens whose keys and values are valid."""
    count: int
    """Blocks in use; the first ``count`` of ``table``."""
    table: npt.NDArray[np.int32]

    def append(self, blocks: Seq[int]) -> None:
        """More blocks at the end."""
        count = self.count + len(blocks)
        if count > len(self.table):
            bigger = np.zeros(max(count, 2 * len(self.table)), np.int32)
            bigger[: self.count] = self.table[: self.count]
            self.table = bigger
        self.table[self.count : count] = blocks
        self.count = count


@dataclass(slots=True)
class _Kept:
    length: int
    blocks: list[int] | None
    """None while it is spilled."""


class Reservation(NamedTuple):
    """Room for the segments of a step."""

    held: list[Held]
    """One for each segment."""
    copies: list[tuple[int, int]]
    """(from, to): blocks to copy, in this order, before anything is computed."""


class SlotTable:
    """The sequences of one stage: running ones by slot, kept ones by number.

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
        self._kept: dict[int, _Kept] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks that no sequence holds."""
        return self._allocator.free

    @property
    def kept(self) -> int:
        """Kept sequences, spilled ones included."""
        return len(self._kept)

    def count(self, slot: int) -> int:
        """Blocks of a running sequence."""
        return self._slots[slot].count

    # -- running sequences -------------------------------------------------------------------

    def open(self, slot: int, generation: int, prefix: Prefix | None = None) -> list[int]:
        """Begin a sequence, with a prefix if one is given; whoever was in the slot is dropped.

        Returns:
            Blocks that the prefix must be brought back into, in order; empty if it is there.

        Raises:
            StaleFrame: nothing is kept under that number, or less than ``prefix.length``.
            NoCapacity: no room to bring the prefix back. In either case the slot is empty.
        """
        self._leave(slot)
        held = Held(generation, 0, 0, np.zeros(_FIRST_BLOCKS, np.int32))
        back: list[int] = []
        if prefix is not None:
            kept = self._kept.get(prefix.keep)
            if kept is None or not 0 <= prefix.length <= kept.length:
                has = "nothing" if kept is None else f"{kept.length} tokens"
                raise StaleFrame(
                    f"Slot {slot} is to begin with {prefix.length} tokens of kept sequence "
                    f"{prefix.keep}, of which there is {has}."
                )
            count = self._blocks(prefix.length)
            if kept.blocks is None:
                back = self._allocator.take(count)
                held.append(back)
            else:
                self._allocator.share(kept.blocks[:count])
                held.append(kept.blocks[:count])
            held.length = prefix.length
        self._slots[slot] = held
        return back

    def close(self, slot: int, generation: int, keep: int = 0, keep_len: int = 0) -> None:
        """Free a slot; with ``keep`` its first positions stay, if it holds as many.

        Another generation's close is ignored.
        """
        held = self._slots.get(slot)
        if held is None or held.generation != generation:
            return
        if keep:
            self.keep(slot, generation, keep, keep_len)
        self._leave(slot)

    def reset(self) -> None:
        """Drop everything."""
        for slot in list(self._slots):
            self._leave(slot)
        for keep in list(self._kept):
            self.drop(keep)

    def cost(self, segment: Segment) -> int:
        """Free blocks that a segment needs; negative if it gives some back by a rewind."""
        return self._cost(segment, self._slots[segment.slot])

    def reserve(self, segments: Seq[Segment]) -> Reservation:
        """Rewind and grow the slots so that all segments fit; all of them or none.

        Until ``commit`` the slots count as holding only what precedes their segments.

        Raises:
            StaleFrame: unknown slot, another generation, ``past_len`` beyond what is held.
            ContextTooLong: a sequence would pass the context limit.
            NoCapacity: not enough free blocks.
            Malformed: no position to compute, or a slot named twice.
        """
        found = [self._checked(segment) for segment in segments]
        if len(segments) > 1 and len({s.slot for s in segments}) < len(segments):
            raise Malformed("A step names a slot twice.")
        growth = sum([self._cost(s, h) for s, h in zip(segments, found, strict=True)])
        if growth > self._allocator.free:
            raise NoCapacity(
                f"{growth} more cache blocks are needed, {self._allocator.free} of "
                f"{self._allocator.blocks} are free."
            )
        copies: list[tuple[int, int]] = []
        for segment, held in zip(segments, found, strict=True):
            held.length = segment.past_len
            blocks = self._blocks(segment.past_len + segment.count)
            if blocks < held.count:
                self._shrink(held, blocks)
        for segment, held in zip(segments, found, strict=True):
            self._own(held, segment.past_len, copies)
            blocks = self._blocks(segment.past_len + segment.count)
            if blocks > held.count:
                held.append(self._allocator.take(blocks - held.count))
        return Reservation(found, copies)

    def commit(self, segments: Seq[Segment], found: Seq[Held]) -> None:
        """The segments' keys and values are now in the cache."""
        for segment, held in zip(segments, found, strict=True):
            held.length = segment.past_len + segment.count

    # -- kept sequences ----------------------------------------------------------------------

    def keep(self, slot: int, generation: int, keep: int, length: int) -> None:
        """The first ``length`` positions of a running sequence stay under a number.

        A slot that does not hold as many keeps nothing; whoever asks for it will be told.
        """
        self.drop(keep)
        held = self._slots.get(slot)
        if held is None or held.generation != generation or not 0 <= length <= held.length:
            return
        blocks: list[int] = held.table[: self._blocks(length)].tolist()
        self._allocator.share(blocks)
        self._kept[keep] = _Kept(length, blocks)

    def drop(self, keep: int) -> None:
        """Forget a kept sequence; one that is not there is not an error."""
        kept = self._kept.pop(keep, None)
        if kept is not None and kept.blocks is not None:
            self._allocator.give(kept.blocks)

    def spill(self, keep: int) -> list[int]:
        """A kept sequence gives its blocks up and yet stays.

        Returns:
            Its blocks, in order, to be saved before anything else happens; empty if there is
            nothing to save.
        """
        kept = self._kept.get(keep)
        if kept is None or kept.blocks is None:
            return []
        blocks, kept.blocks = kept.blocks, None
        self._allocator.give(blocks)
        return blocks

    def frees(self, keep: int) -> int:
        """Blocks that dropping or spilling it would free."""
        kept = self._kept.get(keep)
        return 0 if kept is None or kept.blocks is None else self._allocator.alone(kept.blocks)

    def idle_blocks(self, besides: Prefix | None = None) -> int:
        """Blocks that only kept sequences hold, without those of a prefix to be used now."""
        idle = np.zeros(self._allocator.blocks, bool)
        for kept in self._kept.values():
            if kept.blocks is not None:
                idle[kept.blocks] = True
        for held in self._slots.values():
            idle[held.table[: held.count]] = False
        used = self._kept.get(besides.keep) if besides is not None else None
        if besides is not None and used is not None and used.blocks is not None:
            idle[used.blocks[: self._blocks(besides.length)]] = False
        return int(np.count_nonzero(idle))

    # -- the rest ----------------------------------------------------------------------------

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

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

    def _cost(self, segment: Segment, held: Held) -> int:
        first = segment.past_len // self._block_size
        wanted = self._blocks(segment.past_len + segment.count)
        shared = self._allocator.shared
        if wanted == held.count == first + 1:  # the next token of most sequences most of the time
            return int(shared(held.table.item(first)))
        growth = wanted - held.count
        if growth < 0:
            growth = -self._allocator.alone(held.table[wanted : held.count].tolist())
        written: list[int] = held.table[first : min(wanted, held.count)].tolist()
        return growth + sum(map(shared, written))

    def _own(self, held: Held, past: int, copies: list[tuple[int, int]]) -> None:
        """Blocks that will be written into must be the sequence's own."""
        first = past // self._block_size
        for index in range(first, held.count):
            block = held.table.item(index)
            if self._allocator.shared(block):
                (own,) = self._allocator.take(1)
                self._allocator.give([block])
                held.table[index] = own
                if index == first and past % self._block_size:
                    copies.append((block, own))

    def _shrink(self, held: Held, blocks: int) -> None:
        self._allocator.give(held.table[blocks : held.count].tolist())
        held.count = blocks

    def _leave(self, slot: int) -> None:
        held = self._slots.pop(slot, None)
        if held is not None:
            self._shrink(held, 0)
