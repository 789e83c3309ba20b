"""Prompt lookup: what followed the last time these words were said in this very conversation.

Saxena, "Prompt Lookup Decoding" (2023). The index grows with each token and never looks back, so
the work per token does not depend on the length of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fleetapp.engine.drafting.base import Offer

SHORTEST: Final = 2
LONGEST: Final = 3
_CHUNK: Final = 4096
"""Prompt tokens that are indexed at once: a huge prompt must not hold up the others' tokens."""
_GRADES: Final = (
    (12, "lookup 12+", 0.85),
    (6, "lookup 6+", 0.75),
    (4, "lookup 4+", 0.6),
    (3, "lookup 3", 0.5),
    (2, "lookup 2", 0.3),
)
"""Length of the match, name, and what is believed of its first draft."""


class Index:
    """The text of one sequence and where each pair and triple of tokens last ended.

    A match, once found, is followed: as long as the text goes on as it did before, the match
    grows without being searched for again.
    """

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self._tokens: list[int] = []
        self._pending = list(tokens)
        self._taken = 0
        self._ends: dict[tuple[int, ...], int] = {}
        self._next = 0
        self.matched = 0
        """Tokens at the end of the text that stand, in the same order, before the proposal."""

    def extend(self, tokens: Sequence[int]) -> None:
        """The text goes on."""
        self._pending += tokens

    def catch_up(self) -> bool:
        """Index some of what was said; True if nothing is left."""
        end = min(self._taken + _CHUNK, len(self._pending))
        for token in self._pending[self._taken : end]:
            self._append(token)
        self._taken = end
        if end < len(self._pending):
            return False
        self._pending, self._taken = [], 0
        return True

    def propose(self, most: int) -> tuple[int, ...]:
        """How the text went on after the match; a repetition is taken to repeat for ever."""
        if not self.matched:
            return ()
        found = self._tokens[self._next : self._next + most]
        period = len(self._tokens) - self._next
        while len(found) < most:
            found.append(found[len(found) - period])
        return tuple(found)

    def _append(self, token: int) -> None:
        tokens = self._tokens
        if self.matched and tokens[self._next] == token:
            self._next += 1
            self.matched += 1
        else:
            self.matched = 0
        tokens.append(token)
        end = len(tokens)
        for size in range(min(LONGEST, end), SHORTEST - 1, -1):
            gram = tuple(tokens[-size:])
            if self.matched < size and (found := self._ends.get(gram)) is not None:
                self._next, self.matched = found, size
            self._ends[gram] = end


class Lookup:
    """The drafter over all running sequences; see ``Drafter``."""

    def __init__(self) -> None:
        self._indices: dict[str, Index] = {}

    def open(self, key: str, tokens: Sequence[int]) -> None:
        """A sequence begins."""
        self._indices[key] = Index(tokens)

    def extend(self, key: str, tokens: Sequence[int]) -> None:
        """It goes on."""
        if (index := self._indices.get(key)) is not None:
            index.extend(tokens)

    def close(self, key: str) -> None:
        """It ended."""
        self._indices.pop(key, None)

    def offer(self, key: str, most: int) -> Offer | None:
        """An offer while the end of the text has been there before."""
        index = self._indices.get(key)
        if most < 1 or index is None or not index.catch_up() or not index.matched:
            return None
        grade, belief = _grade(index.matched)
        return Offer(grade, most, belief)

    def seconds(self, keys: Sequence[str], rounds: int) -> float:  # noqa: ARG002 (Drafter)
        """Next to nothing."""
        return 0.0

    def draft(self, wants: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """What followed."""
        found = {
            key: index.propose(count)
            for key, count in wants.items()
            if (index := self._indices.get(key)) is not None
        }
        return {key: tokens for key, tokens in found.items() if tokens}

    def idle(self, seconds: float) -> bool:  # noqa: ARG002 (Drafter)
        """Index what is left of a huge prompt."""
        return not all(index.catch_up() for index in list(self._indices.values()))

    def reset(self) -> None:
        """Forget every sequence."""
        self._indices.clear()


def _grade(matched: int) -> tuple[str, float]:
    return next((name, belief) for least, name, belief in _GRADES if matched >= least)
