"""Markdown as a sequence of blocks that grows with the text; only the last one ever changes. Pure.

This is no Markdown parser: it finds where fenced code begins and ends and where prose may be cut
between two blank lines. What is inside prose, Qt's own parser reads (see ``prose``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["prose", "code"]

LARGEST = 8000
"""Characters after which a block of prose is ended even without a blank line, so that the last
block stays cheap to draw again."""
LARGEST_CODE = 60_000

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_ITEM = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_DIVIDER = re.compile(r"^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")


@dataclass(frozen=True)
class Block:
    """``text`` of code is without its fences."""

    kind: Kind
    text: str
    language: str = ""
    closed: bool = False
    """Nothing will be added any more."""


class BlockSplitter:
    """Feed it a growing text; ``blocks`` are all so far, each but the last closed."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._line = ""
        """The last line as far as it has come."""
        self._lines: list[str] = []
        """Complete lines of the open block."""
        self._size = 0
        self._fence = ""
        self._language = ""
        self._indent = 0
        """Of the open fence, and afterwards of what belongs to the same list item."""
        self._blank = 0
        """Blank lines that the open block of prose ends with."""
        self._list = False
        self._table_head: list[str] = []
        self._open = False
        """Whether the last of ``blocks`` is the open one."""

    def feed(self, text: str) -> int:
        """Take what was added; returns the index of the first block that has changed."""
        changed = max(0, len(self.blocks) - 1) if self._open else len(self.blocks)
        *lines, rest = text.split("\n")
        for line in lines:
            self._take(self._line + line)
            self._line = ""
        self._line += rest
        while len(self._line) > LARGEST and not self._fence:
            # one endless line is prose in pieces, or it could never be drawn
            cut = self._line.rfind(" ", LARGEST // 2, LARGEST) + 1 or LARGEST
            self._lines.append(self._line[:cut])
            self._line = self._line[cut:]
            self._close()
        self._show()
        return changed

    def finish(self) -> int:
        """The text is complete; returns the index of the first block that has changed."""
        changed = max(0, len(self.blocks) - 1) if self._open else len(self.blocks)
        if self._line:
            self._take(self._line)
            self._line = ""
        self._close()
        return changed

    def _take(self, line: str) -> None:
        if self._fence:
            self._take_code(line)
        else:
            self._take_prose(line)

    def _take_code(self, line: str) -> None:
        match = _FENCE.match(line)
        if match and match["mark"].startswith(self._fence) and not match["info"].strip():
            self._close()
            return
        self._add(_dedent(line, self._indent))
        if self._size > LARGEST_CODE:
            fence, language = self._fence, self._language
            self._close()
            self._fence, self._language = fence, language

    def _take_prose(self, line: str) -> None:
        match = _FENCE.match(line)
        # backticks after backticks are code within a line, not a fence
        if match and not (match["mark"][0] == "`" and "`" in match["info"]):
            self._close()
            self._fence = match["mark"]
            self._indent = len(match["indent"].expandtabs(4))
            self._language = _language(match["info"])
            self._open_code()
            return
        if not line.strip():
            self._blank += 1
            if self._lines:
                self._add(line)
            return
        if self._indent:
            if line[:1] in (" ", "\t"):
                line = _dedent(line, self._indent)
            else:
                self._indent = 0
        if self._lines and self._blank and not self._continues(line):
            self._close()
        elif self._size + len(line) > LARGEST:
            head = self._table_head
            self._close()
            for repeated in head:
                self._add(repeated)
            self._table_head = head
        if not self._lines:
            self._list = bool(_ITEM.match(line))
        self._blank = 0
        self._add(line)
        if len(self._lines) == 2 and "|" in self._lines[0] and _DIVIDER.match(line):
            self._table_head = list(self._lines)

    def _continues(self, line: str) -> bool:
        """Whether a line after a blank one still belongs to the open list."""
        return self._list and (line[:1] in (" ", "\t") or bool(_ITEM.match(line)))

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _open_code(self) -> None:
        self.blocks.append(Block("code", "", self._language))
        self._open = True

    def _show(self) -> None:
        """Make the open block the last of ``blocks``."""
        if self._fence:
            line = self._line
            # what may become the closing fence is not shown as code
            pending = line.strip()
            if pending and len(pending) <= len(self._fence) and set(pending) == {self._fence[0]}:
                lines = self._lines
            else:
                lines = [*self._lines, _dedent(line, self._indent)] if line else self._lines
            block = Block("code", "\n".join(lines), self._language)
        else:
            line = self._line
            match = _FENCE.match(line)
            if match or line.strip() in ("`", "``", "~", "~~"):
                line = ""  # an opening fence that is not complete yet
            if self._line and not self._lines_hold(line):
                self._close()
            lines = [*self._lines, line] if line.strip() else self._lines
            if not any(part.strip() for part in lines):
                return
            block = Block("prose", "\n".join(lines).rstrip("\n"))
        if self._open:
            self.blocks[-1] = block
        else:
            self.blocks.append(block)
            self._open = True

    def _lines_hold(self, line: str) -> bool:
        """False if the unfinished line begins a block of its own."""
        return not (line.strip() and self._lines and self._blank and not self._continues(line))

    def _close(self) -> None:
        if self._fence:
            block = Block("code", "\n".join(self._lines), self._language, closed=True)
        else:
            while self._lines and not self._lines[-1].strip():
                self._lines.pop()
            block = Block("prose", "\n".join(self._lines), closed=True)
        if self._open:
            if block.text or block.kind == "code":
                self.blocks[-1] = block
            else:
                self.blocks[-1] = replace(self.blocks[-1], closed=True)
        elif block.text or self._fence:
            self.blocks.append(block)
        self._open = False
        self._fence = self._language = ""
        self._lines, self._size, self._blank = [], 0, 0
        self._list = False
        self._table_head = []


def split(text: str) -> list[Block]:
    """All blocks of a complete text."""
    splitter = BlockSplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.blocks


def _language(info: str) -> str:
    word = info.strip().split(maxsplit=1)[0] if info.strip() else ""
    return word.strip("{}.").lower()[:30]


def _dedent(line: str, columns: int) -> str:
    if not columns or line[:1] not in (" ", "\t"):
        return line
    line = line.expandtabs(4) if "\t" in line[:columns] else line
    return line[min(columns, len(line) - len(line.lstrip(" "))) :]
