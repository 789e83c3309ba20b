"""Token ids to text that is safe to show, one token at a time. Pure: nothing of OpenVINO.

``StreamDecoder`` asks the detokenizer for every token, which works with any of them and takes a
good part of a millisecond. ``TableDecoder`` looks the token's bytes up. Most detokenizers do no
more than join the bytes of tokens, but how they show what is not valid UTF-8 differs. So nothing
is taken on trust: ``learn`` compares a few ways with the detokenizer itself on many short
sequences, most of them nonsense, and offers a table only if one of them agrees on all.
"""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from fleetapp.engine.vocabulary import Vocabulary

_REPLACEMENT: Final = "\ufffd"
_MAX_INCOMPLETE: Final = 3  # an unfinished UTF-8 character has at most three bytes
_SLIDE_AT: Final = 32
_SLIDE_ANYWAY_AT: Final = 256
_KEEP: Final = (8, 16, 24)
# Detokenizers that "clean up" remove the space of " ." " ," " n't" and the like, so text that ends
# like this may still change when more comes.
_MAY_CHANGE: Final = re.compile(r" (?:n'?|'[vr]?)?$")
_ROUNDS: Final = 96


class TextStream(Protocol):
    """What ``push`` and ``flush`` return, joined, equals decoding all ids at once."""

    def push(self, token: int) -> str:
        """The text that became safe with this token, often empty."""
        ...

    def flush(self) -> str:
        """What is still held, once; incomplete characters as the detokenizer shows them."""
        ...


class StreamDecoder:
    """Turns token ids into text that is safe to show, one token at a time.

    What ``push`` and ``flush`` return, joined, equals decoding all ids at once. A character is
    shown when its last byte is there. Works with detokenizers that leave an incomplete
    character out and with those that put U+FFFD in its place, also when the model really
    writes U+FFFD. The work per token does not grow with the length of the answer: only a
    window of ids is decoded, and it moves forward where decoding its tail alone gives the
    tail of its text.

    Args:
        decode: all ids to text.
        cleans_up: the detokenizer removes spaces before punctuation.
    """

    def __init__(self, decode: Callable[[list[int]], str], *, cleans_up: bool = False) -> None:
        self._decode = decode
        self._cleans_up = cleans_up
        self._window: list[int] = []
        self._shown = 0
        self._slide_at = _SLIDE_AT
        self._ended = False

    def push(self, token: int) -> str:
        """The text that became safe with this token, often empty."""
        if self._ended:
            raise RuntimeError("the decoder was flushed")
        self._window.append(token)
        text = self._decode(self._window)
        new = self._show(text, self._safe_length(text))
        if len(self._window) >= self._slide_at:
            self._slide(text)
        return new

    def flush(self) -> str:
        """What is still held, once; incomplete characters as the detokenizer shows them."""
        if self._ended:
            return ""
        self._ended = True
        if not self._window:
            return ""
        text = self._decode(self._window)
        return self._show(text, len(text))

    def _show(self, text: str, end: int) -> str:
        new = text[self._shown : end]
        self._shown = max(self._shown, end)
        return new

    def _safe_length(self, text: str) -> int:
        kept = text.rstrip(_REPLACEMENT)
        # More than three in a row cannot all belong to the character being written.
        safe = max(len(kept), len(text) - _MAX_INCOMPLETE)
        if self._cleans_up and (match := _MAY_CHANGE.search(text, 0, safe)):
            safe = match.start()
        return safe

    def _slide(self, text: str) -> None:
        anyway = len(self._window) >= _SLIDE_ANYWAY_AT
        for keep in _KEEP:
            ids = self._window[-keep:]
            tail = self._decode(ids)
            # A visible character in the tail proves that what follows it is decoded alike, and
            # that a space stripped at the beginning of a text is not one of those to come.
            sound = tail.strip(_REPLACEMENT + " \n\t") != ""
            head = len(text) - len(tail)
            if (sound or anyway) and text.endswith(tail) and self._shown >= head:
                self._window = ids
                self._shown -= head
                self._slide_at = _SLIDE_AT
                return
        self._slide_at = len(self._window) + _SLIDE_AT


