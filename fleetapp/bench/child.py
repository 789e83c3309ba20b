"""Running a measuring process: lines of JSON in, lines of JSON out, a deadline for it all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

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
    with tempfile.TemporaryFile() as errors:  # a file cannot fill up and block, a pipe can
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
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


class Conversation(Generic[T]):
    """A process that answers each line with one line, so that it can take turns with others.

    Args:
        module: of this package.
        job: encoded as the first line on its stdin.
        line_type: of each line on its stdout.
        deadline: seconds that one answer may take.

    Raises (from the calls):
        RunnerFailed: it ended, said something else, or took too long.
    """

    def __init__(
        self, module: str, job: msgspec.Struct, line_type: type[T], *, deadline: float
    ) -> None:
        self._module = module
        self._type = line_type
        self._deadline = deadline
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(),
        )
        self.first = self.ask(job)

    def ask(self, question: msgspec.Struct) -> T:
        """Write a line and wait for the answer."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self._deadline, process.kill)
        timer.start()
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            process.stdin.flush()
            return msgspec.json.decode(process.stdout.readline(), type=self._type)
        except (OSError, msgspec.MsgspecError) as e:
            self.close()
            why = _tail(self._errors) or f"no answer within {self._deadline:g} s, or none at all"
            raise RunnerFailed(f"{self._module} broke off: {why}") from e
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process; may be called twice."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()

    def __enter__(self) -> Conversation[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._errors.close()


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """For child processes: this one's, or ``base``, with this very package on the path."""
    env = dict(os.environ if base is None else base)
    root = str(Path(fleetapp.__file__).parents[1])
    env["PYTHONPATH"] = os.pathsep.join(p for p in (root, env.get("PYTHONPATH")) if p)
    return env


def _tail(errors: object) -> str:
    """The last line of what it wrote to stderr."""
    file = errors
    assert hasattr(file, "seek")
    assert hasattr(file, "read")
    file.seek(0)
    text = file.read().decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else ""
