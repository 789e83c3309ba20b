"""What a chain can carry."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What a chain can carry.

    ``kv_blocks`` of ``block_size`` tokens are shared by all sequences; at most ``slots`` of them
    run; ``frames`` (the number of stages) are kept in flight; ``frame_tokens`` is the most a
    frame carries and is larger than ``slots``, so that a prefill always finds room beside the
    decodes.
    """

    kv_blocks: int
    block_size: int
    frames: int
    slots: int = 32
    frame_tokens: int = 256
    waiting: int = 512
    keep_blocks: int | None = None
    """Blocks that only ended sequences hold; None is three quarters of all, 0 keeps nothing."""
    keep_sequences: int = 128
    spill_blocks: int = 0
    """Room for ended sequences outside the cache, in blocks."""
    patience: int = 16
    """Interactive requests that may overtake a batch request."""

    def blocks(self, tokens: int) -> int:
        """Blocks that ``tokens`` positions take."""
        return -(-tokens // self.block_size)

    @property
    def tokens(self) -> int:
        """Positions that the whole cache holds."""
        return self.kv_blocks * self.block_size

    @property
    def kept(self) -> int:
        """Blocks that only ended sequences may hold."""
        return self.kv_blocks * 3 // 4 if self.keep_blocks is None else self.keep_blocks
