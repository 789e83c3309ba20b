"""An answer on the terminal while it is being written.

On a terminal it is Markdown. Blocks that can no longer change are printed once and stay; only the
last block is drawn again, at most ``REFRESH`` times a second and never taller than the screen, so
nothing flickers and nothing is lost from the scroll-back. Elsewhere it is plain text.
"""

from __future__ import annotations

import sys
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from fleetapp.cli.output import clean, one_line

REFRESH = 12
_MARGIN = 3
"""Screen lines kept free below the block that is drawn again."""


class View(Protocol):
    """Shows one answer. Use as a context manager; ``add`` takes text as it came."""

    def __enter__(self) -> View: ...
    def __exit__(self, *what: object) -> None: ...
    def add(self, piece: str) -> None:
        """Show more of the answer."""
        ...


class PlainView:
    """For pipes and files: text as it comes, made harmless."""

    def __init__(self) -> None:
        self._open_line = False

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *what: object) -> None:
        if self._open_line:
            sys.stdout.write("\n")
            sys.stdout.flush()

    def add(self, piece: str) -> None:
        shown = clean(piece)
        if shown:
            sys.stdout.write(shown)
            sys.stdout.flush()
            self._open_line = not shown.endswith("\n")


class MarkdownView:
    """For a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tail = ""
        self._live = Live(
            Spinner("dots", Text("waiting for the first word", style="dim")),
            console=console,
            refresh_per_second=REFRESH,
            transient=True,
        )

    def __enter__(self) -> MarkdownView:
        self._live.start()
        return self

    def __exit__(self, *what: object) -> None:
        self._live.update(Text(""))
        self._live.stop()
        if self._tail.strip():
            self._console.print(safe_markdown(self._tail))

    def add(self, piece: str) -> None:
        self._tail += clean(piece)
        done, self._tail = split_finished(self._tail)
        if done.strip():
            self._live.console.print(Group(safe_markdown(done), Text("")))
        if self._tail.strip():
            self._live.update(_Tail(self._tail))


class _Tail:
    """The block that still grows; of one taller than the screen, its end."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(safe_markdown(self._text), options, pad=False)
        for line in lines[-max(console.size.height - _MARGIN, 1) :]:
            yield from line
            yield Segment.line()
        # The cursor waits on an empty line. At the end of a full one the terminal's echo of Ctrl+C
        # would wrap, and the lines that are rubbed out would be counted from the wrong place.
        yield Segment.line()


def safe_markdown(text: str) -> Markdown:
    """Markdown in which HTML is shown as the text that it is, and addresses are visible.

    rich would leave raw HTML out without a word, and hide a link's address behind its text.
    """
    made = Markdown(text, hyperlinks=False, code_theme="ansi_dark")
    for token in made.parsed:
        if token.type == "html_block":
            token.type, token.tag = "code_block", "code"
        for child in token.children or ():
            if child.type == "html_inline":
                child.type = "text"
    return made


def split_finished(text: str) -> tuple[str, str]:
    """(blocks that more text cannot change, the rest).

    Only the last top-level block of a Markdown text can still change when text is appended; and a
    list before it, as long as that block is an unfinished line: "2" may become "2. ".
    """
    blocks = [t for t in Markdown(text).parsed if t.level == 0 and t.map and t.nesting >= 0]
    starts = [t.map[0] for t in blocks if t.map]
    lines = text.split("\n")
    if len(blocks) > 1 and starts[-1] == len(lines) - 1 and blocks[-2].type.endswith("list_open"):
        starts.pop()
    if len(starts) < 2:
        return "", text
    return "\n".join(lines[: starts[-1]]) + "\n", "\n".join(lines[starts[-1] :])


def note(console: Console, text: str, style: str = "dim") -> None:
    """A quiet line below an answer."""
    console.print(Text(one_line(text), style=style))
