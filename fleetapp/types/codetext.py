"""How a join code is written: its letters, its length, its check character. No I/O.

What it means only :mod:`fleetapp.fleet.joincode` knows; here it is told from a typing error, also
by a window in which somebody types one.
"""

from __future__ import annotations

import unicodedata
from typing import Final

CODE_PREFIX: Final = "FLEET"
CODE_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH: Final = 43
"""Characters after the prefix, dashes not counted."""

_FIELD = 32
# x^5 + x^2 + 1 is primitive over GF(2), so x generates all 31 non-zero elements
_POLYNOMIAL = 0b100101
_VALUE = {c: i for i, c in enumerate(CODE_ALPHABET)} | {"O": 0, "I": 1, "L": 1}
_MAX_INPUT = 512


def check_of(data: list[int]) -> int:
    """The value that makes ``sum(value[i] * x**(n-i))`` zero; evaluated by Horner's rule.

    Every position has a non-zero factor, so any single change shows; neighbours have different
    factors, so any exchange of two different neighbours shows, the check character included.
    """
    total = 0
    for value in data:
        total = _times_x(total ^ value)
    return total


def read_code(text: str) -> list[int]:
    """The values of a code's characters but the last, as people type it: case, spaces and dashes
    do not matter, nor O/0 and I/L/1.

    Raises:
        ValueError: says in a sentence what is wrong with it; the text itself is never repeated.
    """
    if len(text) > _MAX_INPUT:
        raise ValueError("This is far too long to be a join code.")
    plain = _plain(text)
    body = plain
    if len(plain) != CODE_LENGTH:
        if not plain.startswith(CODE_PREFIX):
            raise ValueError(f"A join code begins with {CODE_PREFIX}-, and this does not.")
        body = plain[len(CODE_PREFIX) :]
    if len(body) != CODE_LENGTH:
        raise ValueError(
            f"The join code has {len(body)} characters after {CODE_PREFIX}-, "
            f"but {CODE_LENGTH} are needed."
        )
    try:
        values = [_VALUE[c] for c in body]
    except KeyError as exc:
        raise ValueError(f"A join code never contains {exc.args[0]!r}.") from exc
    if check_of(values[:-1]) != values[-1]:
        raise ValueError("The join code is mistyped: its check character does not match.")
    return values[:-1]


def code_problem(text: str) -> str:
    """What is wrong with a code as somebody typed it, in a sentence; empty if nothing is."""
    try:
        read_code(text)
    except ValueError as exc:
        return str(exc)
    return ""


def _times_x(value: int) -> int:
    value <<= 1
    return value ^ _POLYNOMIAL if value & _FIELD else value


def _plain(text: str) -> str:
    """Upper case, without what pasting, chat programs and people add between characters."""
    folded = unicodedata.normalize("NFKC", text).upper()
    # dashes of any kind, white space, and invisible format characters
    return "".join(c for c in folded if unicodedata.category(c) not in ("Pd", "Cf", "Zs", "Cc"))
