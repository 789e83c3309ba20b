"""How prompts are cut into pieces that share frames with decodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from math import sqrt
from typing import Final

from fleetapp.engine.sequences import Sequence

CHUNK_STEP: Final = 16
"""Chunks are multiples of it where that is possible: fewer shapes for the device."""
_SHORTEST: Final = 32
_FRAME_COST: Final = 12.0
"""What a frame costs a stage besides its positions, in positions (measured on CPUs: 8 to 16)."""


def chunk(missing: int, most: int, stages: int) -> int:
    """The next piece of a prompt. Along a ring smaller ones fill all stages sooner.

    n positions in c pieces take (c + s - 1)(f + n / c) on s stages, where f is what a frame
    costs besides its positions; the best c is sqrt((s - 1) n / f).
    """
    if stages > 1:
        most = min(most, max(_SHORTEST, int(sqrt(missing * _FRAME_COST / (stages - 1)))))
    if missing <= most:
        return missing
    return max(1, most - most % CHUNK_STEP if most > CHUNK_STEP else most)


def pieces(ranked: Seq[Sequence], room: int, most: int, stages: int) -> list[tuple[Sequence, int]]:
    """Pieces for one frame, together at most ``room`` positions, each at most ``most``.

    The first in rank gets at least half, so that it is never held up; then the shortest go
    first, so that a short question need not wait for a long text. ``stages``: as many as pieces
    may fill at once.
    """
    first, others = ranked[0], sorted(ranked[1:], key=lambda seq: seq.missing)
    wanted = chunk(first.missing, min(most, room), stages)
    left = room - min(wanted, room - room // 2 if others else room)
    found: list[tuple[Sequence, int]] = []
    for seq in others:
        count = min(chunk(seq.missing, most, stages), left)
        left -= count
        if count:
            found.append((seq, count))
    mine = min(wanted, room - sum([count for _, count in found]))
    return [(first, mine), *found]
