"""The cache as the head plans it: what runs, what stays, what leaves. Pure.

A mirror of every stage's block table, in blocks of the largest size that any stage has. Orders
take effect here when they are given; stages hear them in the same order.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence as Seq

import msgspec

from fleetapp.engine.kv import SlotTable
from fleetapp.engine.limits import Limits
from fleetapp.engine.orders import Closed, Dropped, Kept, Opened, Order, Spilled
from fleetapp.engine.prefix import PrefixIndex, Source, block_names
from fleetapp.engine.sequences import Sequence
from fleetapp.wire.frames import Prefix, Segment


class Found(msgspec.Struct, frozen=True):
    """What a sequence may begin with, and the blocks it needs besides."""

    source: Source | None
    length: int
    need: int


class Memory:
    """Who holds which blocks, decided here and nowhere else.

    Args:
        limits: of the chain.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._table = SlotTable(limits.kv_blocks, limits.block_size, limits.tokens)
        self._computed = PrefixIndex()
        self._kept: OrderedDict[int, Source] = OrderedDict()
        self._numbers = 0
        self._spilled_blocks = 0
        self._orders: list[Order] = []

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return self._table.free_blocks

    @property
    def kept(self) -> int:
        """Ended sequences that can be built on."""
        return len(self._kept)

    @property
    def kept_blocks(self) -> int:
        """Blocks of the cache that only they hold."""
        return self._table.idle_blocks()

    def take_orders(self) -> list[Order]:
        """What was decided since the last call, for the stages to hear before the next step."""
        orders, self._orders = self._orders, []
        return orders

    def names(self, ids: Seq[int]) -> list[bytes]:
        """See ``prefix.block_names``."""
        return block_names(ids, self._limits.block_size)

    # -- sequences ---------------------------------------------------------------------------

    def find(self, seq: Sequence) -> Found:
        """The longest prefix that a waiting sequence need not compute."""
        source, length = None, 0
        if not seq.fresh:
            source, length = self._computed.longest(seq.ids, seq.names, self._limits.block_size)
        need = self._limits.blocks(len(seq.ids) + 1)
        if source is not None and not source.spilled:
            need -= length // self._limits.block_size
        return Found(source, length, need)

    def available(self, found: Found) -> int:
        """Blocks that a sequence could get if no running one gives any up."""
        source = found.source
        besides = Prefix(source.keep, found.length) if source is not None else None
        return self._table.free_blocks + self._table.idle_blocks(besides)

    def claimed(self, seq: Sequence) -> int:
        """Blocks that a running sequence still needs for the tokens it has."""
        return max(0, self._limits.blocks(len(seq.ids) + 1) - self._table.count(seq.slot))

    def count(self, seq: Sequence) -> int:
        """Blocks of a running sequence."""
        return self._table.count(seq.slot)

    def open(self, seq: Sequence, found: Found) -> None:
        """A sequence gets the slot and generation that it names; its ``past`` is set."""
        source, prefix, once = found.source, None, 0
        if source is not None:
            if source.keep:
                self._kept.move_to_end(source.keep)
                prefix = Prefix(source.keep, found.length)
                seq.began_with = source.keep
            else:
                once = self._number()
                self._table.keep(source.slot, source.generation, once, found.length)
                self._orders.append(Kept(source.slot, source.generation, once, found.length))
                prefix = Prefix(once, found.length)
            if source.spilled and not self.make_room(
                self._limits.blocks(found.length), besides=source
            ):
                source, prefix, seq.began_with = None, None, 0
        self._table.open(seq.slot, seq.generation, prefix)
        self._orders.append(Opened(seq.request_id, seq.slot, seq.generation, prefix))
        seq.past = prefix.length if prefix else 0
        seq.source = Source(seq.ids, seq.names, seq.past, slot=seq.slot, generation=seq.generation)
        self._computed.add(seq.source, seq.past // self._limits.block_size)
        if once:
            self._table.drop(once)
            self._orders.append(Dropped(once))
        elif source is not None and found.length == source.length:
            self._drop(source)  # the running sequence has all of it now

    def cost(self, segment: Segment) -> int:
        """Blocks that a segment needs."""
        return self._table.cost(segment)

    def launch(self, segments: Seq[Segment], sequences: Seq[Sequence]) -> None:
        """Segments that fit go on their way."""
        self._table.commit(segments, self._table.reserve(segments).held)
        for segment, seq in zip(segments, sequences, strict=True):
            source = seq.source
            if source.listed < len(source.names):
                source.length = segment.past_len + segment.count
                self._computed.add(source, source.length // self._limits.block_size)

    def close(self, seq: Sequence, *, keep: bool) -> None:
        """A running sequence leaves its slot; what it computed stays if it is worth it."""
        self._computed.remove(seq.source)
        length = min(seq.past, len(seq.ids))
        size = self._limits.block_size
        if not keep or not self._limits.kept or length < size:
            self._leave(Closed(seq.slot, seq.generation))
            return
        ids = array("q", seq.ids[:length])
        names = block_names(ids, size, seq.source.names[: length // size])
        number = self._number()
        source = Source(ids, names, length, keep=number)
        for other in list(self._kept.values()):
            if not other.spilled and self._begins(other, source):
                self._kept.move_to_end(other.keep)
                self._leave(Closed(seq.slot, seq.generation))
                return
        self._leave(Closed(seq.slot, seq.generation, number, length))
        for other in list(self._kept.values()):
            if self._begins(source, other):
                self._drop(other)
        self._kept[number] = source
        self._computed.add(source, len(names))
        self._trim()

    # -- kept sequences ----------------------------------------------------------------------

    def give_way(self, besides: Source | None = None) -> bool:
        """One kept sequence less in the cache, the oldest that frees a block; False if none is.

        If none frees any, one that shares its blocks is forgotten: whoever writes into a block
        that it shares need not copy it then.
        """
        there = [s for s in self._kept.values() if not s.spilled and s is not besides]
        for source in there:
            if self._table.frees(source.keep):
                self._move_out(source, besides)
                return True
        if there:
            self._drop(there[0])
        return bool(there)

    def make_room(self, blocks: int, besides: Source | None = None) -> bool:
        """Have so many blocks free, at the cost of kept sequences, the oldest first."""
        while self._table.free_blocks < blocks:
            if not self.give_way(besides):
                return False
        return True

    def forget(self, keep: int) -> None:
        """A stage has lost a kept sequence: nobody can build on it."""
        source = self._kept.get(keep)
        if source is not None:
            self._drop(source)

    def _trim(self) -> None:
        """Keep no more than was agreed."""
        while len(self._kept) > self._limits.keep_sequences:
            self._drop(next(iter(self._kept.values())))
        over = self._table.idle_blocks() - self._limits.kept
        if over > 0:
            self.make_room(self._table.free_blocks + over)

    def _move_out(self, source: Source, besides: Source | None) -> None:
        """Spill a kept sequence if there is room for it, otherwise forget it."""
        size = self._limits.blocks(source.length)
        if size > self._limits.spill_blocks:
            self._drop(source)
            return
        for other in list(self._kept.values()):
            if self._spilled_blocks + size <= self._limits.spill_blocks:
                break
            if other.spilled and other is not besides:
                self._drop(other)
        if self._spilled_blocks + size > self._limits.spill_blocks:
            self._drop(source)
            return
        self._table.spill(source.keep)
        source.spilled = True
        self._spilled_blocks += size
        self._orders.append(Spilled(source.keep))

    def _drop(self, source: Source) -> None:
        del self._kept[source.keep]
        self._computed.remove(source)
        self._table.drop(source.keep)
        if source.spilled:
            self._spilled_blocks -= self._limits.blocks(source.length)
        self._orders.append(Dropped(source.keep))

    def _begins(self, longer: Source, shorter: Source) -> bool:
        """Whether ``longer`` begins with all of ``shorter``."""
        last = len(shorter.names) - 1
        if longer.length < shorter.length or longer.names[last] != shorter.names[last]:
            return False
        rest = (last + 1) * self._limits.block_size
        return longer.ids[rest : shorter.length] == shorter.ids[rest:]

    def _leave(self, closed: Closed) -> None:
        self._table.close(closed.slot, closed.generation, closed.keep, closed.keep_len)
        self._orders.append(closed)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
