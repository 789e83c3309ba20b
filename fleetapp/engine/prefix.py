"""Which token sequences begin alike. Pure.

Blocks are named by a hash over all tokens up to their end, as in vLLM's automatic prefix caching
(https://docs.vllm.ai/en/latest/design/prefix_caching/): equal names mean equal prefixes.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

_LOOKED_AT: Final = 4
"""Sources compared token by token behind their last common block."""


def block_names(ids: Seq[int], block_size: int, known: Seq[bytes] = ()) -> list[bytes]:
    """The name of every full block of ``ids``; those ``known`` are not computed again."""
    names = list(known)
    name = names[-1] if names else b""
    for begin in range(len(names) * block_size, len(ids) - block_size + 1, block_size):
        tokens = array("q", ids[begin : begin + block_size])
        name = hashlib.blake2b(name + tokens.tobytes(), digest_size=16).digest()
        names.append(name)
    return names


@dataclass(eq=False, slots=True)
class Source:
    """A sequence that others may begin with: a running one, or a kept one (``keep`` > 0)."""

    ids: Seq[int]
    names: list[bytes]
    length: int = 0
    """Positions that are computed, or will be before any later frame is."""
    keep: int = 0
    slot: int = -1
    generation: int = 0
    spilled: bool = False
    listed: int = field(default=0, init=False)
    """Blocks that an index lists it under."""


class PrefixIndex:
    """Finds the source that shares the longest prefix."""

    def __init__(self) -> None:
        self._sources: dict[bytes, dict[Source, None]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, source: Source, blocks: int) -> None:
        """List it under its first ``blocks`` blocks."""
        for name in source.names[source.listed : blocks]:
            self._sources.setdefault(name, {})[source] = None
        source.listed = max(source.listed, min(blocks, len(source.names)))

    def remove(self, source: Source) -> None:
        """Forget it."""
        for name in source.names[: source.listed]:
            sources = self._sources[name]
            del sources[source]
            if not sources:
                del self._sources[name]
        source.listed = 0

    def sharing(self, names: Seq[bytes]) -> tuple[int, Seq[Source]]:
        """How many of these blocks are listed, and the sources that have them, oldest first."""
        low, high = 0, len(names)
        while low < high:  # whoever is listed under a block is listed under all before it
            middle = (low + high + 1) // 2
            if names[middle - 1] in self._sources:
                low = middle
            else:
                high = middle - 1
        return low, list(self._sources[names[low - 1]]) if low else []

    def longest(self, ids: Seq[int], names: Seq[bytes], size: int) -> tuple[Source | None, int]:
        """The source with the longest common prefix of at least one block, and its length.

        At least the last token of ``ids`` is left to be computed: something must be sampled
        from. Among equals the newest that is not spilled is taken.
        """
        blocks, sources = self.sharing(names)
        best: Source | None = None
        length = 0
        for source in islice(reversed(sources), _LOOKED_AT):
            most = min(len(ids) - 1, source.length)
            common = min(blocks * size, most)
            while common < most and source.ids[common] == ids[common]:
                common += 1
            better = common > length or (
                common == length and best is not None and best.spilled and not source.spilled
            )
            if common and better:
                best, length = source, common
        return best, length
