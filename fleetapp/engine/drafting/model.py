"""A draft model: a smaller model with the same vocabulary, run whole in the head's process.

It has a cache of its own. What it computed of tokens that were then rejected is overwritten by
computing from an earlier position, as everywhere (a rewind needs no other call).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetapp.engine.drafting.base import Offer
from fleetapp.engine.drafting.costs import StepCost
from fleetapp.engine.executor.base import Executor
from fleetapp.errors import NoCapacity, Unsupported
from fleetapp.models.manifest import Architecture
from fleetapp.wire.frames import Segment

log = logging.getLogger("fleetapp.engine.drafting")

GRADE: Final = "model"
_BELIEF: Final = 0.7
_CHUNK: Final = 64
"""Tokens of a history that are computed at once: the answers of others wait for it."""
_IGNORED: Final = 200
"""Offers in a row of which none was taken, after which nothing is computed ahead any more."""
_PAYS_IN: Final = 16
"""Steps in which catching up with a long history must have paid for itself."""


def check_vocabulary(target: Architecture, draft: Architecture) -> None:
    """Refuse a draft model that does not speak the target's tokens.

    Raises:
        Unsupported: says so.
    """
    if not target.speaks_like(draft):
        raise Unsupported(
            "The draft model has another vocabulary than the model it is to draft for.",
            remedy="Choose a draft model of the same family, or --draft lookup.",
        )


@dataclass
class _Followed:
    """One sequence. ``tokens`` are chosen, ``ahead`` drafted after them; ``fed`` of both computed.

    ``wanted`` is what was last asked of it; 0 while nobody is interested.
    """

    tokens: list[int]
    prompt: int
    slot: int = -1
    generation: int = 0
    ahead: list[int] = field(default_factory=list)
    fed: int = 0
    wanted: int = 0
    barred: bool = False

    @property
    def behind(self) -> int:
        """Positions to compute before the next token can be drafted, at least 1."""
        return len(self.tokens) + len(self.ahead) - self.fed

    def next(self, most: int) -> list[int]:
        """The first ``most`` of them."""
        start = len(self.tokens)
        known = self.tokens[self.fed : self.fed + most] if self.fed < start else []
        skip = max(0, self.fed - start)
        return known + self.ahead[skip : skip + most - len(known)]


class DraftModel:
    """See ``Drafter``. Drafts greedily: the likeliest token is the likeliest to be accepted.

    Args:
        executor: the whole model as one stage; used by nobody else.
        slots: sequences it follows at once; as many as the head runs.
        clock: monotonic seconds.

    Raises:
        Unsupported: it is not a whole model.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        slots: int = 32,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not (executor.info.first and executor.info.last):
            raise Unsupported("A draft model must be held whole.")
        self._executor = executor
        self._clock = clock
        self._cost = StepCost()
        self._sequences: dict[str, _Followed] = {}
        self._slots = list(range(slots))
        self._generation = 0
        self._ignored = 0
        self._measure()

    def open(self, key: str, tokens: Sequence[int]) -> None:
        """Nothing is computed before somebody is interested."""
        self._sequences[key] = _Followed(list(tokens), len(tokens))

    def extend(self, key: str, tokens: Sequence[int]) -> None:
        """Drafts that were right stay; after a wrong one all are dropped."""
        seq = self._sequences.get(key)
        if seq is None:
            return
        right = 0
        for token, draft in zip(tokens, seq.ahead, strict=False):
            if token != draft:
                break
            right += 1
        if right == len(tokens):
            del seq.ahead[:right]
        else:
            seq.ahead.clear()
            seq.fed = min(seq.fed, len(seq.tokens) + right)
        seq.tokens += tokens

    def close(self, key: str) -> None:
        """Free its slot."""
        seq = self._sequences.pop(key, None)
        if seq is not None:
            self._release(seq)

    def offer(self, key: str, most: int) -> Offer | None:
        """Whatever its context has room for."""
        seq = self._sequences.get(key)
        if seq is None or not self._can_run(seq):
            return None
        seq.wanted = 0
        self._ignored += 1
        most = min(most, self._executor.info.max_context - len(seq.tokens))
        return Offer(GRADE, most, _BELIEF, sequential=True) if most > 0 else None

    def seconds(self, keys: Sequence[str], rounds: int) -> float:
        """By measured rounds; what has been drafted ahead is free, catching up is spread."""
        sequences = [self._sequences[key] for key in keys]
        total = 0.0
        for done in range(rounds):
            short = [seq for seq in sequences if len(seq.ahead) <= done]
            if not short:
                continue
            width = sum(min(s.behind, _CHUNK) if len(s.ahead) == done else 1 for s in short)
            total += self._cost.estimate(width, len(short))
        backlog = sum(seq.behind - _CHUNK for seq in sequences if seq.behind > _CHUNK)
        if rounds and backlog:
            total += self._cost.estimate(_CHUNK, 1) * backlog / _CHUNK / _PAYS_IN
        return total

    def draft(self, wants: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Rounds of one token for all that have too few.

        A sequence whose history is not computed yet gets on with that and drafts another time.
        """
        self._ignored = 0
        for key, count in wants.items():
            self._sequences[key].wanted = count
        named = {key: self._sequences[key] for key in wants}
        catching = [seq for seq in named.values() if seq.behind > _CHUNK]
        for seq in catching:
            self._forward([seq])
        while short := [
            seq
            for key, seq in named.items()
            if seq not in catching and not seq.barred and len(seq.ahead) < wants[key]
        ]:
            self._forward(short)
        return {
            key: tuple(seq.ahead[: wants[key]])
            for key, seq in named.items()
            if seq not in catching and seq.ahead
        }

    def idle(self, seconds: float) -> bool:
        """Catch up with prompts that are being prefilled, and draft on after what travels."""
        for seq in self._sequences.values():
            fresh = len(seq.tokens) == seq.prompt and self._ignored < _IGNORED
            if (seq.wanted or fresh) and seq.behind > _CHUNK and self._can_run(seq):
                if self._cost.estimate(_CHUNK, 1) > seconds:
                    continue
                self._forward([seq])
                return True
        room = self._executor.info.max_context
        ahead = [
            seq
            for seq in self._sequences.values()
            if seq.wanted and not seq.barred and seq.behind <= _CHUNK
            # What it would draft next, should all that travels turn out right.
            if len(seq.ahead) < min(2 * seq.wanted + 1, room - len(seq.tokens))
        ]
        width = sum(seq.behind for seq in ahead)
        if not ahead or self._cost.estimate(width, len(ahead)) > seconds:
            return False
        self._forward(ahead)
        return True

    def reset(self) -> None:
        """Forget every sequence."""
        for key in list(self._sequences):
            self.close(key)
        self._executor.reset()

    def _can_run(self, seq: _Followed) -> bool:
        return not seq.barred and (seq.slot >= 0 or bool(self._slots))

    def _forward(self, sequences: list[_Followed]) -> None:
        """One inference: a token more for each, or a chunk of its history."""
        segments: list[Segment] = []
        inputs: list[int] = []
        for seq in sequences:
            self._take_slot(seq)
            new = seq.next(_CHUNK)
            sample = len(new) == seq.behind
            segments.append(Segment(seq.slot, seq.generation, seq.fed, len(new), sample))
            inputs += new
        began = self._clock()
        try:
            logits = self._executor.forward(tuple(segments), np.array(inputs, np.int64))
        except NoCapacity as exc:
            log.info("no room to draft for %d sequences: %s", len(sequences), exc.message)
            for seq in sequences:
                seq.barred = True
                seq.ahead.clear()
                self._release(seq)
            return
        best = logits.argmax(axis=1).tolist() if len(logits) else []
        self._cost.observe(len(inputs), len(segments), self._clock() - began)
        chosen = iter(best)
        for seq, segment in zip(sequences, segments, strict=True):
            seq.fed += segment.count
            if segment.sample:
                seq.ahead.append(next(chosen))

    def _take_slot(self, seq: _Followed) -> None:
        if seq.slot < 0:
            self._generation += 1
            seq.slot, seq.generation, seq.fed = self._slots.pop(), self._generation, 0
            self._executor.open(seq.slot, seq.generation)

    def _release(self, seq: _Followed) -> None:
        if seq.slot >= 0:
            self._executor.close(seq.slot, seq.generation)
            self._slots.append(seq.slot)
            seq.slot, seq.fed = -1, 0

    def _measure(self) -> None:
        """Know what a round takes before the first is asked for."""
        chunk = max(1, min(_CHUNK, self._executor.info.max_context - 2))
        self._executor.open(0, 0)
        for past, count in ((0, chunk), (chunk, 1), (0, chunk), (chunk, 1), (chunk + 1, 1)):
            segment = Segment(0, 0, past, count, sample=True)
            began = self._clock()
            self._executor.forward((segment,), np.zeros(count, np.int64))
            self._cost.observe(count, 1, self._clock() - began)
        self._executor.reset()
