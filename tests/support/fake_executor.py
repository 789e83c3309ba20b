"""A tiny deterministic model behind the Executor protocol.

Each layer keeps, per slot and position, a running hash of everything it has seen, and puts it
into the hidden state. A wrong slot, a wrong past length or a missing rewind therefore changes
every token that follows, and so does leaving out or doubling a layer. How the layers are divided
among stages does not.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fleetapp.engine.executor.base import ExecutorInfo
from fleetapp.errors import NoCapacity, StaleFrame
from fleetapp.wire.frames import Segment

LAYERS = 6
HIDDEN = 4
VOCAB = 300
EOS = 299
_MOD = 65521  # two bytes, which are exact in f16 too


def token_of(state: int) -> int:
    """A printable character, as a byte-level token."""
    return 32 + state % 95


@dataclass
class _Held:
    generation: int
    history: list[list[int]] = field(default_factory=list)
    """One list of layer states per position."""


class FakeExecutor:
    """Layers ``start <= layer < stop`` of the tiny model.

    Args:
        start: first layer.
        stop: behind the last one.
        before: called with the segments before each forward; may raise or wait.
        step_seconds: what each forward takes at least.

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
        )
        self._before = before
        self._step_seconds = step_seconds
        self._slots: dict[int, _Held] = {}
        self.poison: set[tuple[int, int]] = set()
        self.calls = 0

    @property
    def info(self) -> ExecutorInfo:
        return self._info

    @property
    def free_blocks(self) -> int:
        return self._info.blocks - sum(self._blocks(len(h.history)) for h in self._slots.values())

    def open(self, slot: int, generation: int) -> None:
        self._slots[slot] = _Held(generation)

    def close(self, slot: int, generation: int) -> None:
        held = self._slots.get(slot)
        if held is not None and held.generation == generation:
            del self._slots[slot]

    def reset(self) -> None:
        self._slots.clear()

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
        outputs: list[list[int]] = []
        asked: list[npt.NDArray[np.float32]] = []
        row = 0
        for segment in segments:
            held = self._held(segment)
            del held.history[segment.past_len :]
            outputs += [self._position(held, x) for x in inputs[row : row + segment.count]]
            row += segment.count
            if self.free_blocks < 0:
                raise NoCapacity("The fake cache is full.")
            if self._info.last and segment.sample:
                asked.append(self._logits(segment, held.history[-1][-1]))
        if self._info.last:
            empty = np.zeros((0, VOCAB), np.float32)
            return np.stack(asked) if asked else empty
        return np.array(outputs, dtype=np.float32)

    def _held(self, segment: Segment) -> _Held:
        held = self._slots.get(segment.slot)
        if held is None or held.generation != segment.generation:
            raise StaleFrame(f"slot {segment.slot} is not open")
        if segment.past_len > len(held.history):
            raise StaleFrame(f"slot {segment.slot} holds less than {segment.past_len}")
        return held

    def _position(self, held: _Held, value: npt.NDArray[np.generic]) -> list[int]:
        position = len(held.history)
        before = held.history[-1] if held.history else [0] * len(self._layers)
        x = int(value) if self._info.first else int(value[0]) * 256 + int(value[1])
        states = []
        for layer, past in zip(self._layers, before, strict=True):
            x = (past * 31 + x * 17 + position * 7 + layer * 3 + 1) % _MOD
            states.append(x)
        held.history.append(states)
        return [x // 256, x % 256, position, 0]

    def _logits(self, segment: Segment, state: int) -> npt.NDArray[np.float32]:
        distance = np.abs(np.arange(VOCAB) - token_of(state))
        row = -distance.astype(np.float32)
        if (segment.generation, segment.past_len + segment.count) in self.poison:
            row[:] = np.nan
        return row

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._info.block_size)


def reference(prompt: list[int] | tuple[int, ...], count: int) -> list[int]:
    """The greedy answer of the whole model to one prompt alone, token by token."""
    executor = FakeExecutor(blocks=1 << 20)
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
