"""The fleet's view for those who watch it: pushed by change, many changes at once, built once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from fleetapp.hub.hub import Hub
from fleetapp.types import ChainView, FleetView

COALESCE = 0.1
"""Changes within so long are shown together (s)."""
LOOK_EVERY = 1.0
"""How often what nobody reports is looked at: who has fallen silent, what rings have sent (s)."""


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
            while not over() and not event.is_set() and _unreported(hub) == quiet:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await event.wait()
                hub.loads.look()
            await asyncio.sleep(pause)
    finally:
        hub.unlisten(event)


def _unreported(hub: Hub) -> tuple[tuple[str, ...], tuple[ChainView, ...]]:
    """What changes without anybody saying so; little, however large the fleet is."""
    now = time.monotonic()
    silent = (s.device_id for s in hub.registry.sessions() if s.liveness(now) != "online")
    return tuple(silent), hub.models.views()
