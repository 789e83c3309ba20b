"""Which sequences go into the next frame. Pure: no clock, no I/O, no randomness.

Continuous batching as in Orca (Yu et al., OSDI 2022, section 3): membership of the running
batch is decided anew for every frame. Chunked prefill as in Sarathi-Serve (Agrawal et al.,
OSDI 2024, section 4): a prompt is fed in pieces that share frames with decodes.

A sequence is in at most one frame at a time. Sequences that may go on wait in one queue, in the
order in which they became ready; each frame takes from its front, which is why nobody starves.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from fleetapp.errors import ContextTooLong, NoCapacity, StaleFrame
from fleetapp.wire.frames import SampledToken, Segment


class Limits(msgspec.Struct, frozen=True):
    """What a chain can carry.

    ``kv_blocks`` of ``block_size`` tokens are shared by all running sequences; at most
    ``slots`` of them run; ``frames`` (the number of stages) are kept in flight;
    ``frame_tokens`` is the most a frame carries and is larger than ``slots``, so that a
    prefill always finds room beside the decodes.
    """

    kv_blocks: int
    block_size: int
    frames: int
    slots: int = 32
    frame_tokens: int = 256
    waiting: int = 512

    def blocks(self, tokens: int) -> int:
        """Blocks that ``tokens`` positions take."""
        return -(-tokens // self.block_size)

    @property
    def tokens(self) -> int:
        """Positions that the whole cache holds."""
        return self.kv_blocks * self.block_size


class Opened(msgspec.Struct, frozen=True):
    """A waiting sequence got a slot; stages must hear of it before the frame."""

    request_id: str
    slot: int
    generation: int


class Closed(msgspec.Struct, frozen=True):
    """A slot is free again; stages must hear of it before its next user."""

    slot: int
    generation: int


class Frame(msgspec.Struct, frozen=True):
    """What to compute next: first the slots to open, then the segments with their tokens."""

    step: int
    opened: tuple[Opened, ...]
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


@dataclass(slots=True)
class _Sequence:
    request_id: str
    prompt: tuple[int, ...]
    max_tokens: int
    blocks: int
    slot: int = -1
    generation: int = 0
    past: int = 0
    """Positions computed, drafts that wait to be verified not counted."""
    drafts: tuple[int, ...] = ()
    """Those in its frame."""
    next_token: int = -1
    answered: int = 0
    step: int = -1
    """The frame it is in, or -1."""


@dataclass(slots=True)
class _InFlight:
    sequences: tuple[_Sequence, ...]
    alive: set[int]
    """Slots of the segments that no stage has dropped."""


class Scheduler:
    """The running batch of one epoch of a chain.

    Args:
        limits: of the chain.
        first_generation: slot generations begin after this number; pass the last one of the
            epoch before, so that no two users of a slot ever look alike.
    """

    def __init__(self, limits: Limits, *, first_generation: int = 0) -> None:
        if limits.slots >= limits.frame_tokens or min(limits.slots, limits.frames) < 1:
            raise ValueError(f"limits that leave no room for a prefill: {limits}")
        self.limits = limits
        self.last_generation = first_generation
        self._waiting: OrderedDict[str, _Sequence] = OrderedDict()
        self._running: dict[str, _Sequence] = {}
        self._ready: OrderedDict[str, _Sequence] = OrderedDict()
        self._free_slots: deque[int] = deque(range(limits.slots))
        self._free_blocks = limits.kv_blocks
        self._in_flight: dict[int, _InFlight] = {}
        self._step = 0

    @property
    def running(self) -> int:
        """Sequences that hold a slot."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences that wait for one."""
        return len(self._waiting)

    @property
    def free_blocks(self) -> int:
        """Blocks that no running sequence has reserved."""
        return self._free_blocks

    @property
    def in_flight(self) -> tuple[int, ...]:
        """Steps sent and not completed, oldest first."""
        return tuple(self._in_flight)

    def add(self, request_id: str, prompt: tuple[int, ...], max_tokens: int) -> None:
        """Queue a sequence; blocks for its prompt and all its answer are reserved at admission.

        Raises:
            ContextTooLong: it could never fit.
            NoCapacity: too many are waiting.
        """
        total = len(prompt) + max_tokens
        blocks = self.limits.blocks(total)
        if blocks > self.limits.kv_blocks:
            raise ContextTooLong(
                f"Prompt and answer need {total} tokens, this chain holds {self.limits.tokens}."
            )
        if len(self._waiting) >= self.limits.waiting:
            raise NoCapacity(
                f"{len(self._waiting)} requests are waiting already.", remedy="Try again later."
            )
        self._waiting[request_id] = _Sequence(request_id, prompt, max_tokens, blocks)

    def next_frame(self, propose: Propose | None = None) -> Frame | None:
        """The next frame to send, or None while nothing can be sent.

        Args:
            propose: drafts for its decodes; none if left out.
        """
        spare = self.limits.frames - len(self._in_flight)
        if spare < 1:
            return None
        opened = self._admit()
        picks = self._pick(spare)
        if not picks:
            return None  # nothing was admitted either: the first one ready is always picked
        proposed = self._proposed(picks, propose) if propose is not None else {}
        self._step += 1
        segments: list[Segment] = []
        tokens: list[int] = []
        for seq, count in picks:
            prefill = seq.past < len(seq.prompt)
            if prefill:
                tokens += seq.prompt[seq.past : seq.past + count]
                seq.drafts = ()
            else:
                seq.drafts = proposed.get(seq.request_id, ())
                tokens += (seq.next_token, *seq.drafts)
            sample = seq.past + count >= len(seq.prompt)
            width = count + len(seq.drafts)
            segments.append(Segment(seq.slot, seq.generation, seq.past, width, sample, seq.drafts))
            seq.past += count
            seq.step = self._step
            del self._ready[seq.request_id]
        self._in_flight[self._step] = _InFlight(
            tuple(seq for seq, _ in picks), {s.slot for s in segments}
        )
        return Frame(self._step, opened, tuple(segments), tuple(tokens))

    def complete(self, step: int, tokens: Iterable[SampledToken]) -> Completion:
        """A frame came back; its sequences may go on.

        Args:
            step: of the frame.
            tokens: those of sequences that have ended meanwhile are ignored; a sequence that
                should have got one for its next position and did not is reported as lost. After
                drafts there are several, of consecutive positions: those that were right, then
                one more.

        Raises:
            StaleFrame: no such step is in flight; nothing changes.
        """
        if step not in self._in_flight:
            raise StaleFrame(f"Step {step} is not in flight.")
        answers: dict[tuple[int, int], list[SampledToken]] = {}
        for token in tokens:
            answers.setdefault((token.slot, token.generation), []).append(token)
        chosen: list[Chosen] = []
        lost: list[str] = []
        verified: list[Verified] = []
        for seq in self._in_flight.pop(step).sequences:
            if seq.step != step:
                continue  # ended meanwhile
            seq.step = -1
            if seq.past >= len(seq.prompt):
                answer = answers.get((seq.slot, seq.generation), [])
                if not _fits(seq, answer):
                    lost.append(seq.request_id)
                    continue
                chosen += [
                    Chosen(seq.request_id, t.token, seq.answered + i, t.logprob, t.top)
                    for i, t in enumerate(answer)
                ]
                if seq.drafts:
                    verified.append(Verified(seq.request_id, len(seq.drafts), _right(seq, answer)))
                seq.next_token = answer[-1].token
                seq.answered += len(answer)
                seq.past += len(answer) - 1
            self._ready[seq.request_id] = seq
        return Completion(tuple(chosen), tuple(lost), tuple(verified))

    def drop(self, step: int, slot: int) -> str | None:
        """A stage could not go on with one segment of a frame.

        A frame whose segments have all been dropped is complete, nothing more comes of it.

        Returns:
            Whose segment it was, unless that sequence has ended; the caller finishes it.
        """
        frame = self._in_flight.get(step)
        if frame is None or slot not in frame.alive:
            return None
        frame.alive.discard(slot)
        if not frame.alive:
            del self._in_flight[step]
        for seq in frame.sequences:
            if seq.slot == slot and seq.step == step:
                return seq.request_id
        return None

    def finish(self, request_id: str) -> Closed | None:
        """A sequence ends, wherever it is; slot and blocks are free at once.

        Returns:
            The slot to close, or None if it had none (waiting, or unknown).
        """
        if self._waiting.pop(request_id, None) is not None:
            return None
        seq = self._running.pop(request_id, None)
        if seq is None:
            return None
        self._ready.pop(request_id, None)
        seq.step = -1
        self._free_slots.append(seq.slot)
        self._free_blocks += seq.blocks
        return Closed(seq.slot, seq.generation)

    def _proposed(
        self, picks: list[tuple[_Sequence, int]], propose: Propose
    ) -> Mapping[str, tuple[int, ...]]:
        decodes = tuple(
            Decode(seq.request_id, seq.max_tokens - seq.answered - 1)
            for seq, _ in picks
            if seq.past >= len(seq.prompt)
        )
        if not decodes:
            return {}
        tokens = sum(count for _, count in picks)
        batch = Batch(
            tokens=tokens,
            sequences=len(picks),
            answers=sum(seq.past + count >= len(seq.prompt) for seq, count in picks),
            room=max(0, self.limits.frame_tokens - tokens),
            decodes=decodes,
        )
        return propose(batch)

    def _admit(self) -> tuple[Opened, ...]:
        """Strictly in order: a large request at the front is not overtaken for ever."""
        opened: list[Opened] = []
        while self._waiting and self._free_slots:
            seq = next(iter(self._waiting.values()))
            if seq.blocks > self._free_blocks:
                break
            del self._waiting[seq.request_id]
            self.last_generation += 1
            seq.slot = self._free_slots.popleft()
            seq.generation = self.last_generation
            self._free_blocks -= seq.blocks
            self._running[seq.request_id] = seq
            self._ready[seq.request_id] = seq
            opened.append(Opened(seq.request_id, seq.slot, seq.generation))
        return tuple(opened)

    def _pick(self, spare: int) -> list[tuple[_Sequence, int]]:
        """Sequences and token counts of the next frame.

        Enough frames to keep every stage busy, each as wide as that allows: the ready ones are
        divided among the spare frames, but no frame takes more than its share of all running.
        """
        share = -(-len(self._running) // self.limits.frames)
        width = min(share, -(-len(self._ready) // spare))
        front = [seq for _, seq in zip(range(width), self._ready.values(), strict=False)]
        decodes = sum(1 for seq in front if seq.past >= len(seq.prompt))
        room = self.limits.frame_tokens - decodes
        picks: list[tuple[_Sequence, int]] = []
        for seq in front:
            missing = len(seq.prompt) - seq.past
            if missing <= 0:
                picks.append((seq, 1))
                continue
            count = min(missing, room)
            if count:
                room -= count
                picks.append((seq, count))
        return picks


def _fits(seq: _Sequence, answer: list[SampledToken]) -> bool:
    """Whether an answer is one that its frame could get."""
    return 1 <= len(answer) <= 1 + len(seq.drafts) and all(
        t.position == seq.past + i and (i == 0 or answer[i - 1].token == seq.drafts[i - 1])
        for i, t in enumerate(answer)
    )


def _right(seq: _Sequence, answer: list[SampledToken]) -> int:
    """Drafts that were accepted. An answer may also end with one of them: after it the last
    stage could choose nothing.
    """
    return sum(t.token == draft for t, draft in zip(answer, seq.drafts, strict=False))
