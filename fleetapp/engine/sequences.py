"""Sequences as the scheduler sees them, and the queue of those that wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetapp.engine.prefix import Source

Rank = tuple[bool, int]
"""Smaller goes first: interactive before batch, then by arrival."""


@dataclass(eq=False, slots=True)
class Sequence:
    """One request's tokens and how far they are computed."""

    request_id: str
    ids: list[int]
    """The prompt, then the answer so far."""
    prompt: int
    """Tokens of it."""
    max_tokens: int
    """Of its answer."""
    batch: bool
    arrival: int = 0
    """Its number among all; 0 before it first waits."""
    names: list[bytes] = field(default_factory=list)
    """Of the full blocks of ``ids`` when it last began to wait."""
    slot: int = -1
    generation: int = 0
    past: int = 0
    """Positions computed or in flight."""
    passed: int = 0
    """How often interactive requests went before it."""
    fresh: bool = False
    """It is to be computed from its first token: what it began with was lost."""
    began_with: int = 0
    """The kept sequence it began with, or 0."""
    source: Source = field(init=False)

    @property
    def missing(self) -> int:
        """Known tokens that are neither computed nor in flight; 1 is an ordinary decode."""
        return len(self.ids) - self.past

    def vacate(self) -> None:
        """It has no slot and nothing is computed of it any more."""
        self.slot, self.generation, self.past = -1, -1, 0


class Waiting:
    """Sequences without a slot, in the order of their rank.

    Args:
        patience: a batch request that so many others have overtaken counts as interactive, so
            nobody waits for ever.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._sequences: dict[str, Sequence] = {}
        self._sorted: list[Sequence] | None = None

    def __len__(self) -> int:
        return len(self._sequences)

    def __iter__(self) -> Iterator[Sequence]:
        """By rank; the queue may be changed meanwhile."""
        if self._sorted is None:
            self._sorted = sorted(self._sequences.values(), key=self.rank)
        return iter(list(self._sorted))

    def rank(self, seq: Sequence) -> Rank:
        """Its place among all, running ones included."""
        return seq.batch and seq.passed < self._patience, seq.arrival

    def add(self, seq: Sequence) -> None:
        """It waits from now on."""
        self._sequences[seq.request_id] = seq
        self._sorted = None

    def get(self, request_id: str) -> Sequence | None:
        """One of them."""
        return self._sequences.get(request_id)

    def pop(self, request_id: str) -> Sequence | None:
        """It waits no longer."""
        seq = self._sequences.pop(request_id, None)
        if seq is not None:
            self._sorted = None
        return seq

    def overtaken(self, by: Sequence) -> None:
        """One got a slot; those of batch requests that came before it lost patience a little."""
        if by.batch:
            return
        for seq in self._sequences.values():
            if seq.batch and seq.arrival < by.arrival:
                seq.passed += 1
                self._sorted = None
