"""Which tokens a sequence has, and how often: what penalties are computed from.

Everything is kept as tokens come and go; no token costs more because there are many before it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Bag:
    """A multiset of token ids whose distinct ids and counts are always there as arrays."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self._ids = np.zeros(16, np.int64)
        self._counts = np.zeros(16, np.float32)
        self._place: dict[int, int] = {}
        for token in tokens:
            self.add(token)

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """Distinct ids in no particular order; valid until the next change."""
        return self._ids[: len(self._place)]

    @property
    def counts(self) -> npt.NDArray[np.float32]:
        """How often each of ``ids`` is in it."""
        return self._counts[: len(self._place)]

    def add(self, token: int) -> None:
        """One more of it."""
        place = self._place.get(token)
        if place is not None:
            self._counts[place] += 1
            return
        place = len(self._place)
        if place == self._ids.size:
            self._ids = np.concatenate((self._ids, np.zeros_like(self._ids)))
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
        self._place[token] = place
        self._ids[place] = token
        self._counts[place] = 1

    def remove(self, token: int) -> None:
        """One less of it; it must be there."""
        place = self._place[token]
        self._counts[place] -= 1
        if self._counts[place] > 0:
            return
        last = len(self._place) - 1
        moved = int(self._ids[last])
        self._ids[place], self._counts[place] = moved, self._counts[last]
        self._place[moved] = place
        del self._place[token]


class History:
    """The tokens of one sequence: its prompt, which stays, and its answer, which may be rewound.

    Args:
        tokens: of all positions so far.
        answered: how many at the end of ``tokens`` belong to the answer.
    """

    def __init__(self, tokens: tuple[int, ...] = (), answered: int = 0) -> None:
        self._prompt = len(tokens) - answered
        self._answer = list(tokens[self._prompt :])
        self.all = Bag(tokens)
        self.answer = Bag(self._answer)

    def __len__(self) -> int:
        return self._prompt + len(self._answer)

    @property
    def prompt(self) -> int:
        """Positions of the prompt."""
        return self._prompt

    def push(self, token: int) -> None:
        """The answer goes on."""
        self._answer.append(token)
        self.all.add(token)
        self.answer.add(token)

    def pop(self) -> int:
        """Take back the answer's last token, and return it."""
        token = self._answer.pop()
        self.all.remove(token)
        self.answer.remove(token)
        return token
