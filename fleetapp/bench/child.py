"""Running a measuring process: one line of JSON in, lines of JSON out, a deadline for it all."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

import fleetapp
from fleetapp.errors import RunnerFailed

T = TypeVar("T")


def lines(module: str, job: msgspec.Struct, line_type: type[T], *, deadline: float) -> Iterator[T]:
    """Start ``python -m module``, give it the job, and yield what it says until it ends.

    Args:
        module: of this package.
        job: encoded as one line on its stdin.
        line_type: of each line on its stdout.
        deadline: seconds after which it is killed.

    Raises:
        RunnerFailed: it ended with an error, said something else, or took too long.
    """
    root = str(Path(fleetapp.__file__).parents[1])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    with tempfile.TemporaryFile() as errors:  # a file cannot fill up and block, a pipe can
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": path},
        )
        late = threading.Event()

        def cut() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(deadline, cut)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            process.stdin.close()
            for line in process.stdout:
                yield msgspec.json.decode(line, type=line_type)
            code = process.wait()
        except (OSError, msgspec.MsgspecError) as e:
            raise RunnerFailed(f"{module} broke off: {_tail(errors) or e}") from e
        finally:
            timer.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if late.is_set():
            raise RunnerFailed(f"{module} did not finish within {deadline:g} s.")
        if code:
            raise RunnerFailed(f"{module} ended with code {code}: {_tail(errors)}")


def _tail(errors: object) -> str:
    """The last line of what it wrote to stderr."""
    file = errors
    assert hasattr(file, "seek")
    assert hasattr(file, "read")
    file.seek(0)
    text = file.read().decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else ""
