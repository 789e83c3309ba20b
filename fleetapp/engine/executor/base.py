"""The one protocol behind which every key-value discipline hides."""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from fleetapp.wire.frames import ActivationType, Segment


class ExecutorInfo(msgspec.Struct, frozen=True):
    """What a loaded stage is and can hold."""

    first: bool
    last: bool
    layers: int
    hidden: int
    vocab: int
    block_size: int
    """Tokens per cache block."""
    blocks: int
    max_context: int
    kv_bytes_per_token: int
    runtime: str
    activations: ActivationType = "f32"
    """Type in which this stage computed the hidden states it returns: every value it returns is
    one of this type, so that sending them in it loses nothing. ``f32`` on a last stage."""

    @property
    def capacity_tokens(self) -> int:
        """Tokens that fit the cache if no block is partly filled."""
        return self.blocks * self.block_size


class Executor(Protocol):
    """Runs the layers of one stage over segments of many sequences.

    Raises:
        StaleFrame: unknown slot, other generation, or ``past_len`` beyond what is held.
        NoCapacity: no free block.
    """

    @property
    def info(self) -> ExecutorInfo:
        """Constant after loading."""
        ...

    @property
    def free_blocks(self) -> int:
        """Blocks that no slot holds."""
        ...

    def open(self, slot: int, generation: int) -> None:
        """Begin an empty sequence; an older generation in the slot is dropped."""
        ...

    def forward(
        self,
        segments: tuple[Segment, ...],
        inputs: npt.NDArray[np.int64] | npt.NDArray[np.float32],
    ) -> npt.NDArray[np.float32]:
        """Run all segments in one inference.

        Args:
            segments: at most one per slot; ``past_len`` smaller than held rewinds the slot.
            inputs: token ids ``[T]`` on a first stage, hidden states ``[T, hidden]`` elsewhere,
                segments packed end to end, ``T = sum(count)``.

        Returns:
            Hidden states ``[T, hidden]``, or on a last stage logits ``[n, vocab]`` of the last
            position of each segment with ``sample`` set, in order. The array is valid until the
            next call.
        """
        ...

    def close(self, slot: int, generation: int) -> None:
        """Free a slot's blocks; a slot already gone is not an error."""
        ...

    def reset(self) -> None:
        """Drop every slot (a new epoch begins)."""
        ...