def _left_out(error: UnicodeError) -> tuple[str, int]:
    """OpenVINO's UTF8Validate leaves invalid bytes out, but takes half surrogates and characters
    over U+10FFFF for valid. They become one U+FFFD per byte on their way to a Python string.
    """
    assert isinstance(error, UnicodeDecodeError)
    whole = _lenient(error.object, error.start)
    return (_REPLACEMENT * whole, error.start + whole) if whole else ("", error.end)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """UTF8Validate in its replacing mode, else as above."""
    assert isinstance(error, UnicodeDecodeError)
    whole = _lenient(error.object, error.start)
    return (_REPLACEMENT * whole, error.start + whole) if whole else (_REPLACEMENT, error.end)


def _lenient(data: bytes, at: int) -> int:
    """Length of a surrogate or of a character over U+10FFFF that begins here, or 0."""
    first = data[at]
    length = 3 if first == 0xED else 4 if first == 0xF4 else 0
    tail = data[at + 1 : at + length]
    return length if length and len(tail) == length - 1 and all(map(_continues, tail)) else 0


def _continues(byte: int) -> bool:
    return 0x80 <= byte < 0xC0


WAYS: Final = ("fleetapp.left-out", "fleetapp.replaced")
for _name, _handler in zip(WAYS, (_left_out, _replaced), strict=True):
    codecs.register_error(_name, _handler)


def unfinished(data: bytes) -> int:
    """Bytes at the end that may be the beginning of a character."""
    for back in range(1, min(_MAX_INCOMPLETE, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 1
            return back if back < length else 0
    return 0


@dataclass(frozen=True)
class Table:
    """What a detokenizer does, as bytes by token."""

    tokens: tuple[bytes, ...]
    way: str
    """How invalid bytes are shown, one of ``WAYS``."""
    strips: bool
    """One space at the beginning of the text is left out (SentencePiece)."""

    def decode(self, ids: Iterable[int]) -> str:
        """All ids at once."""
        decoder = TableDecoder(self)
        return "".join([decoder.push(i) for i in ids]) + decoder.flush()


class TableDecoder:
    """The stream decoder of one answer; see ``TextStream``."""

    def __init__(self, table: Table) -> None:
        self._tokens = table.tokens
        self._way = table.way
        self._strip = table.strips
        self._pending = b""
        self._ended = False

    def push(self, token: int) -> str:
        """The text that became safe with this token, often empty."""
        if self._ended:
            raise RuntimeError("the decoder was flushed")
        data = self._tokens[token] if token < len(self._tokens) else b""
        if self._pending:
            data = self._pending + data
            self._pending = b""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            cut = len(data) - unfinished(data)
            text, self._pending = data[:cut].decode(errors=self._way), data[cut:]
        return self._stripped(text) if self._strip else text

    def flush(self) -> str:
        """What is still held, once; incomplete characters as the detokenizer shows them."""
        if self._ended:
            return ""
        self._ended = True
        text = self._pending.decode(errors=self._way)
        return self._stripped(text) if self._strip else text

    def _stripped(self, text: str) -> str:
        if text:
            self._strip = False
        return text.removeprefix(" ")


def learn(
    decode: Callable[[list[int]], str], vocabulary: Vocabulary, samples: Sequence[list[int]]
) -> Table | None:
    """The table that agrees with a detokenizer, or None if none does.

    Args:
        decode: all ids to text, special tokens left out.
        vocabulary: of the same tokenizer.
        samples: token ids of ordinary texts.
    """
    tokens = tuple(map(vocabulary.text, range(len(vocabulary.tokens))))
    cases = [*samples, *_nonsense(tokens, vocabulary.special)]
    expected = list(map(decode, cases))
    for way in WAYS:
        for strips in (False, True):
            table = Table(tokens, way, strips)
            if all(table.decode(ids) == text for ids, text in zip(cases, expected, strict=True)):
                return table
    return None


def _nonsense(tokens: Sequence[bytes], special: frozenset[int]) -> list[list[int]]:
    """Short sequences of any tokens, of pieces of characters, of spaces and of special tokens."""
    rng = random.Random(len(tokens))  # noqa: S311 - the same sequences for the same model
    kinds: list[Sequence[int]] = [
        range(len(tokens)),
        [i for i, t in enumerate(tokens) if t and not t.isascii() and len(t) < 3],
        [i for i, t in enumerate(tokens) if t[:1] in b" \n\t.,!?'" and len(t) < 5],
        sorted(special),
    ]
    kinds = [kind for kind in kinds if kind]
    return [
        [rng.choice(rng.choice(kinds) if n % 2 else kinds[0]) for _ in range(1 + n % 24)]
        for n in range(_ROUNDS)
    ]
