"""Log probabilities on their way out: each goes with the text that its token begins."""

from __future__ import annotations

from collections import deque

from fleetapp.engine.detokenize import unfinished
from fleetapp.engine.pipe import Alternative, TokenLogprob
from fleetapp.engine.vocabulary import Vocabulary


class Reporter:
    """Holds back what belongs to text that is not shown yet.

    Counted in bytes of text: a token may end in the middle of a character, and a stop string may
    swallow the text of several tokens, which are then not reported.

    Args:
        vocabulary: the bytes of every token.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._held: deque[TokenLogprob | None] = deque()
        self._begins: deque[int] = deque()
        """Where the text of those begins that have been looked at, in bytes."""
        self._looked = 0
        self._shown = 0
        self._tail = b""

    def take(self, token: int, logprob: float | None, top: tuple[tuple[int, float], ...]) -> None:
        """A token was chosen; without a log probability there is nothing to report of it."""
        if logprob is None:
            self._held.append(None)
            return
        name = self._vocabulary.name
        likeliest = tuple(Alternative(i, p, name(i)) for i, p in top)
        hidden = token in self._vocabulary.special
        self._held.append(TokenLogprob(token, logprob, name(token), likeliest, hidden))

    def look(self, token: int, text: str, *, whole: bool) -> bool:
        """The next token taken makes ``text`` safe to show.

        Args:
            token: its id.
            text: what is safe now and was not before, of this token or of earlier ones.
            whole: nothing is held back in case it becomes a stop string.

        Returns:
            Whether its report, and all before it, may go with that text.
        """
        self._begins.append(self._looked)
        return self._advance(token, text, whole=whole)

    def recall(self, token: int, text: str, *, whole: bool) -> None:
        """As ``look``, of a token whose report has been sent by somebody else."""
        self._advance(token, text, whole=whole)

    def release(self, count: int) -> tuple[TokenLogprob, ...]:
        """The reports of the next ``count`` tokens."""
        for _ in range(count):
            self._begins.popleft()
        released = [self._held.popleft() for _ in range(count)]
        return tuple([report for report in released if report is not None])

    def finish(self, text: str, *, cut: bool) -> tuple[TokenLogprob, ...]:
        """The last text is shown: all that is left, unless a stop string ``cut`` it away."""
        self._shown += len(text.encode())
        count = sum(b < self._shown for b in self._begins) if cut else len(self._held)
        released = self.release(count)
        self._held.clear()
        self._begins.clear()
        return released

    def _advance(self, token: int, text: str, *, whole: bool) -> bool:
        begins, data = self._looked, self._vocabulary.text(token)
        self._looked += len(data)
        self._shown += len(text.encode())
        self._tail = (self._tail + data)[-3:]
        if whole:  # invalid bytes may be shown as more, or not at all: count anew
            self._shown = self._looked - unfinished(self._tail)
        return whole or begins < self._shown
