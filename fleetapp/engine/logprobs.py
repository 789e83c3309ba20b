"""Log probabilities on their way out: each goes with the text that its token begins."""

from __future__ import annotations

from collections import deque

from fleetapp.engine.pipe import Alternative, TokenLogprob
from fleetapp.engine.vocabulary import Vocabulary


class Reporter:
    """Holds back what belongs to text that is not shown yet.

    Counted in bytes of text: a token may end in the middle of a character, and a stop string may
    swallow the text of several tokens, which are then not reported either.

    Args:
        vocabulary: the bytes of every token.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._held: deque[tuple[int, TokenLogprob]] = deque()
        self._written = 0
        self._shown = 0

    def take(self, token: int, logprob: float, top: tuple[tuple[int, float], ...]) -> None:
        """A token was chosen."""
        name = self._vocabulary.name
        likeliest = tuple(Alternative(i, p, name(i)) for i, p in top)
        hidden = token in self._vocabulary.special
        report = TokenLogprob(token, logprob, name(token), likeliest, hidden)
        self._held.append((self._written, report))
        self._written += len(self._vocabulary.text(token))

    def show(self, text: str) -> tuple[TokenLogprob, ...]:
        """More text is shown: what begins within it."""
        self._shown += len(text.encode())
        return self._release(self._shown)

    def finish(self, text: str, *, cut: bool) -> tuple[TokenLogprob, ...]:
        """The last text is shown: all that is left, unless a stop string ``cut`` it away."""
        self._shown += len(text.encode())
        return self._release(self._shown if cut else self._written + 1)

    def _release(self, end: int) -> tuple[TokenLogprob, ...]:
        released = []
        while self._held and self._held[0][0] < end:
            released.append(self._held.popleft()[1])
        return tuple(released)
