"""Characters that make text read other than it is, and addresses that may be opened. Pure.

The trick of reordering code by bidirectional overrides is "Trojan Source" (Boucher and Anderson,
2021). Such characters are shown by their number. Joiners stay where scripts and emoji need them.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
"""Flags of countries that are no states are spelt with invisible tags."""
_HIDDEN = (
    "\u061c\u202a-\u202e\u2066-\u2069"  # direction
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065"  # no width
    "\u206a-\u206f\u3164\ufeff\uffa0"  # no width either, or blank letters
    "\u0000-\u0008\u000b-\u001f\u007f-\u009f"  # controls but tab and line feed
    "\U000e0000-\U000e007f"  # tags
)
_SUSPECT = re.compile(
    f"{_FLAG}|(?P<hidden>[{_HIDDEN}]|(?<![^\\x00-\\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\\x00-\\x7f]))"
)
LONGEST_LINE = 2000
"""Characters; laying out one line takes Qt time that grows with the square of its length."""

OPENABLE = ("http", "https")


def visible(text: str) -> str:
    """``text`` with hidden and reordering characters shown as ``[U+202E]``."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\u2028", "\n").replace("\u2029", "\n").replace("\x85", "\n")
    return _SUSPECT.sub(_numbered, text)


def suspects(text: str) -> list[tuple[int, int, str]]:
    """Start, end and what to show instead, of every character that ``visible`` would replace."""
    if text.isascii() and text.isprintable():
        return []
    return [(m.start(), m.end(), _numbered(m)) for m in _SUSPECT.finditer(text) if m["hidden"]]


def _numbered(match: re.Match[str]) -> str:
    hidden = match["hidden"]
    return match[0] if hidden is None else f"[U+{ord(hidden):04X}]"


def one_line(text: str) -> str:
    """For titles and lists: everything on one line, nothing hidden."""
    return " ".join(visible(text).split())


def cut_long_lines(text: str, limit: int = LONGEST_LINE) -> str:
    """Break lines of more than ``limit`` characters, at a space where there is one."""
    if len(text) <= limit:
        return text
    return "\n".join(
        piece
        for line in text.split("\n")
        for piece in (_pieces(line, limit) if len(line) > limit else (line,))
    )


def _pieces(line: str, limit: int) -> list[str]:
    pieces = []
    start = 0
    while len(line) - start > limit:
        space = line.rfind(" ", start + limit // 2, start + limit)
        cut = space + 1 if space > 0 else start + limit
        while line[cut : cut + 1] in ("\u200d", "\ufe0f") or line[cut - 1] == "\u200d":
            cut += 1  # not inside an emoji
            if cut - start > 2 * limit:
                break
        pieces.append(line[start:cut])
        start = cut
    pieces.append(line[start:])
    return pieces


def openable(address: str) -> bool:
    """Whether a link may be offered to the browser: a full http or https address and nothing else.

    Everything else (``javascript:``, ``file:``, ``data:``, programs' own schemes, paths) can do
    something on this PC.
    """
    if any(ord(c) <= 32 or ord(c) == 127 for c in address):
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme.lower() in OPENABLE and bool(host)
