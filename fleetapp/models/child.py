"""Running the worker process: native code on model files never runs in the caller's process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any, NamedTuple, NoReturn

import msgspec

import fleetapp
from fleetapp.errors import FleetError, ModelError, from_code
from fleetapp.models.facts import GraphFacts
from fleetapp.models.progress import Progress, ProgressFn, silent
from fleetapp.types import ModelPhase

DEADLINE = 4 * 3600.0
"""Seconds a job may take in all."""
SILENCE = 300.0
"""Seconds without a line or a grown file after which a worker counts as hung."""
_LOOK = 0.25
"""Seconds between looks at the files the worker writes."""


class Request(msgspec.Struct, frozen=True):
    """First line on the worker's stdin. Paths are absolute."""

    job: str
    source: str
    target: str = ""
    start: int = 0
    stop: int = 0


class Examination(msgspec.Struct, frozen=True):
    """What the worker found out about an IR."""

    facts: GraphFacts
    max_difference: float | None
    """Largest difference of logits between the whole model and its parts; None if not run."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line on the worker's stdout; exactly one field is set."""

    progress: Progress | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: tuple[str, str, str] | None = None
    """Code, message, remedy of a FleetError."""
    sign: bytes = b""
    """What :mod:`job` wants to have signed."""


class Watch(NamedTuple):
    """Files whose growth is progress: native calls say nothing while they run."""

    folder: Path
    phase: ModelPhase
    total: int


class WorkerDied(ModelError):
    """The worker crashed or hung: with files that came from outside, mostly damage in them."""

    code = "worker_died"
    default_remedy = "Try again; if it happens again, the file is damaged or not supported."


def run(
    request: Request,
    progress: ProgressFn = silent,
    *,
    watch: Watch | None = None,
    deadline: float = DEADLINE,
    silence: float = SILENCE,
) -> bytes:
    """Run one job in a child process and return its result as JSON.

    The child ends when this function does, whatever ends it, and also when this process dies.

    Raises:
        WorkerDied: crashed, was killed, or gave no sign of life for ``silence`` seconds.
        FleetError: what the job itself found.
    """
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONFAULTHANDLER": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fleetapp.models.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        # `-m` looks here first: the folder our package is in, not whatever folder is current.
        cwd=Path(fleetapp.__file__).parent.parent,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    lines: Queue[bytes | None] = Queue()
    noise: deque[str] = deque(maxlen=8)
    readers = [
        threading.Thread(target=_pump, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(
            target=_pump, args=(process.stderr, lambda b: _note(noise, b)), daemon=True
        ),
    ]
    for reader in readers:
        reader.start()
    try:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it died at once: told below
            process.stdin.write(msgspec.json.encode(request) + b"\n")
            process.stdin.flush()
        outcome = _follow(lines, progress, watch, time.monotonic() + deadline, silence)
        if outcome is not None:
            return outcome
        process.wait(timeout=30)
        for reader in readers:
            reader.join(timeout=5)
        raise WorkerDied(_obituary(request, process.returncode, noise))
    finally:
        process.kill()
        process.wait(timeout=30)
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for stream, reader in zip((process.stdout, process.stderr), readers, strict=True):
            reader.join(timeout=5)
            # Closing under a reader that still waits would wait with it.
            if stream is not None and not reader.is_alive():
                stream.close()


def examine(source: Path, work: Path, progress: ProgressFn = silent) -> Examination:
    """Measure an IR, then run it whole and in two parts on one prompt and compare.

    Args:
        source: openvino_model.xml.
        work: an empty folder for the parts.
        progress: told the phases ``inspecting`` and ``checking``.

    Raises:
        NotAModel, CorruptModel: see :class:`split.Graph`.
        CannotSplit: whole and parts do not agree.
    """
    raw = run(Request("examine", str(source), str(work)), progress)
    return msgspec.json.decode(raw, type=Examination)


def _follow(
    lines: Queue[bytes | None],
    progress: ProgressFn,
    watch: Watch | None,
    end: float,
    silence: float,
) -> bytes | None:
    """Return the result, raise the job's error, or return None when stdout ended without."""
    heard, size = time.monotonic(), 0

    def look() -> bool:
        """Tell how far the files have grown; False if they have not."""
        nonlocal size
        if watch is None or (grown := _size(watch.folder)) == size:
            return False
        size = grown
        progress(Progress(watch.phase, min(size, watch.total), watch.total))
        return True

    while True:
        now = time.monotonic()
        if now > min(end, heard + silence):
            raise WorkerDied("The worker process gave no sign of life and was ended.")
        try:
            raw = lines.get(timeout=_LOOK)
        except Empty:
            if look():
                heard = now
            continue
        if raw is None:
            return None
        heard = now
        try:
            line = msgspec.json.decode(raw, type=Line)
        except msgspec.MsgspecError:
            continue  # native libraries print to stdout too
        if line.progress is not None:
            progress(line.progress)
        elif line.error is not None:
            raise from_code(*line.error)
        elif line.result:
            look()  # a short job may end between two looks
            return bytes(line.result)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # renamed or removed meanwhile
            total += path.stat(follow_symlinks=False).st_size
    return total


def _pump(stream: Any, put: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        for raw in stream:
            put(raw)
    put(None)


def _note(noise: deque[str], raw: bytes | None) -> None:
    if raw is not None and (text := raw.decode("utf-8", "replace").strip()):
        noise.append(text)


def _obituary(request: Request, code: int, noise: deque[str]) -> str:
    name = Path(request.source).name
    cause = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"
    last = f" Its last words: {' | '.join(noise)}" if noise else ""
    return f"The worker for '{request.job}' of {name} {cause}.{last}"


def emit(line: Line) -> None:
    """Write one line to stdout (used by the worker)."""
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def as_error(error: FleetError) -> Line:
    """An error as it crosses the pipe."""
    return Line(error=(error.code, error.message, error.remedy))


def answer(work: Callable[[], object]) -> int:
    """In the child: do its work, write what came of it as the last line, return the exit code."""
    try:
        result = work()
    except FleetError as e:
        emit(as_error(e))
        return 0
    except Exception:  # noqa: BLE001 - the boundary of a process: the parent reads stderr
        traceback.print_exc()
        return 1
    emit(Line(result=msgspec.Raw(msgspec.json.encode(result))))
    return 0


def leave(code: int) -> NoReturn:
    """End the child at once: a reader thread may hold stdin's lock, and native libraries may hang
    at a usual exit.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
