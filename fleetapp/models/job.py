"""The child process for long work on a library: ``python -m fleetapp.models.job``.

It gets, imports or verifies one model. The parent can end it at any moment: whatever is half done
is taken up, or removed, by whoever comes next. It has no key: what is to be signed goes to the
parent. An :class:`Order` comes on the first line of stdin and signatures on the following ones; on
stdout are lines of :class:`child.Line`. It ends when stdin closes, and with it what it has started.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import BinaryIO, Literal

import msgspec

from fleetapp.errors import FleetUnavailable
from fleetapp.models import fetch
from fleetapp.models.catalog import Entry
from fleetapp.models.child import Line, answer, emit, leave
from fleetapp.models.library import Library
from fleetapp.models.progress import Progress, ProgressFn
from fleetapp.platform import current
from fleetapp.platform.stdio import take_stdin

_EVERY = 0.1
"""Seconds between two lines of progress that differ in nothing but numbers."""
_SIGN_DEADLINE = 60.0


class Order(msgspec.Struct, frozen=True):
    """First line on stdin."""

    kind: Literal["get", "import", "verify"]
    root: str
    """Of the library."""
    model: str
    """Its id in the library."""
    spki: str
    """Of whoever signs."""
    path: str = ""
    """What is imported."""
    entry: Entry | None = None
    """What is fetched."""


class _Parent:
    """A signer that asks the parent process."""

    def __init__(self, spki: str) -> None:
        self.spki = spki
        self._answers: Queue[bytes] = Queue()

    def listen(self, source: BinaryIO) -> None:
        """Take signatures until stdin closes; then this process ends."""
        with contextlib.suppress(OSError, ValueError):
            for raw in source:
                self._answers.put(msgspec.json.decode(raw, type=bytes))
        os._exit(3)

    def sign(self, payload: bytes) -> bytes:
        emit(Line(sign=payload))
        try:
            return self._answers.get(timeout=_SIGN_DEADLINE)
        except Empty:
            raise FleetUnavailable("The agent did not sign the model in time.") from None


def tamed(tell: ProgressFn, every: float = _EVERY) -> ProgressFn:
    """Progress of every block is too much to tell; may be called from several threads.

    What was held back is told after ``every`` seconds at the latest: work may stall right then.
    """
    lock = threading.Lock()
    last, told = Progress("starting"), 0.0
    held: Progress | None = None

    def late() -> None:
        nonlocal told, held
        with lock:
            if held is not None:
                tell(held)
                held, told = None, time.monotonic()

    def progress(now: Progress) -> None:
        nonlocal last, told, held
        with lock:
            moment = time.monotonic()
            same = (now.phase, now.message, now.total) == (last.phase, last.message, last.total)
            if same and moment < told + every and now.done != now.total:
                if held is None:
                    timer = threading.Timer(every, late)
                    timer.daemon = True
                    timer.start()
                held = now
                return
            held, last, told = None, now, moment
            tell(now)

    return progress


def _run(order: Order, library: Library, progress: ProgressFn) -> str:
    """Do it, and say in words what came of it."""
    if order.kind == "verify":
        report = library.verify(order.model, progress)
        report.require_intact()
        return str(report)
    if order.kind == "import":
        manifest = library.import_path(Path(order.path), order.model, progress)
    else:
        assert order.entry is not None
        # Whether its licence is accepted the parent has asked.
        manifest = fetch.get(
            library, order.entry, progress, model_id=order.model, accept_licence=True
        )
    return f"{manifest.model_id} is ready."


def main() -> int:
    """Carry out one order; return the exit code."""
    source = take_stdin()
    order = msgspec.json.decode(source.readline(), type=Order)
    parent = _Parent(order.spki)
    threading.Thread(target=parent.listen, args=(source,), daemon=True).start()
    current().lower_priority()

    def work() -> str:
        library = Library(Path(order.root), parent)
        return _run(order, library, tamed(lambda p: emit(Line(progress=p))))

    return answer(work)


if __name__ == "__main__":
    leave(main())
