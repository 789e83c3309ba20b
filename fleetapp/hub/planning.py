"""Puts what the planner says into deals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from fleetapp.errors import NoCapacity
from fleetapp.hub.layout import Layout
from fleetapp.hub.planner.change import refreshed
from fleetapp.hub.planner.edits import Inputs
from fleetapp.hub.planner.inputs import Demand
from fleetapp.hub.planner.plan import FleetPlan, ModelPlan, PlannedChain, PlannedStage
from fleetapp.hub.stage import Candidate, Deal, Stage, StagePlan

KV_TOKENS: Final = 2048
"""Cache tokens per user that a plan makes room for; a node takes more if it has it."""


class Planned(msgspec.Struct, frozen=True):
    """The plan of one model, and what all of it was made of."""

    plan: ModelPlan
    inputs: Inputs


def demand(users: int, stages: int, nodes: int, layers: int) -> Demand:
    """What is wanted; no more stages than there are PCs or layers."""
    return Demand(users=users, context=KV_TOKENS, stages=min(stages, nodes, layers))


def as_it_runs(planned: Planned, running: Sequence[Sequence[Stage]]) -> FleetPlan:
    """What runs, however it came about, with rates by the knowledge and for the users of a plan
    that might take its place.

    Args:
        planned: what might.
        running: stages of each chain.
    """
    # A plan in stages is made for one user a stage at least; with fewer it would be compared
    # with a half-empty pipeline.
    users = max(planned.plan.users, sum(c.users for c in planned.plan.chains))
    each = -(-users // max(1, len(running)))
    chains = tuple(_running_chain(planned.plan.model_id, stages, each) for stages in running)
    plan = msgspec.structs.replace(planned.plan, chains=chains, standbys=(), alternatives=())
    inputs = planned.inputs
    return refreshed(FleetPlan((plan,), (), ()), inputs.nodes, inputs.links, inputs.wishes)


def _running_chain(model_id: str, stages: Sequence[Stage], users: int) -> PlannedChain:
    """Of its users those count as running whose cache it holds."""
    room = min(
        s.loaded.blocks * s.loaded.block_size // KV_TOKENS if s.loaded is not None else users
        for s in stages
    )
    planned = tuple(
        PlannedStage(
            s.plan.device_id,
            s.plan.name,
            s.plan.device,
            s.plan.layers,
            s.plan.weight_bytes,
            cache_bytes=0,
            memory=s.plan.memory,
            seconds=0.0,
        )
        for s in stages
    )
    return PlannedChain(model_id, planned, users, max(1, min(users, room)), 0.0, 0.0, 0.0)


def layout_of(plan: ModelPlan, candidates: Iterable[Candidate]) -> Layout:
    """Deals of a plan.

    Raises:
        NoCapacity: the plan says that the model cannot be served; says why.
    """
    if not plan.chains:
        raise NoCapacity(plan.text, remedy="Close programs there, add a PC, or serve less.")
    by_id = {c.device_id: c for c in candidates}
    chains = tuple(
        tuple(
            _deal(stage, by_id[stage.device_id], index, len(chain.stages))
            for index, stage in enumerate(chain.stages)
        )
        for chain in plan.chains
    )
    copies = []
    for standby in plan.standbys:
        for chain, stage in standby.stages:
            planned = plan.chains[chain].stages
            node = by_id[standby.device_id]
            deal = _deal(planned[stage], node, stage, len(planned))
            if deal.plan.device not in node.devices:
                part = msgspec.structs.replace(deal.plan, device=node.devices[0])
                deal = replace(deal, plan=part)
            copies.append(deal)
    return Layout(chains, tuple(copies), plan.sentences)


def _deal(stage: PlannedStage, candidate: Candidate, index: int, count: int) -> Deal:
    part = StagePlan(
        candidate.device_id,
        candidate.name,
        stage.layers,
        stage.weight_bytes,
        stage.device,
        stage.memory,
    )
    return Deal(part, candidate, index, count)


class Planner:
    """Plans in a thread, and not twice the same."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._last: tuple[Inputs, FleetPlan] | None = None

    async def plan(self, inputs: Inputs) -> FleetPlan:
        """The plan; up to a second."""
        async with self._lock:
            if self._last is not None and self._last[0] == inputs:
                return self._last[1]
            plan = await asyncio.to_thread(inputs.plan)
            self._last = (inputs, plan)
            return plan


def in_order(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """As people would list them: where all else is equal the planner goes by that."""
    return tuple(sorted(candidates, key=lambda c: (not c.coordinator, c.name, c.device_id)))
