"""Puts what the hub knows into the planner's words and what it says into deals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from fleetapp.errors import NoCapacity
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.layout import Layout
from fleetapp.hub.planner.edits import Inputs
from fleetapp.hub.planner.inputs import Demand, Device, Link, Model, Node, Profile, Wish
from fleetapp.hub.planner.plan import FleetPlan, ModelPlan, PlannedStage
from fleetapp.hub.stage import Candidate, Deal, StagePlan
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import DeviceId, Precision

KV_TOKENS: Final = 4096
"""Cache tokens per user that a plan makes room for; a node takes more if it has it."""


class Known(Protocol):
    """What has been measured in the fleet."""

    def profiles(self, device_id: DeviceId, /) -> Mapping[str, Mapping[str, Profile]]:
        """By device kind and model id."""
        ...

    def links(self, devices: Sequence[DeviceId], /) -> tuple[Link, ...]:
        """Between these PCs, as far as they are known."""
        ...

    def stability(self, device_id: DeviceId, /) -> float:
        """How long it usually stays (s)."""
        ...


class Nothing:
    """Nothing has been measured: everything is assumed."""

    def profiles(self, _: DeviceId) -> Mapping[str, Mapping[str, Profile]]:
        """None."""
        return {}

    def links(self, _: Sequence[DeviceId]) -> tuple[Link, ...]:
        """None."""
        return ()

    def stability(self, _: DeviceId) -> float:
        """Unknown."""
        return 0.0


class Planned(msgspec.Struct, frozen=True):
    """The plan of one model, and what all of it was made of."""

    plan: ModelPlan
    inputs: Inputs


def model_of(
    manifest: ModelManifest, precision: Precision, drafting: Drafting, draft: int
) -> Model:
    """A model as the planner sees it; ``draft`` bytes go to the head besides its layers."""
    arch = manifest.architecture
    per_token = max(2 * h * d * 4 for h, d in zip(arch.kv_heads, arch.head_sizes, strict=True))
    return Model(
        model_id=manifest.model_id,
        layer_bytes=manifest.layer_bytes,
        embedding_bytes=manifest.embedding_bytes,
        head_bytes=manifest.head_bytes,
        kv_bytes=per_token,
        hidden=arch.hidden_size,
        activation_bytes=2 if precision == "fast" else 4,
        head_extra=draft if drafting.model else 0,
    )


def nodes_of(candidates: Iterable[Candidate], known: Known) -> tuple[Node, ...]:
    """PCs as the planner sees them. Devices that share a PC's memory get an equal part each."""
    found = []
    for candidate in candidates:
        profiles = known.profiles(candidate.device_id)
        kinds = candidate.devices
        found.append(
            Node(
                device_id=candidate.device_id,
                name=candidate.name,
                devices=tuple(
                    Device(k, candidate.memory_free // len(kinds), dict(profiles.get(k, {})))
                    for k in kinds
                ),
                stability=known.stability(candidate.device_id),
                coordinator=candidate.coordinator,
            )
        )
    return tuple(found)


def demand(users: int, stages: int, nodes: int, layers: int) -> Demand:
    """What is wanted; no more stages than there are PCs or layers."""
    return Demand(users=users, context=KV_TOKENS, stages=min(stages, nodes, layers))


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
            deal = _deal(planned[stage], by_id[standby.device_id], stage, len(planned))
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
    """Plans in a thread, and not twice the same.

    Args:
        known: what has been measured, asked at each plan.
    """

    def __init__(self, known: Callable[[], Known]) -> None:
        self._known = known
        self._lock = asyncio.Lock()
        self._last: tuple[Inputs, FleetPlan] | None = None

    def inputs(self, candidates: Sequence[Candidate], wishes: Iterable[Wish]) -> Inputs:
        """What a plan for these would be made of."""
        known = self._known()
        candidates = sorted(candidates, key=lambda c: (not c.coordinator, c.name, c.device_id))
        links = known.links([c.device_id for c in candidates])
        return Inputs(nodes_of(candidates, known), links, tuple(wishes))

    async def plan(self, inputs: Inputs) -> FleetPlan:
        """The plan; up to a second."""
        async with self._lock:
            if self._last is not None and self._last[0] == inputs:
                return self._last[1]
            plan = await asyncio.to_thread(inputs.plan)
            self._last = (inputs, plan)
            return plan
