"""Which sequences go into the next frame. Pure: no clock, no I/O, no randomness.

Continuous batching as in Orca (Yu et al., OSDI 2022, section 3): membership of the running
batch is decided anew for every frame. Chunked prefill as in Sarathi-Serve (Agrawal et al.,
OSDI 2024, section 4): a prompt is fed in pieces that share frames with decodes. Frames keep
their order along the ring, so several pieces of one prompt may be on their way at once.

A sequence that gets its next token is in one frame at a time. Those that may go on wait in one
queue, in the order in which they became ready; each frame takes from its front. Who gets blocks
when they are short is decided by rank: a sequence can take them from those that come after it,
which are computed again later, and the first of all can take them from everybody. That is why
nobody starves.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from fleetapp.engine.batch import (
    Batch,
    Chosen,
    Completion,
    Decode,
    Frame,
    Picks,
    Propose,
    Verified,
    fits,
    with_drafts,
)
from fleetapp.engine.chunks import CHUNK_STEP, chunk, pieces
from fleetapp.engine.limits import Limits
from fleetapp.engine.memory import Memory
from fleetapp.engine.orders import Closed, Dropped, Kept, Opened, Order, Spilled
from fleetapp.engine.sequences import Sequence, Waiting
from fleetapp.errors import ContextTooLong, NoCapacity, StaleFrame
from fleetapp.types import Priority
from fleetapp.wire.frames import SampledToken, Segment

__all__ = [
    "Batch",
    "Chosen",
    "Closed",
    "Completion",
    "Decode",
    "Dropped",
    "Frame",
    "Kept",
    "Limits",
    "Opened",
    "Order",
    "Propose",
    "Scheduler",
    "Spilled",
    "Verified",
]


@dataclass(slots=True)
class _InFlight:
    entries: Picks
    alive: set[int]
    """Slots of the segments that no stage has dropped."""
    prompt: int
    """Positions of prompts in it."""


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
        self.preemptions = 0
        self.memory = Memory(limits)
        self._waiting = Waiting(limits.patience)
        self._running: dict[str, Sequence] = {}
        self._decoding: OrderedDict[str, Sequence] = OrderedDict()
        """Ready for their next token."""
        self._prefilling: dict[str, Sequence] = {}
        """With more than that to compute."""
        self._free_slots: deque[int] = deque(range(limits.slots))
        self._in_flight: dict[int, _InFlight] = {}
        self._step = 0
        self._arrivals = 0
        self._chunk = limits.frame_tokens

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
        """Blocks that no sequence holds, neither a running nor a kept one."""
        return self.memory.free

    @property
    def in_flight(self) -> tuple[int, ...]:
        """Steps sent and not completed, oldest first."""
        return tuple(self._in_flight)

    def pace(self, chunk: int) -> None:
        """Positions of prompts that a frame may carry while somebody waits for a next token."""
        self._chunk = max(CHUNK_STEP, min(chunk, self.limits.frame_tokens))

    def tokens(self, request_id: str) -> list[int] | None:
        """All tokens of a sequence, its prompt and its answer so far; None if it is not there.

        The list grows with the answer.
        """
        seq = self._running.get(request_id) or self._waiting.get(request_id)
        return seq.ids if seq is not None else None

    def add(
        self,
        request_id: str,
        prompt: tuple[int, ...],
        max_tokens: int,
        priority: Priority = "interactive",
    ) -> None:
        """Queue a sequence.

        Raises:
            ContextTooLong, NoCapacity: as ``take``.
        """
        batch = priority == "batch"
        self.take(Sequence(request_id, list(prompt), len(prompt), max_tokens, batch))

    def take(self, seq: Sequence) -> None:
        """Queue a sequence, perhaps one of an epoch before: what it has answered is computed again.

        Those that have waited before keep their place, so take them first and in their order.

        Raises:
            ContextTooLong: it could never fit.
            NoCapacity: too many are waiting.
        """
        total = seq.prompt + seq.max_tokens
        if self.limits.blocks(total) > self.limits.kv_blocks:
            raise ContextTooLong(
                f"Prompt and answer need {total} tokens, this chain holds {self.limits.tokens}."
            )
        if len(self._waiting) >= self.limits.waiting:
            raise NoCapacity(
                f"{len(self._waiting)} requests are waiting already.", remedy="Try again later."
            )
        self._arrivals = seq.arrival = max(seq.arrival, self._arrivals + 1)
        seq.names, seq.fresh, seq.began_with = self.memory.names(seq.ids), False, 0
        self._waiting.add(seq)

    def leave(self) -> list[Sequence]:
        """The epoch is over: all sequences, in the order of their arrival, for the next one.

        What is in flight never comes back, and nothing is left to say to any stage.
        """
        left = sorted([*self._running.values(), *self._waiting], key=lambda seq: seq.arrival)
        for seq in left:
            seq.vacate()
        return left

    def orders(self) -> list[Order]:
        """What stages must hear before anything else, in order; each is given once."""
        return self.memory.take_orders()

    def next_frame(self, propose: Propose | None = None) -> Frame | None:
        """The next frame to send, or None while nothing can be sent.

        Pass on ``orders`` after it, and before the frame.

        Args:
            propose: drafts for its decodes; none if left out.
        """
        spare = self.limits.frames - len(self._in_flight)
        if spare < 1:
            return None
        self._admit()
        picks, cost = self._pick(spare)
        if not picks:
            return None
        if propose is not None:
            picks = with_drafts(picks, cost, propose, self.memory, self.limits.frame_tokens)
        self._step += 1
        prompt = sum([s.count for seq, s in picks if seq.request_id in self._prefilling])
        tokens: list[int] = []
        for seq, segment in picks:
            past = segment.past_len
            seq.past += segment.count - len(segment.drafts)
            tokens += seq.ids[past : seq.past]
            tokens += segment.drafts
            self._decoding.pop(seq.request_id, None)
            if seq.past == len(seq.ids):
                self._prefilling.pop(seq.request_id, None)
        segments = tuple([segment for _, segment in picks])
        self.memory.launch(segments, [seq for seq, _ in picks])
        self._in_flight[self._step] = _InFlight(picks, {s.slot for s in segments}, prompt)
        return Frame(self._step, segments, tuple(tokens))

    def complete(self, step: int, tokens: Iterable[SampledToken]) -> Completion:
        """A frame came back; its sequences may go on.

        Args:
            step: of the frame.
            tokens: those of sequences that have ended or were preempted meanwhile are ignored;
                a sequence that should have got one for its next position and did not is
                reported as lost. After drafts there are several, of consecutive positions:
                those that were right, then one more.

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
        for seq, segment in self._in_flight.pop(step).entries:
            if seq.generation != segment.generation or not segment.sample:
                continue  # ended or preempted meanwhile, or a piece of a prompt
            answer = answers.get((segment.slot, segment.generation), [])
            if not fits(seq, segment, answer):
                lost.append(seq.request_id)
                continue
            index = len(seq.ids) - seq.prompt
            chosen += [
                Chosen(seq.request_id, t.token, index + i, t.logprob, t.top)
                for i, t in enumerate(answer)
            ]
            if segment.drafts:
                right = sum(
                    t.token == d for t, d in zip(answer, segment.drafts, strict=False)
                )  # an answer may also end with one of them: nothing could be chosen after it
                verified.append(Verified(seq.request_id, len(segment.drafts), right))
            seq.ids += [t.token for t in answer]
            seq.past = len(seq.ids) - 1
            self._decoding[seq.request_id] = seq
        return Completion(tuple(chosen), tuple(lost), tuple(verified))

    def drop(self, step: int, slot: int) -> str | None:
        """A stage could not go on with one segment of a frame.

        A frame whose segments have all been dropped is complete, nothing more comes of it.

        Returns:
            Whose segment it was, unless that sequence has ended or was preempted; the caller
            finishes it, or has it computed ``again``.
        """
        frame = self._in_flight.get(step)
        if frame is None or slot not in frame.alive:
            return None
        frame.alive.discard(slot)
        if not frame.alive:
            del self._in_flight[step]
        for seq, segment in frame.entries:
            if segment.slot == slot and seq.generation == segment.generation:
                return seq.request_id
        return None

    def finish(self, request_id: str, *, keep: bool = True) -> None:
        """A sequence ends, wherever it is; its slot is free at once.

        Args:
            request_id: whose; one that is not there is not an error.
            keep: whether what it computed can be built on (false if something went wrong).
        """
        if self._waiting.pop(request_id) is not None:
            return
        seq = self._running.get(request_id)
        if seq is not None:
            self._leave(seq, keep=keep)

    def again(self, request_id: str) -> None:
        """What a running sequence began with is lost: compute all of it."""
        seq = self._running.get(request_id)
        if seq is None:
            return
        self.memory.forget(seq.began_with)
        seq.fresh = True
        self._put_back(seq, keep=False)

    # -- who runs ----------------------------------------------------------------------------

    def _admit(self) -> None:
        """By rank. A large request at the front is not overtaken for ever."""
        if not self._waiting:
            return
        for seq in self._waiting:
            if self._sharer_prefills(seq):
                continue  # in a moment it need not compute what that one is computing
            if not self._find_place(seq):
                return
            self._waiting.pop(seq.request_id)
            self._waiting.overtaken(seq)
            self.last_generation += 1
            seq.slot = self._free_slots.popleft()
            seq.generation = self.last_generation
            self.memory.open(seq, self.memory.find(seq))
            self._running[seq.request_id] = seq
            if seq.missing == 1:
                self._decoding[seq.request_id] = seq
            else:
                self._prefilling[seq.request_id] = seq

    def _sharer_prefills(self, seq: Sequence) -> bool:
        """Whether one that goes before it is about to compute more of its prefix than there is."""
        if seq.fresh or not seq.names:
            return False
        mine = self._waiting.rank(seq)
        most = (len(seq.ids) - 1) // self.limits.block_size
        for other in self._prefilling.values():
            next_one = other.source.listed
            if (
                next_one < min(most, len(other.names))
                and other.names[next_one] == seq.names[next_one]
                and self._waiting.rank(other) < mine
            ):
                return True
        return False

    def _find_place(self, seq: Sequence) -> bool:
        """A slot, and blocks for what is known of it and a little more; True if there are.

        An interactive sequence takes the place of batch ones, the last first.
        """
        if not self._running:
            return True
        victims: list[Sequence] = []
        if not self._waiting.rank(seq)[0]:
            victims = [v for v in self._running.values() if self._waiting.rank(v)[0]]
        if not (self._free_slots or victims):
            return False
        found = self.memory.find(seq)
        claims = sum([self.memory.claimed(other) for other in self._running.values()])
        # A block each, so that the next token of somebody does not preempt the newcomer.
        need = found.need + claims + len(self._running)
        if self._free_slots and need <= self.memory.available(found):
            return True
        if not victims:
            return False
        gain = sum([self.memory.count(v) + self.memory.claimed(v) + 1 for v in victims])
        if need - gain > self.memory.available(found):
            return False
        victim = max(victims, key=self._waiting.rank)
        victim.passed += 1
        self._put_back(victim, keep=True)
        return self._find_place(seq)

    def _put_back(self, seq: Sequence, *, keep: bool) -> None:
        """Preempt: its blocks are others', its tokens so far are its prompt from now on."""
        self._leave(seq, keep=keep)
        self.preemptions += 1
        seq.names = self.memory.names(seq.ids)
        self._waiting.add(seq)

    def _leave(self, seq: Sequence, *, keep: bool) -> None:
        del self._running[seq.request_id]
        self._decoding.pop(seq.request_id, None)
        self._prefilling.pop(seq.request_id, None)
        self.memory.close(seq, keep=keep)
        self._free_slots.append(seq.slot)
        seq.vacate()

    # -- what they do ------------------------------------------------------------------------

    def _pick(self, spare: int) -> tuple[Picks, int]:
        """Segments of the next frame, and the blocks they need.

        Enough frames to keep every stage busy, each as wide as that allows: the ready ones are
        divided among the spare frames, but no frame takes more than its share of all.
        """
        limits = self.limits
        decoders = len(self._running) - len(self._prefilling)
        width = min(-(-decoders // limits.frames), -(-len(self._decoding) // spare))
        ready = [(seq, 1) for seq in self._decoding.values()]
        if self._prefilling:
            ready += self._pieces(limits.frame_tokens - width, decoding=decoders > 0)
        if self.memory.free < 2 * len(self._running) + limits.blocks(limits.frame_tokens):
            ready.sort(key=lambda pair: self._waiting.rank(pair[0]))  # blocks are short
        picks: Picks = []
        cost = decodes = 0
        for seq, count in ready:
            decode = seq.request_id in self._decoding
            if seq.slot < 0 or (decode and decodes == width):
                continue  # preempted just now, or for another frame
            before = len(picks)
            cost = self._try(seq, count, picks, cost)
            decodes += decode and len(picks) > before
        return picks, cost

    def _pieces(self, room: int, *, decoding: bool) -> list[tuple[Sequence, int]]:
        """Pieces of prompts for the next frame.

        Between two tokens of an answer all frames pass the slowest stage once. While somebody
        waits for a next token the pieces in all of them together are no more than one piece may
        be, so that they take no longer than that piece does at all stages. A crowd of short
        prompts is divided among frames like one long prompt: along a ring that fills all stages.
        """
        ranked = sorted(self._prefilling.values(), key=self._waiting.rank)
        missing = [seq.missing for seq in ranked]
        frames, most = self.limits.frames, room
        least = min(CHUNK_STEP, room, *missing)
        if decoding:
            room = min(room, self._chunk - sum([f.prompt for f in self._in_flight.values()]))
            frames = max(1, frames - 1)
            most = max(CHUNK_STEP, self._chunk // frames)
        if sum(missing) <= self._chunk or not decoding:
            room = min(room, chunk(sum(missing), max(room, 1), self.limits.frames))
        if room < least:
            return []
        return pieces(ranked, room, most, frames)

    def _try(self, seq: Sequence, count: int, picks: Picks, cost: int) -> int:
        """Pick a segment if its blocks can be had; returns what all picks cost now."""
        sample = seq.past + count == len(seq.ids)
        segment = Segment(seq.slot, seq.generation, seq.past, count, sample)
        while True:
            total = cost + self.memory.cost(segment)
            if total <= self.memory.free:
                picks.append((seq, segment))
                return total
            if self.memory.give_way():
                continue
            mine = self._waiting.rank(seq)
            picked = {id(other) for other, _ in picks}
            victims = [v for v in self._running.values() if id(v) not in picked]
            victim = max(victims, key=self._waiting.rank)
            if self._waiting.rank(victim) <= mine:
                return cost  # those before it go on and will end; it waits
            self._put_back(victim, keep=True)
