"""Tells members what to hold, and what to let go."""

from __future__ import annotations

from collections.abc import Iterable

from fleetapp.fleet.control import Assign, Release
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.stage import Shard, Stage, Surroundings, quietly
from fleetapp.hub.state import Wanted
from fleetapp.types import LayerRange


async def give_out(
    hub: Surroundings, chain: str, wanted: Wanted, drafting: Drafting, stage: Stage
) -> None:
    """Tell a member to hold a stage.

    Raises:
        FleetError: the shard cannot be made, or the member is not connected.
    """
    shard = await hub.shard(wanted.model_id, stage.plan.layers)
    draft: Shard | None = None
    if stage.index == 0 and drafting.model:
        layers = await hub.layers(drafting.model)
        draft = await hub.shard(drafting.model, LayerRange(0, layers))
    await hub.send(
        stage.candidate.device_id,
        Assign(
            assignment=stage.assignment,
            chain=chain,
            model=wanted.model_id,
            stage=stage.index,
            stages=stage.count,
            layers=stage.plan.layers,
            head=stage.index == 0,
            manifest=shard.manifest,
            precision=wanted.precision,
            kv_bytes=0,
            max_context=0,
            threads=0,
            lookup=stage.index == 0 and drafting.lookup,
            draft=draft.manifest if draft is not None else None,
            device=stage.plan.device,
        ),
    )


async def release(hub: Surroundings, stages: Iterable[Stage], reason: str) -> None:
    """Have members stop the runners of these stages.

    A member that has connected anew since may have kept the runner: its hello says so, and that
    is another stage.
    """
    for stage in stages:
        if hub.session_of(stage.candidate.device_id) != stage.candidate.session:
            continue
        message = Release(assignment=stage.assignment, reason=reason)
        await quietly(hub.send(stage.candidate.device_id, message))
