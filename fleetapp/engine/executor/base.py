"""The one protocol behind which every key-value discipline hides."""

from __future__ import annotations

from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from fleetapp.wire.frames import ActivationType, Prefix, Segment


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
    spill_blocks: int = 0
    """Blocks that kept sequences may take up outside the cache."""

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
        """Blocks that no sequence holds, neither a running nor a kept one."""
        ...

    @property
    def kept_blocks(self) -> int:
        """Blocks that only kept sequences hold."""
        ...

    def open(self, slot: int, generation: int, prefix: Prefix | None = None) -> None:
        """Begin a sequence, an empty one without ``prefix``; whoever was in the slot is dropped.

        A prefix whose blocks were spilled comes back into blocks of the slot's own.

        Raises:
            KeptLost: there is not as much under that number as ``prefix`` says.
            NoCapacity: no room to bring it back. In either case the slot is empty.
        """
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
            ``1 + len(drafts)`` positions of each segment with ``sample`` set, in order.
            The array is valid until the next call.
        """
        ...

    def close(self, slot: int, generation: int, keep: int = 0, keep_len: int = 0) -> None:
        """Free a slot; with ``keep`` its first ``keep_len`` positions stay under that number.

        A slot already gone, or one that holds less, keeps nothing and is not an error here: the
        next ``open`` that builds on it is told.
        """
        ...

    def keep(self, slot: int, generation: int, keep: int, length: int) -> None:
        """The first ``length`` positions of a running sequence also stay under a number."""
        ...

    def drop(self, keep: int) -> None:
        """Forget a kept sequence; one already gone is not an error."""
        ...

    def spill(self, keep: int) -> None:
        """Move a kept sequence out of the cache, bit for bit, so that its blocks are free."""
        ...

    def reset(self) -> None:
        """Drop every slot and everything kept (a new epoch begins)."""
        ...
