"""A frame before it is sent, and what came of it: the values that the scheduler deals in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fleetapp.engine.memory import Memory
from fleetapp.engine.sequences import Sequence
from fleetapp.wire.frames import SampledToken, Segment

Picks = list[tuple[Sequence, Segment]]
"""Who is in a frame, and with what."""


class Frame(msgspec.Struct, frozen=True):
    """What to compute next, once the orders given until now have been passed on."""

    step: int
    segments: tuple[Segment, ...]
    tokens: tuple[int, ...]
    """Of all segments, packed end to end."""


class Chosen(msgspec.Struct, frozen=True):
    """A token that a running sequence got; ``index`` counts its answer from 0."""

    request_id: str
    token: int
    index: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


class Verified(msgspec.Struct, frozen=True):
    """Of the drafts that a sequence had in a frame, the first ``accepted`` were right."""

    request_id: str
    drafted: int
    accepted: int


class Completion(msgspec.Struct, frozen=True):
    """What came of one frame; ``lost`` names sequences whose answer is missing from it."""

    chosen: tuple[Chosen, ...]
    lost: tuple[str, ...]
    verified: tuple[Verified, ...] = ()


class Decode(msgspec.Struct, frozen=True):
    """A sequence of the next frame that may carry drafts.

    No more than ``room`` of them: with the token that follows them they exhaust its budget.
    """

    request_id: str
    room: int


class Batch(msgspec.Struct, frozen=True):
    """The next frame before drafts are added to it."""

    tokens: int
    sequences: int
    answers: int
    """Sequences that will get a token."""
    room: int
    """Drafts that the whole frame has room for."""
    decodes: tuple[Decode, ...]


Propose = Callable[[Batch], Mapping[str, tuple[int, ...]]]
"""Drafts by request, within the rooms; asked just before a frame is sent."""


def with_drafts(
    picks: Picks, cost: int, propose: Propose, memory: Memory, frame_tokens: int
) -> Picks:
    """Add drafts. Nobody gives up blocks for them: those that do not fit are left out.

    Args:
        picks: of the next frame.
        cost: free blocks that they need.
        propose: makes drafts.
        memory: says what more positions need.
        frame_tokens: the most a frame carries.
    """
    decodes = [
        Decode(seq.request_id, seq.prompt + seq.max_tokens - len(seq.ids) - 1)
        for seq, segment in picks
        if segment.count == 1 and segment.sample and len(seq.ids) > seq.prompt
    ]
    if not decodes:
        return picks
    tokens = sum([segment.count for _, segment in picks])
    batch = Batch(
        tokens=tokens,
        sequences=len(picks),
        answers=sum([segment.sample for _, segment in picks]),
        room=max(0, frame_tokens - tokens),
        decodes=tuple(decodes),
    )
    drafts = propose(batch)
    drafted: Picks = []
    for seq, plain in picks:
        segment, guesses = plain, drafts.get(seq.request_id, ())
        if guesses:
            count = 1 + len(guesses)
            wide = Segment(plain.slot, plain.generation, plain.past_len, count, True, guesses)
            more = memory.cost(wide) - memory.cost(plain)
            if cost + more <= memory.free:
                cost += more
                segment = wide
        drafted.append((seq, segment))
    return drafted


def fits(seq: Sequence, segment: Segment, answer: list[SampledToken]) -> bool:
    """Whether an answer is one that its frame could get."""
    drafts = segment.drafts
    return 1 <= len(answer) <= 1 + len(drafts) and all(
        t.position == len(seq.ids) + i and (i == 0 or answer[i - 1].token == drafts[i - 1])
        for i, t in enumerate(answer)
    )
