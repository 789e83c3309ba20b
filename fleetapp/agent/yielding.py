"""Gives up what this PC does for its fleet, and takes it up again, as its guest decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from fleetapp.agent.held import failure
from fleetapp.agent.hublink import HubLink
from fleetapp.agent.stages import StageHost
from fleetapp.engine import pipe
from fleetapp.errors import NotContributing
from fleetapp.fleet.control import Assign, LinkStage, StageStatus

LOADED: Final = ("ready", "linked", "failed")
"""Phases in which a shard costs memory but computes nothing by itself."""


class FleetWork:
    """See :class:`fleetapp.agent.guest.Work`.

    Args:
        stages: the runners of this PC.
        link: to the hub.
        announce: say by mDNS that this PC is here, after interfaces may have changed.
    """

    def __init__(self, stages: StageHost, link: HubLink, announce: Callable[[], None]) -> None:
        self._stages = stages
        self._link = link
        self._announce = announce

    def held(self) -> int:
        return len(self._stages.phases())

    async def leave(self, reason: str) -> None:
        await self._stages.leave_rings(pipe.Unlink(reason=reason, hold=True))

    async def stop_loading(self, reason: str) -> None:
        held = self._stages.phases()
        await self._drop([a for a, phase in held.items() if phase not in LOADED], reason)

    async def give_back(self, reason: str) -> None:
        await self._drop(list(self._stages.phases()), reason)

    async def _drop(self, assignments: list[str], reason: str) -> None:
        await asyncio.gather(*(self._stages.release(a) for a in assignments))
        for assignment in assignments:
            await self._tell_failed(assignment, 0, NotContributing(reason))

    def tell(self) -> None:
        self._link.beat()

    async def rest(self, reason: str) -> None:
        await self._link.rest(reason)

    async def awaken(self) -> None:
        self._announce()
        await self._link.awaken()

    async def refuse(self, message: Assign | LinkStage, why: NotContributing) -> None:
        """Answer what the hub had sent before it heard that this PC does not contribute."""
        epoch = message.epoch if isinstance(message, LinkStage) else 0
        await self._tell_failed(message.assignment, epoch, why)

    async def _tell_failed(self, assignment: str, epoch: int, why: NotContributing) -> None:
        status = StageStatus(assignment=assignment, phase="failed", epoch=epoch)
        await self._link.send(failure(status, why))
