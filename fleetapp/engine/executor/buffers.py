"""Input tensors that are made once and written in place for every step.

A decode step takes a few milliseconds; building tensors, dictionaries and numpy arrays anew for
each would take a noticeable part of it. The memory behind them grows only when a larger frame
than ever comes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import openvino as ov

from fleetapp.engine.kv import Held
from fleetapp.wire.frames import Segment

_FIRST_TOKENS: Final = 256
_FIRST_SLOTS: Final = 16
_MOST_LENGTHS: Final = 64
"""Tensors kept for each input."""


class Buffer:
    """One input of a request; the first dimension varies, ``tail`` is fixed.

    A tensor for each length that occurs, all over one memory: giving a tensor another shape
    takes ten times as long as giving the request another tensor.
    """

    def __init__(
        self, request: ov.InferRequest, index: int, element: ov.Type, tail: tuple[int, ...], n: int
    ) -> None:
        self._request = request
        self._index = index
        self._element = element
        self._tail = tail
        self._length = -1
        self._memory = np.zeros((n, *tail), element.to_dtype())
        self._tensors: dict[int, tuple[ov.Tensor, npt.NDArray[Any]]] = {}
        self._view = self.sized(n)

    def sized(self, n: int) -> npt.NDArray[Any]:
        """A writable view ``[n, *tail]``; earlier views must not be used any more."""
        if n == self._length:
            return self._view
        found = self._tensors.get(n)
        if found is None:
            found = self._make(n)
        tensor, self._view = found
        self._request.set_input_tensor(self._index, tensor)
        self._length = n
        return self._view

    def _make(self, n: int) -> tuple[ov.Tensor, npt.NDArray[Any]]:
        if n > len(self._memory):
            self._memory = np.zeros((n + n // 4, *self._tail), self._memory.dtype)
            self._tensors.clear()
        elif len(self._tensors) >= _MOST_LENGTHS:
            self._tensors.clear()
        view = self._memory[:n]
        found = (ov.Tensor(view, ov.Shape([n, *self._tail]), self._element), view)
        self._tensors[n] = found
        return found


class StepBuffers:
    """All inputs of a paged stage but its caches.

    Args:
        request: to bind them to.
        ports: index of each input by name.
        hidden: width of ``inputs_embeds``, 0 on a first stage.
    """

    def __init__(self, request: ov.InferRequest, ports: dict[str, int], hidden: int) -> None:
        def make(name: str, element: ov.Type, n: int, *tail: int) -> Buffer:
            return Buffer(request, ports[name], element, tail, n)

        self._inputs = (
            make("inputs_embeds", ov.Type.f32, _FIRST_TOKENS, hidden)
            if hidden
            else make("input_ids", ov.Type.i64, _FIRST_TOKENS)
        )
        self._positions = make("position_ids", ov.Type.i64, _FIRST_TOKENS)
        self._past = make("past_lens", ov.Type.i32, _FIRST_SLOTS)
        self._begins = make("subsequence_begins", ov.Type.i32, _FIRST_SLOTS + 1)
        self._blocks = make("block_indices", ov.Type.i32, _FIRST_SLOTS)
        self._block_begins = make("block_indices_begins", ov.Type.i32, _FIRST_SLOTS + 1)
        longest = ov.Tensor(ov.Type.i32, ov.Shape([]))
        request.set_input_tensor(ports["max_context_len"], longest)
        self._longest = longest.data

    def fill(
        self,
        segments: tuple[Segment, ...],
        held: list[Held],
        inputs: npt.NDArray[np.int64] | npt.NDArray[np.float32],
    ) -> None:
        """Write one step. ``inputs`` has one row per token, ``held`` one entry per segment."""
        tokens = len(inputs)
        self._inputs.sized(tokens)[:] = inputs
        positions = self._positions.sized(tokens)
        past = self._past.sized(len(segments))
        begins = self._begins.sized(len(segments) + 1)
        blocks = self._blocks.sized(sum(h.count for h in held))
        block_begins = self._block_begins.sized(len(segments) + 1)
        at = block_at = longest = 0
        begins[0] = block_begins[0] = 0
        for i, (segment, h) in enumerate(zip(segments, held, strict=True)):
            start, count = segment.past_len, segment.count
            past[i] = start
            if count == 1:
                positions[at] = start
            else:
                positions[at : at + count] = np.arange(start, start + count)
            blocks[block_at : block_at + h.count] = h.table[: h.count]
            at += count
            block_at += h.count
            begins[i + 1] = at
            block_begins[i + 1] = block_at
            longest = max(longest, start + count)
        self._longest[...] = longest
