"""What a command says on stderr while it waits longer than anybody expects."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from fleetapp.cli import output
from fleetapp.errors import FleetError

PATIENCE = 2.0
"""After so long people wonder what a command is doing (s)."""


@contextlib.contextmanager
def telling(sentence: Callable[[], str], quiet: bool = False) -> Iterator[None]:
    """Meanwhile, once ``PATIENCE`` is over, say what is being waited for.

    Args:
        sentence: called in a thread of its own; an empty one is not said.
        quiet: say nothing at all.
    """
    over = threading.Event()

    def say() -> None:
        if over.wait(PATIENCE):
            return
        with contextlib.suppress(FleetError):
            text = sentence()
            if text and not over.is_set():
                output.note(text)

    if not quiet:
        threading.Thread(target=say, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        over.set()
