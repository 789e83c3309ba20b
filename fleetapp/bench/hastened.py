"""A real agent for which time passes faster: an hour of being idle in a minute.

Every sleep, deadline and timer of its event loop is shortened by the same factor, so that it does
in a minute what it would do in an hour: heartbeats, counting, watching its certificate. Only
discovery has a loop of its own and keeps its pace.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetapp.api.serve import run_agent


class _Hasty(selectors.DefaultSelector):
    """Waits a fraction of what it is told."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def select(self, timeout: float | None = None) -> Any:
        return super().select(None if timeout is None else timeout / self._factor)


def hasty_loop(factor: float) -> Callable[[], asyncio.AbstractEventLoop]:
    """A maker of event loops whose clock runs ``factor`` times as fast as the PC's."""
    started = time.monotonic()

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            now = time.monotonic()
            return started + (now - started) * factor

    return lambda: Loop(_Hasty(factor))


def main(factor: float, home: Path) -> None:
    """Run an agent until its stdin closes."""
    with asyncio.Runner(loop_factory=hasty_loop(factor)) as runner:
        runner.run(run_agent(home, exit_with_stdin=True))


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
