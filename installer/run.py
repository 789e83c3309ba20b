"""Running the tools of the build, and what to say when one is missing or fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL = 4000
DEADLINE = 1800.0


class BuildError(Exception):
    """One sentence of what went wrong, and what to do about it."""


def say(text: str) -> None:
    """Progress for whoever watches, on stderr."""
    print(text, file=sys.stderr, flush=True)


def need(*programs: str) -> None:
    """Stop before any work if a program is missing.

    Raises:
        BuildError: names all that are missing.
    """
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        raise BuildError(
            f"not installed: {', '.join(missing)}. "
            "`make windows-tools` installs the group `windows` of debian-packages.txt."
        )


def tool(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    deadline: float = DEADLINE,
) -> str:
    """What a program says; its output is shown only if it fails.

    Raises:
        BuildError: it failed or hung.
    """
    line = [str(part) for part in command]
    try:
        done = subprocess.run(
            line,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=deadline,
            check=False,
        )
    except FileNotFoundError as error:
        raise BuildError(f"not installed: {line[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{line[0]} did not end within {deadline:g} s") from error
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        raise BuildError(f"{' '.join(line)} ended with {done.returncode}:\n{said[-TAIL:]}")
    return said
