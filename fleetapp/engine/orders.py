"""What the scheduler tells the stages besides steps, in the order in which they must hear it."""

from __future__ import annotations

import msgspec

from fleetapp.wire.frames import Close, Drop, Keep, Prefix, Spill


class Opened(msgspec.Struct, frozen=True):
    """A waiting sequence got a slot, perhaps with a prefix that need not be computed."""

    request_id: str
    slot: int
    generation: int
    prefix: Prefix | None = None


class Closed(msgspec.Struct, frozen=True):
    """A slot is free again; its first ``keep_len`` positions stay under ``keep`` if that is set."""

    slot: int
    generation: int
    keep: int = 0
    keep_len: int = 0


class Kept(msgspec.Struct, frozen=True):
    """A running sequence's first positions also stay under a number."""

    slot: int
    generation: int
    keep: int
    length: int


class Dropped(msgspec.Struct, frozen=True):
    """A kept sequence is forgotten."""

    keep: int


class Spilled(msgspec.Struct, frozen=True):
    """A kept sequence leaves the cache and yet stays."""

    keep: int


Order = Opened | Closed | Kept | Dropped | Spilled


def to_frame(order: Closed | Kept | Dropped | Spilled, epoch: int) -> Close | Keep | Drop | Spill:
    """As it crosses the ring."""
    match order:
        case Closed():
            return Close(epoch, order.slot, order.generation, order.keep, order.keep_len)
        case Kept():
            return Keep(epoch, order.slot, order.generation, order.keep, order.length)
        case Dropped():
            return Drop(epoch, order.keep)
        case Spilled():
            return Spill(epoch, order.keep)
