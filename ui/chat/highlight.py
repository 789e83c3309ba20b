"""Which words of a program are what, found by Pygments a slice of time at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

Word = Literal["keyword", "text", "comment", "number", "name"]
Span = tuple[int, int, Word]
"""Start and length in characters, and what it is."""

LONGEST = 100_000
"""Characters; more is shown without colours."""


def warm_up() -> None:
    """Load Pygments while nobody waits for it, so that the first code does not hold up the screen.

    A piece with each call, because the screen is held up meanwhile: call it twice. Not in a thread
    of its own: Python's garbage collector runs in whatever thread it is due in, and Qt objects that
    it ends there take the process with them.
    """
    if "pygments.lexers" in sys.modules:
        _lexer("python")
    else:
        import_module("pygments.lexers")


@lru_cache(maxsize=32)
def _lexer(language: str) -> Any:
    """None if the language is unknown. Imports on first use only what this language needs."""
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - a third of the window's start
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def spans(code: str, language: str) -> Iterator[Span]:
    """The words of ``code`` in order; nothing for a language that nobody knows.

    A generator, so that whoever has a screen to keep alive can stop and go on.
    """
    if not language or len(code) > LONGEST:
        return
    lexer = _lexer(language)
    if lexer is None:
        return
    for start, kind, text in lexer.get_tokens_unprocessed(code):
        word = _word(kind)
        if word is not None and text:
            yield start, len(text), word


@lru_cache(maxsize=512)
def _word(kind: Any) -> Word | None:
    from pygments.token import Token  # noqa: PLC0415

    # the first that holds
    table: tuple[tuple[Any, Word | None], ...] = (
        (Token.Comment, "comment"),
        (Token.Literal.String, "text"),
        (Token.Literal.Number, "number"),
        (Token.Keyword, "keyword"),
        (Token.Operator.Word, "keyword"),
        (Token.Name.Function, "name"),
        (Token.Name.Class, "name"),
        (Token.Name.Tag, "name"),
        (Token.Name.Decorator, "name"),
        (Token.Name.Builtin, "name"),
        (Token.Generic.Inserted, "text"),
        (Token.Generic.Deleted, "number"),
        (Token.Generic.Heading, "keyword"),
    )
    for family, word in table:
        if kind in family:
            return word
    return None
