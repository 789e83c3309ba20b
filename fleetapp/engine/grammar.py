"""Answers that follow a JSON schema or a regular expression, through llguidance.

The last stage holds a matcher per slot: it says which tokens may follow, and is told which did.
Nothing is ever forced: among all ways to write what is allowed as tokens the model chooses, so
neither an encoder nor a particular cut of the text into tokens is needed. JSON may have at most a
space, or a line break with an indentation, where white space is allowed: a small model that likes
white space would otherwise write nothing else.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fleetapp.engine.vocabulary import Vocabulary
from fleetapp.errors import BadRequest, FleetError, RunnerFailed
from fleetapp.types import Grammar

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

BUILD_SECONDS: Final = 10.0
"""Longer than this no answer waits for its grammar; the chain's deadline for a step is longer."""
MAX_TEXT: Final = 128 * 1024
"""Bytes; it crosses the ring in the header of a frame."""
_KEPT: Final = 32
_NOT_FORCED: Final = '%llguidance {"no_forcing": true}\n'
_JSON: Final = {"whitespace_flexible": True, "whitespace_pattern": r"[ ]?|\n[ ]{0,16}"}

_PLACE: Final = re.compile(r"^at \d+\(\d+\): (failed to compile JSON schema: )?")
"""Where it is wrong in the text we made of it, which nobody has seen."""

Logits = npt.NDArray[np.float32]


def check(grammar: Grammar) -> None:
    """Compile a grammar, to see that it can be followed. Takes milliseconds.

    Raises:
        BadRequest: it cannot; says why.
    """
    from llguidance import LLMatcher  # noqa: PLC0415 (native, and few requests need it)

    text = _compiled(grammar)
    wrong, words = LLMatcher.validate_grammar_with_warnings(text)
    if wrong:
        raise _refused(grammar, words[0] if words else "no reason given")


def _compiled(grammar: Grammar) -> str:
    """The grammar in llguidance's own language."""
    if len(grammar.text.encode("utf-8", "replace")) > MAX_TEXT:
        raise _refused(grammar, f"it is longer than {MAX_TEXT // 1024} KiB")
    if grammar.kind == "regex":
        from llguidance import regex_to_lark  # noqa: PLC0415

        return f"{_NOT_FORCED}start: /{regex_to_lark(grammar.text)}/"
    try:
        schema = json.loads(grammar.text)
    except (ValueError, RecursionError) as exc:
        raise _refused(grammar, f"it is not valid JSON: {exc}") from exc
    if not isinstance(schema, dict):
        raise _refused(grammar, "it is not a JSON object")
    return f"{_NOT_FORCED}start: %json {json.dumps({**schema, 'x-guidance': _JSON})}"


def _refused(grammar: Grammar, reason: str) -> BadRequest:
    what = "regular expression" if grammar.kind == "regex" else "JSON schema"
    reason = _PLACE.sub("", reason.split("\n   1 |", maxsplit=1)[0])
    short = " ".join(reason.split())[:300].rstrip(".")
    return BadRequest(
        f"The {what} cannot be followed: {short}.",
        remedy=f"Change the {what}; docs/api.md says what is offered.",
    )


