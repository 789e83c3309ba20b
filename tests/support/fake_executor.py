"""A tiny deterministic model behind the Executor protocol.

Each layer keeps, per position, a running hash of everything it has seen, and puts it into the
hidden state. A wrong block, a wrong past length or a missing rewind therefore changes every token
that follows, and so does leaving out or doubling a layer. How the layers are divided among
stages does not. The hashes lie in blocks, as keys and values do.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fleetapp.engine.executor.base import ExecutorInfo
from fleetapp.engine.executor.blocks import BlockCache, HostBlocks
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.engine.kv import Held, SlotTable
from fleetapp.wire.frames import Prefix, Segment

LAYERS = 6
HIDDEN = 4
VOCAB = 300
EOS = 299
_IDS = np.arange(VOCAB)
_MOD = 65521  # two bytes, which are exact in f16 too


def token_of(state: int) -> int:
    """A printable character, as a byte-level token."""
    return 32 + state % 95


class FakeExecutor:
    """Layers ``start <= layer < stop`` of the tiny model.

    Args:
        start: first layer.
        stop: behind the last one.
        before: called with the segments before each forward; may raise or wait.
        step_seconds: what each forward takes at least.
        spill_blocks: room for so many blocks outside the cache.

    Attributes:
        poison: (slot generation, position) whose logits become NaN.
        calls: forwards so far.
    """

    def __init__(
        self,
        start: int = 0,
        stop: int = LAYERS,
        *,
        blocks: int = 64,
        block_size: int = 8,
        max_context: int = 256,
        before: Callable[[tuple[Segment, ...]], None] | None = None,
        step_seconds: float = 0.0,
        spill_blocks: int = 0,
    ) -> None:
        self._layers = range(start, stop)
        self._info = ExecutorInfo(
            first=start == 0,
            last=stop == LAYERS,
            layers=len(self._layers),
            hidden=HIDDEN,
            vocab=VOCAB,
            block_size=block_size,
            blocks=blocks,
            max_context=max_context,
            kv_bytes_per_token=8,
            runtime="fake 1",
            spill_blocks=spill_blocks,
        )
        self._before = before
        self._step_seconds = step_seconds
        self._states = np.full((blocks, block_size, len(self._layers)), -1, np.int64)
        self.slots = SlotTable(blocks, block_size, max_context)
        spilled = Spilled(spill_blocks * (self._states.nbytes // blocks))
        self._cache = BlockCache(self.slots, [HostBlocks(self._states)], spilled)
        self.poison: set[tuple[int, int]] = set()
        self.calls = 0

    @property
    def info(self) -> ExecutorInfo:
        return self._info

    @property
    def free_blocks(self) -> int:
        return self.slots.free_blocks

    @property
    def kept_blocks(self) -> int:
        return self.slots.idle_blocks()

    def open(self, slot: int, generation: int, prefix: Prefix | None = None) -> None:
        self._cache.open(slot, generation, prefix)

    def close(self, slot: int, generation: int, keep: int = 0, keep_len: int = 0) -> None:
        self.slots.close(slot, generation, keep, keep_len)

    def keep(self, slot: int, generation: int, keep: int, length: int) -> None:
        self.slots.keep(slot, generation, keep, length)

    def drop(self, keep: int) -> None:
        self._cache.drop(keep)

    def spill(self, keep: int) -> None:
        self._cache.spill(keep)

    def reset(self) -> None:
        self._cache.reset()

    def forward(
        self,
        segments: tuple[Segment, ...],
        inputs: npt.NDArray[np.int64] | npt.NDArray[np.float32],
    ) -> npt.NDArray[np.float32]:
        assert inputs.dtype == (np.int64 if self._info.first else np.float32)
        assert inputs.shape[0] == sum(s.count for s in segments)
        assert len({s.slot for s in segments}) == len(segments)
        self.calls += 1
        if self._before is not None:
            self._before(segments)
        if self._step_seconds:
            time.sleep(self._step_seconds)
        held = self._cache.reserve(segments)
        outputs: list[list[int]] = []
        asked: list[npt.NDArray[np.float32]] = []
        row = 0
        for segment, one in zip(segments, held, strict=True):
            for i in range(segment.count):
                position = segment.past_len + i
                outputs.append(self._position(one, position, inputs[row + i]))
                if segment.sample and i >= segment.count - 1 - len(segment.drafts):
                    asked.append(self._logits(segment.generation, position + 1, one))
            row += segment.count
        self.slots.commit(segments, held)
        if self._info.last:
            empty = np.zeros((0, VOCAB), np.float32)
            return np.stack(asked) if asked else empty
        return np.array(outputs, dtype=np.float32)

    def _state(self, held: Held, position: int) -> npt.NDArray[np.int64]:
        """What the layers hold of a position, to be read or written."""
        size = self._info.block_size
        state: npt.NDArray[np.int64] = self._states[held.table[position // size], position % size]
        return state

    def _position(self, held: Held, position: int, value: npt.NDArray[np.generic]) -> list[int]:
        before = self._state(held, position - 1).tolist() if position else [0] * len(self._layers)
        x = int(value) if self._info.first else int(value[0]) * 256 + int(value[1])
        states = []
        for layer, past in zip(self._layers, before, strict=True):
            x = (past * 31 + x * 17 + position * 7 + layer * 3 + 1) % _MOD
            states.append(x)
        self._state(held, position)[:] = states
        return [x // 256, x % 256, position % 2048, 0]

    def _logits(self, generation: int, position: int, held: Held) -> npt.NDArray[np.float32]:
        """For ``position``, which follows what the last layer holds."""
        state = int(self._state(held, position - 1)[-1])
        row = -np.abs(_IDS - token_of(state)).astype(np.float32)
        if (generation, position) in self.poison:
            row[:] = np.nan
        return row


def reference(prompt: list[int] | tuple[int, ...], count: int) -> list[int]:
    """The greedy answer of the whole model to one prompt alone, token by token."""
    total = len(prompt) + count
    executor = FakeExecutor(blocks=-(-total // 8), max_context=total)
    executor.open(0, 1)
    answer: list[int] = []
    ids, past = list(prompt), 0
    while len(answer) < count:
        segment = Segment(0, 1, past, len(ids), sample=True)
        logits = executor.forward((segment,), np.array(ids, np.int64))
        past += len(ids)
        ids = [int(logits[0].argmax())]
        answer += ids
    return answer


def split(stages: int) -> list[tuple[int, int]]:
    """The layer ranges of a chain of so many stages."""
    cuts = [round(i * LAYERS / stages) for i in range(stages + 1)]
    return list(itertools.pairwise(cuts))
