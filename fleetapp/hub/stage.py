"""One stage of a chain as the hub knows it: who is to hold which layers, and how far that is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import structs

from fleetapp.errors import ChainBroken, FleetError, RunnerFailed
from fleetapp.fleet.control import FromHub, Held, Neighbour, Signed, StageStatus
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.state import Wanted
from fleetapp.types import AssignmentView, DeviceId, LayerRange

if TYPE_CHECKING:
    from fleetapp.hub.planning import Planned

log = logging.getLogger("fleetapp.hub.stage")

LOADED = ("ready", "linked")


class StagePlan(msgspec.Struct, frozen=True):
    """Layers for one device of one node. ``memory`` is bytes with cache and runner, if known."""

    device_id: DeviceId
    name: str
    layers: LayerRange
    weight_bytes: int
    device: str = "CPU"
    memory: int = 0


@dataclass(frozen=True)
class Candidate:
    """A connected member that contributes now."""

    device_id: DeviceId
    name: str
    spki: str
    hosts: tuple[str, ...]
    memory_free: int
    """Bytes a plan may use besides what our own runners there hold already."""
    coordinator: bool
    session: int
    """Changes with each connection, so that a restarted node is not taken for its old self."""
    draining: bool = False
    """It ends what it does and takes nothing new."""
    devices: tuple[str, ...] = ("CPU",)
    """Kinds that it lends."""


@dataclass(frozen=True)
class Shard:
    """A stage that can be assigned."""

    manifest: Signed
    model_digest: str


class Surroundings(Protocol):
    """What a chain needs of its hub."""

    def candidates(self) -> tuple[Candidate, ...]: ...
    def idle(self) -> tuple[tuple[str, str], ...]: ...
    async def layers(self, model_id: str) -> int: ...
    async def shard(self, model_id: str, layers: LayerRange) -> Shard: ...
    async def plan(
        self, wanted: Wanted, users: int, without: frozenset[DeviceId]
    ) -> tuple[Planned, Drafting, tuple[Candidate, ...]]: ...
    async def send(self, device_id: DeviceId, message: FromHub) -> None: ...
    def session_of(self, device_id: DeviceId) -> int: ...
    def next_epoch(self) -> int: ...
    def changed(self) -> None: ...
    def note(self, action: str, **details: str | int) -> None: ...


@dataclass(frozen=True)
class Deal:
    """What one node shall hold."""

    plan: StagePlan
    candidate: Candidate
    index: int
    count: int


@dataclass(eq=False)
class Stage:
    """An assignment that was given out."""

    assignment: str
    plan: StagePlan
    candidate: Candidate
    index: int
    count: int
    status: StageStatus
    loaded: StageStatus | None = None
    """What it said when it became ready: port, cache, window. Later statuses need not repeat it."""
    sent_base: int = 0
    sent_bytes: int = 0
    lost: bool = False

    @property
    def sound(self) -> bool:
        """Loaded, and nothing has been heard against it."""
        return self.status.phase in LOADED and self.loaded is not None

    def serves(self, deal: Deal) -> bool:
        """Whether it holds exactly what ``deal`` asks of that node."""
        return self.sound and self.is_for(deal)

    def can_be(self, layers: LayerRange, index: int, count: int) -> bool:
        """Whether it holds exactly these layers for that place in a chain."""
        return (self.plan.layers, self.index, self.count) == (layers, index, count)

    def is_for(self, deal: Deal) -> bool:
        """Whether it is what ``deal`` asks of that node, loaded or not."""
        return (
            (self.candidate.device_id, self.candidate.session)
            == (deal.candidate.device_id, deal.candidate.session)
            and self.plan.device == deal.plan.device
            and self.can_be(deal.plan.layers, deal.index, deal.count)
        )

    def hear(self, status: StageStatus) -> None:
        """Its member reports."""
        self.status = status
        if status.phase == "ready":
            self.loaded = status

    @property
    def only_unlinked(self) -> bool:
        """Its runner lives, but the ring could not be formed."""
        return (
            self.status.phase == "failed"
            and self.loaded is not None
            and self.status.code not in ("", RunnerFailed.code)
            and not self.lost
        )

    def fail(self, message: str) -> None:
        """It is no use any more."""
        self.lost = True
        self.status = StageStatus(
            assignment=self.assignment,
            phase="failed",
            message=message,
            from_cache=self.status.from_cache,
            code=ChainBroken.code,
        )

    def neighbour(self) -> Neighbour:
        """Where others reach it."""
        return Neighbour(
            device_id=self.candidate.device_id,
            spki=self.candidate.spki,
            hosts=self.candidate.hosts,
            port=self.loaded.port if self.loaded is not None else 0,
        )

    def view(self, model: str) -> AssignmentView:
        """For status and the admin's table."""
        return AssignmentView(
            device_id=self.candidate.device_id,
            node=self.candidate.name,
            model=model,
            stage=self.index,
            stages=self.count,
            layers=self.plan.layers,
            phase=self.status.phase,
            done=self.status.done,
            total=self.status.total,
            from_cache=self.status.from_cache,
            message=self.status.message,
            device=self.plan.device,
        )


def new_stage(name: str, deal: Deal) -> Stage:
    """An assignment that nobody has heard of yet."""
    return Stage(
        assignment=name,
        plan=deal.plan,
        candidate=deal.candidate,
        index=deal.index,
        count=deal.count,
        status=StageStatus(assignment=name, phase="waiting"),
    )


def adopted(held: Held, candidate: Candidate) -> Stage:
    """A stage that a member kept loaded while it was not connected, or the hub was away."""
    return Stage(
        assignment=held.assignment,
        plan=StagePlan(
            candidate.device_id, candidate.name, held.layers, held.weight_bytes, held.device
        ),
        candidate=candidate,
        index=held.stage,
        count=held.stages,
        status=held.status,
        loaded=structs.replace(held.status, phase="ready"),
    )


def find(stages: list[Stage], assignment: str, device_id: DeviceId) -> Stage | None:
    """The stage of that name, if it is that device's."""
    return next(
        (s for s in stages if (s.assignment, s.candidate.device_id) == (assignment, device_id)),
        None,
    )


async def quietly(sending: Awaitable[None]) -> None:
    """A node that is gone needs no release."""
    try:
        await sending
    except (FleetError, OSError) as exc:
        log.debug("not delivered: %s", exc)


def all_of(stages: list[Stage], done: Callable[[Stage], bool]) -> list[str]:
    """Names of the PCs that are not ``done``."""
    return list(dict.fromkeys(s.candidate.name for s in stages if not done(s)))
