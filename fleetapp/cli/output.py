"""What a command prints: made harmless for the terminal, plain when piped, JSON on demand."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click
import msgspec

from fleetapp.errors import FleetError
from fleetapp.platform import units

size = units.size

if TYPE_CHECKING:
    from rich.console import Console

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROL: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},  # the picture of each control character
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **{ord(c): "\ufffd" for c in _BIDI},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    ord("\n"): "\n",
    ord("\t"): "\t",
    ord("\r"): None,
}


def clean(text: str) -> str:
    """Text that came from elsewhere, unable to steer the terminal.

    Escape sequences and other controls become visible pictures; carriage returns, which could
    overwrite a line, go; characters that turn the direction of text around are replaced. Works on
    pieces of a stream as well as on the whole.
    """
    return text.translate(_CONTROL)


def one_line(text: str) -> str:
    """``clean``, and without line breaks."""
    return clean(text).replace("\n", " ").replace("\t", " ").strip()


def prepare_streams() -> None:
    """Print every language: a pipe on Windows would otherwise refuse what its code page lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = None if stream.isatty() else "utf-8"
            reconfigure(encoding=encoding, errors="replace")


def is_broken_pipe(error: OSError) -> bool:
    """Whether whoever read our output has gone (``fleetapp … | head``)."""
    return error.errno == errno.EPIPE or (os.name == "nt" and error.errno == errno.EINVAL)


def silence_stdout() -> None:
    """Let nothing try to flush into the broken pipe any more."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass  # not a real file: nothing will be flushed either


def print_error(error: FleetError) -> None:
    """One sentence of what happened, one of what to do."""
    click.echo(f"Error: {one_line(error.message)}", err=True)
    if error.remedy:
        click.echo(f"  {one_line(error.remedy)}", err=True)


def note(text: str) -> None:
    """Something for a person to read beside the result; on stderr."""
    click.echo(one_line(text), err=True)


def print_json(value: Any) -> None:
    """One JSON document with line breaks, for scripts."""
    raw = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(raw.decode())


def console(file: TextIO | None = None) -> Console:
    """A rich console that guesses nothing: no markup, emoji codes or highlights in our texts."""
    from rich.console import Console  # noqa: PLC0415 - slow to import, and most commands need none

    return Console(file=file, markup=False, emoji=False, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; cells are cleaned. Wide ones fold instead of losing text."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    target = console()
    if not target.is_terminal:
        target.width = 200  # a pipe has no width; folding there would only break lines apart
    target.print(table)
