"""Drafters that are right and wrong as a test wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetapp.engine.drafting.base import Offer

Pattern = Callable[[int], tuple[int, int]]
"""Turn number to (tokens drafted, how many of them are right)."""


class Scripted:
    """Knows the true answers and spoils them by a pattern.

    Args:
        answers: prompt and answer so far to the tokens that follow.
        pattern: of each sequence, by turn.
        wrong: what it says instead of a token.
    """

    def __init__(
        self,
        answers: Callable[[Sequence[int], int], Sequence[int]],
        pattern: Pattern,
        wrong: Callable[[int], int],
    ) -> None:
        self._answers = answers
        self._pattern = pattern
        self._wrong = wrong
        self._texts: dict[str, list[int]] = {}
        self._turns: dict[str, int] = {}
        self.drafted: list[tuple[int, int]] = []
        """Tokens drafted and how many of them were right, in order."""

    def open(self, key: str, tokens: Sequence[int]) -> None:
        self._texts[key] = list(tokens)
        self._turns[key] = 0

    def extend(self, key: str, tokens: Sequence[int]) -> None:
        if key in self._texts:
            self._texts[key] += tokens

    def close(self, key: str) -> None:
        self._texts.pop(key, None)

    def offer(self, key: str, most: int) -> Offer | None:
        return Offer("scripted", most) if most > 0 and key in self._texts else None

    def seconds(self, keys: Sequence[str], rounds: int) -> float:
        return 0.0

    def draft(self, wants: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        drafts: dict[str, tuple[int, ...]] = {}
        for key, most in wants.items():
            count, right = self._pattern(self._turns[key])
            self._turns[key] += 1
            count = min(count, most)
            right = min(right, count)
            truth = list(self._answers(self._texts[key], count))
            if right < count:
                truth[right] = self._wrong(truth[right])
            self.drafted.append((count, right))
            if count:
                drafts[key] = tuple(truth)
        return drafts

    def idle(self, seconds: float) -> bool:
        return False

    def reset(self) -> None:
        self._texts.clear()
