"""Sequences in blocks, and the blocks' bytes: what every paged cache does besides computing."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fleetapp.engine.executor.spilled import Spilled
from fleetapp.engine.kv import Held, SlotTable
from fleetapp.errors import KeptLost, StaleFrame
from fleetapp.wire.frames import Prefix, Segment


class BlockTensor(Protocol):
    """One cache tensor, its first dimension the blocks."""

    def copy(self, source: int, target: int) -> None:
        """Copy one block onto another."""
        ...

    def read(self, blocks: Seq[int]) -> npt.NDArray[Any]:
        """A C-contiguous copy ``[len(blocks), ...]``."""
        ...

    def write(self, blocks: Seq[int], values: npt.NDArray[Any]) -> None:
        """Put back what ``read`` gave."""
        ...


class HostBlocks:
    """Blocks in memory that this process can reach."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array

    def copy(self, source: int, target: int) -> None:
        """Copy one block onto another."""
        self._array[target] = self._array[source]

    def read(self, blocks: Seq[int]) -> npt.NDArray[Any]:
        """A copy."""
        return np.ascontiguousarray(self._array[list(blocks)])

    def write(self, blocks: Seq[int], values: npt.NDArray[Any]) -> None:
        """Put back what ``read`` gave."""
        self._array[list(blocks)] = values


class BlockCache:
    """The sequences of a stage with the bytes that belong to them.

    Args:
        slots: who holds which block.
        tensors: all cache tensors of the stage.
        spilled: where kept sequences go that are in the way.
    """

    def __init__(self, slots: SlotTable, tensors: Seq[BlockTensor], spilled: Spilled) -> None:
        self.slots = slots
        self._tensors = tensors
        self._spilled = spilled

    def open(self, slot: int, generation: int, prefix: Prefix | None) -> None:
        """See ``Executor.open``."""
        if prefix is None:
            self.slots.open(slot, generation)
            return
        try:
            back = self.slots.open(slot, generation, prefix)
        except StaleFrame as exc:
            raise KeptLost(exc.message) from exc
        if not back:
            return
        saved = self._spilled.load(prefix.keep)
        if saved is None:
            self.slots.close(slot, generation)
            raise KeptLost(f"Kept sequence {prefix.keep} could not be brought back.")
        for tensor, values in zip(self._tensors, saved, strict=True):
            tensor.write(back, values[: len(back)])

    def reserve(self, segments: tuple[Segment, ...]) -> list[Held]:
        """Room for a step, with all bytes in place that it builds on."""
        held, copies = self.slots.reserve(segments)
        for source, target in copies:
            for tensor in self._tensors:
                tensor.copy(source, target)
        return held

    def drop(self, keep: int) -> None:
        """Forget a kept sequence."""
        self.slots.drop(keep)
        self._spilled.forget(keep)

    def spill(self, keep: int) -> None:
        """Move a kept sequence out."""
        blocks = self.slots.spill(keep)
        if blocks and self._spilled.capacity:
            self._spilled.save(keep, [tensor.read(blocks) for tensor in self._tensors])

    def reset(self) -> None:
        """Forget everything."""
        self.slots.reset()
        self._spilled.clear()
