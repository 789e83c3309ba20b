"""Stages of a model that are loaded in no chain: copies for the next loss, what members kept."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Iterable, Sequence
from typing import Final

from fleetapp.errors import FleetError
from fleetapp.fleet.control import FaultReport, Held, StageStatus
from fleetapp.hub.assigning import give_out, release
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.layout import unneeded
from fleetapp.hub.stage import Candidate, Deal, Stage, Surroundings, adopted, find, new_stage
from fleetapp.hub.state import Wanted
from fleetapp.types import DeviceId

log = logging.getLogger("fleetapp.hub.standbys")

CALM: Final = 2.5
"""After a chain was mended its answers go on first; then copies are made for the next loss (s)."""


class Standbys:
    """Which there are, and what is done so that there are the right ones.

    Args:
        name: of their server; no two chains share it.
        wanted: the model.
        hub: sends messages, knows shards.
        calm: seconds without loading after answers were interrupted.
        numbers: for names of stages.
    """

    def __init__(
        self,
        name: str,
        wanted: Wanted,
        hub: Surroundings,
        calm: float,
        numbers: itertools.count[int],
    ) -> None:
        self._name = name
        self._wanted = wanted
        self._hub = hub
        self._calm = calm
        self._numbers = numbers
        self._stages: list[Stage] = []
        self._from = -math.inf

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All, loaded or being loaded."""
        return tuple(self._stages)

    def on_status(self, device_id: DeviceId, status: StageStatus) -> bool:
        """A member reports on an assignment; whether it is one of these and has failed."""
        stage = find(self._stages, status.assignment, device_id)
        if stage is None:
            return False
        stage.hear(status)
        failed = status.phase == "failed"
        if failed:
            log.warning("standby %s: %s", status.assignment, status.message)
            self._stages.remove(stage)
        self._hub.changed()
        return failed

    def on_fault(self, device_id: DeviceId, fault: FaultReport) -> None:
        """A runner died."""
        stage = find(self._stages, fault.assignment, device_id)
        if stage is not None and fault.runner_died:
            self._stages.remove(stage)

    def on_lost(self, device_id: DeviceId) -> None:
        """A member's connection ended."""
        self._stages = [s for s in self._stages if s.candidate.device_id != device_id]

    def adopt(self, held: Iterable[Held], candidate: Candidate) -> set[str]:
        """What a member has kept loaded of this model; names of assignments."""
        wanted = (self._wanted.model_id, self._wanted.precision)
        mine = [item for item in held if (item.model, item.precision) == wanted]
        self._stages += [adopted(item, candidate) for item in mine]
        return {item.assignment for item in mine}

    def take(self, deal: Deal) -> Stage | None:
        """One that is what a chain needs; it is no standby any more."""
        stage = next((s for s in self._stages if s.serves(deal)), None)
        if stage is not None:
            self._stages.remove(stage)
        return stage

    def wait(self) -> None:
        """Answers have been interrupted: load nothing for a moment."""
        self._from = time.monotonic() + self._calm

    @property
    def waits(self) -> float:
        """Seconds until copies may be loaded."""
        return max(0.0, self._from - time.monotonic())

    async def hold(
        self, wished: Sequence[Deal], usable: Sequence[Candidate], drafting: Drafting
    ) -> None:
        """Have copies loaded, and let go what nobody would miss.

        Raises:
            FleetError: a shard cannot be made, or a member is not connected.
        """
        missing = list(wished)
        kept: list[Stage] = []
        for stage in self._stages:
            deal = next((d for d in missing if stage.is_for(d)), None)
            if deal is not None:
                missing.remove(deal)
                kept.append(stage)
        surplus = unneeded((s for s in self._stages if s not in kept), missing, kept)
        self._stages = [s for s in self._stages if s not in surplus]
        await release(self._hub, surplus, "It is not needed.")
        if surplus:
            self._hub.changed()
        there = {n.device_id: n.session for n in usable}
        for deal in missing:
            if there.get(deal.candidate.device_id) != deal.candidate.session:
                continue
            stage = new_stage(f"{self._name}.s{next(self._numbers)}.{deal.index}", deal)
            self._stages.append(stage)
            try:
                await give_out(self._hub, self._name, self._wanted, drafting, stage)
            except FleetError:
                self._stages.remove(stage)
                raise

    async def let_go(self, reason: str) -> None:
        """Of all of them."""
        stages, self._stages = self._stages, []
        await release(self._hub, stages, reason)
