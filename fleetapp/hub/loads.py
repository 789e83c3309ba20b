"""What chains have done lately: asked of their heads while somebody watches the fleet."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from fleetapp.engine.pipe import ChainStats
from fleetapp.hub.service import ChainReport
from fleetapp.types import ChainLoad

LOOK_EVERY: Final = 0.9
"""Heads are not asked more often (s); a little less than those who watch look."""
OLD: Final = 4.0
"""Counters from before that say nothing about now (s): nobody has watched meanwhile."""


class Loads:
    """One per hub.

    Args:
        reports: asks all heads; bounds its own time.
        changed: called when what is known has changed.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        reports: Callable[[], Awaitable[Sequence[ChainReport]]],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports = reports
        self._changed = changed
        self._clock = clock
        self._asking: asyncio.Task[None] | None = None
        self._asked = -LOOK_EVERY
        self._before: dict[str, tuple[float, ChainStats]] = {}
        self._known: dict[str, ChainLoad] = {}

    def of(self, chain: str) -> ChainLoad | None:
        """The newest of a chain."""
        return self._known.get(chain)

    def look(self) -> None:
        """Somebody watches: ask again, unless that is under way or was just done."""
        now = self._clock()
        if now - self._asked < LOOK_EVERY or (self._asking and not self._asking.done()):
            return
        self._asked = now
        self._asking = asyncio.ensure_future(self._ask())

    async def stop(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking

    async def _ask(self) -> None:
        known: dict[str, ChainLoad] = {}
        before: dict[str, tuple[float, ChainStats]] = {}
        for report in await self._reports():
            chain = report.view.chain
            counted = report.head.chain if report.head is not None else None
            if counted is None:
                continue
            now = self._clock()
            then, earlier = self._before.get(chain, (now, counted))
            before[chain] = (now, counted)
            known[chain] = load_between(
                earlier, counted, now - then, self._known.get(chain, ChainLoad())
            )
        self._before = before
        if known != self._known:
            self._known = known
            self._changed()


def load_between(
    earlier: ChainStats, now: ChainStats, seconds: float, last: ChainLoad
) -> ChainLoad:
    """What happened between two counts of one head that lie ``seconds`` apart.

    ``last`` is what was known before; its times are kept while no step is made. A head that counts
    less than before has been started anew.
    """
    steps = now.steps - earlier.steps
    if steps <= 0 or not 0 < seconds <= OLD or len(earlier.stages) != len(now.stages):
        return ChainLoad(0.0, last.step, last.stages, last.wire, 0.0, None)
    drafted = sum(now.drafted) - sum(earlier.drafted)
    accepted = sum(now.accepted) - sum(earlier.accepted)
    # a position is a draft, or the token before the drafts: wrong drafts give no token
    tokens = now.decode_tokens - earlier.decode_tokens - drafted + accepted
    spent = [
        (b.wait + b.compute + b.host - a.wait - a.compute - a.host) / steps
        for a, b in zip(earlier.stages, now.stages, strict=True)
    ]
    wire = (now.wire_seconds - earlier.wire_seconds) / steps
    return ChainLoad(
        tokens_per_second=round(max(0, tokens) / seconds, 1),
        step=round(sum(spent) + wire + (now.wait_seconds - earlier.wait_seconds) / steps, 5),
        stages=tuple(round(s, 5) for s in spent),
        wire=round(wire, 5),
        width=round((now.sequences - earlier.sequences) / steps, 1),
        acceptance=round(accepted / drafted, 3) if drafted > 0 else None,
    )