class GrammarHost:
    """Makes the matchers of one stage, each grammar being compiled once.

    Compiling happens on a thread of its own, begun when a sequence is opened and waited for when
    its first token is chosen, so that its prompt is computed meanwhile and nobody else waits.

    Args:
        vocabulary: read when the first grammar comes.
        eos: ids that end an answer.
        size: logits per row; ids from the vocabulary's length on are never allowed.
    """

    def __init__(
        self, vocabulary: Callable[[], Vocabulary], eos: frozenset[int], size: int
    ) -> None:
        self._vocabulary = vocabulary
        self._eos = eos
        self._size = size
        self._pool = ThreadPoolExecutor(1, "grammar")
        self._tokenizer: LLTokenizer | None = None
        self._made: OrderedDict[Grammar, Future[LLMatcher]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, grammar: Grammar) -> Matching:
        """A matcher that has consumed nothing; returns at once."""
        with self._lock:
            future = self._made.get(grammar)
            if future is None:
                future = self._made[grammar] = self._pool.submit(self._make, grammar)
                if len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            else:
                self._made.move_to_end(grammar)
        return Matching(future, self._eos, self._size)

    def _make(self, grammar: Grammar) -> LLMatcher:
        from llguidance import LLMatcher, LLTokenizer  # noqa: PLC0415

        text = _compiled(grammar)
        if self._tokenizer is None:
            words = _Words(self._vocabulary(), self._eos)
            try:
                self._tokenizer = LLTokenizer(words, eos_token=sorted(self._eos))  # type: ignore[arg-type]
            except ValueError as exc:
                raise RunnerFailed(f"No grammar can be followed with this model: {exc}.") from exc
        matcher = LLMatcher(self._tokenizer, text, log_level=0)
        if matcher.is_error():
            raise _refused(grammar, matcher.get_error())
        return matcher


class _Words:
    """A vocabulary as llguidance wants it."""

    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: Vocabulary, eos: frozenset[int]) -> None:
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = sorted(vocabulary.special | eos)
        self.eos_token_id = min(eos)
        self.bos_token_id = None

    def __call__(self, _text: str) -> list[int]:
        return []  # only asked for when text is forced


class Matching:
    """A grammar's place in one answer. Satisfies ``sampling.Matcher``."""

    def __init__(self, made: Future[LLMatcher], eos: frozenset[int], size: int) -> None:
        self._made = made
        self._eos = eos
        self._size = size
        self._matcher: LLMatcher | None = None
        self._later: list[int] = []
        """Tokens that came before the matcher was asked for: nobody waits for it to be built."""
        self._beyond = 0
        """Tokens since the end: its end-of-sequence token, and what came after it."""

    def mask(self, logits: Logits) -> Logits:
        """A new row in which all that cannot follow is minus infinity.

        Raises:
            FleetError: the grammar cannot be followed any further.
        """
        if self._beyond:
            masked = np.full_like(logits, -np.inf)
            ends = sorted(self._eos)
            masked[ends] = logits[ends]
            return masked
        matcher = self._ready()
        bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        self._raise(matcher)
        allowed = np.zeros(self._size, bool)
        told = np.unpackbits(bits, bitorder="little")[: self._size]
        allowed[: told.size] = told
        return np.where(allowed, logits, np.float32(-np.inf))

    def push(self, token: int) -> None:
        """The answer goes on with a token.

        Raises:
            FleetError: it is not one that the grammar allows.
        """
        if self._beyond or token in self._eos:
            self._beyond += 1
            return
        if self._matcher is None:
            self._later.append(token)
            return
        matcher = self._matcher
        matcher.consume_token(token)
        self._raise(matcher)

    def pop(self, count: int) -> None:
        """The answer's last tokens are taken back."""
        late = min(count, self._beyond)
        self._beyond -= late
        if count > late:
            matcher = self._ready()
            matcher.rollback(count - late)
            self._raise(matcher)

    def _ready(self) -> LLMatcher:
        if self._matcher is None:
            try:
                self._matcher = self._made.result(BUILD_SECONDS).deep_copy()
            except TooSlow:
                raise RunnerFailed(
                    f"The grammar was not ready within {BUILD_SECONDS:g} s.",
                    remedy="Ask for something simpler.",
                ) from None
            for token in self._later:
                self._matcher.consume_token(token)
            self._raise(self._matcher)
        return self._matcher

    def _raise(self, matcher: Any) -> None:
        if matcher.is_error():
            raise FleetError(
                f"The grammar cannot be followed further: {_first_line(matcher.get_error())}.",
                remedy="Ask for something simpler.",
            )


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0][:200]
