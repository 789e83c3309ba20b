"""The fleet's view for those who watch it: pushed by change, many changes at once, built once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from fleetapp.hub.hub import Hub
from fleetapp.types import FleetView

COALESCE = 0.1
"""Changes within so long are shown together (s)."""
LOOK_EVERY = 1.0
"""How often what nobody reports is looked at: who has fallen silent, what rings have sent, who asks
to be let in (s)."""

REFRESH = 10.0
"""What nobody is told of by itself, such as free memory and heat, is no older than that (s)."""


async def views(
    hub: Hub, over: Callable[[], bool], pause: float = COALESCE
) -> AsyncIterator[FleetView]:
    """The fleet now and after each change, until ``over()``; at most one in ``pause`` seconds."""
    event = hub.listen()
    try:
        while not over():
            event.clear()
            quiet = _unreported(hub)
            hub.loads.look()
            yield hub.view()
            stale = time.monotonic() + REFRESH
            while (
                not over()
                and not event.is_set()
                and time.monotonic() < stale
                and _unreported(hub) == quiet
            ):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await event.wait()
                hub.loads.look()
            await asyncio.sleep(pause)
    finally:
        hub.unlisten(event)


def _unreported(hub: Hub) -> tuple[object, ...]:
    """What changes without anybody saying so; little, however large the fleet is."""
    now = time.monotonic()
    silent = tuple(s.device_id for s in hub.registry.sessions() if s.liveness(now) != "online")
    assert hub.state.value is not None
    return silent, hub.models.views(), hub.state.value.pending
