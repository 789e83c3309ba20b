"""Keeps one wanted model served: plan, prepare, link, watch, and again when it breaks.

A stage whose runner still holds exactly what the next plan asks of it is kept loaded, so that
losing one runner costs the reload of one shard.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from fleetapp.errors import ChainBroken, FleetError, NoCapacity, PeerTimeout, from_code
from fleetapp.fleet.control import (
    Assign,
    FaultReport,
    FromHub,
    LinkStage,
    Neighbour,
    Release,
    Signed,
    StageStatus,
)
from fleetapp.hub.drafts import AUTO, Drafting
from fleetapp.hub.planner.equal import ModelCost, NodeBudget, Plan, StagePlan, partition
from fleetapp.hub.state import Wanted
from fleetapp.types import AssignmentView, ChainId, ChainView, DeviceId, HopView, LayerRange

log = logging.getLogger("fleetapp.hub.chains")

PREPARE_DEADLINE = 3600.0
"""A first download of a large shard over a slow link may take long; stalls end sooner (s)."""
LINK_DEADLINE = 30.0
SETTLE_SECONDS = 0.2
"""After a break: neighbours of a dead runner notice before its own agent has said so (s)."""
RETRY_MAX = 5.0
"""Longest pause between two attempts; it doubles with each that does not go live (s)."""
EXCLUDE_SECONDS = 30.0
"""How long a node that failed to load, or twice to link, is left out (s)."""


@dataclass(frozen=True)
class Candidate:
    """A connected member that contributes now."""

    device_id: DeviceId
    name: str
    spki: str
    hosts: tuple[str, ...]
    memory_free: int
    coordinator: bool
    session: int
    """Changes with each connection, so that a restarted node is not taken for its old self."""


@dataclass(frozen=True)
class Shard:
    """A stage that can be assigned."""

    manifest: Signed
    model_digest: str


class Surroundings(Protocol):
    """What a chain needs of its hub."""

    def candidates(self) -> tuple[Candidate, ...]: ...
    async def cost(self, model_id: str) -> ModelCost: ...
    async def shard(self, model_id: str, layers: LayerRange) -> Shard: ...
    async def drafting(self, wanted: Wanted) -> tuple[Drafting, int]: ...
    async def send(self, device_id: DeviceId, message: FromHub) -> None: ...
    def next_epoch(self) -> int: ...
    def changed(self) -> None: ...


@dataclass
class _Stage:
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

    def matches(self, plan: StagePlan, candidate: Candidate, index: int, count: int) -> bool:
        return (
            self.plan == plan
            and self.candidate.session == candidate.session
            and (self.index, self.count) == (index, count)
            and self.status.phase in ("ready", "linked")
            and self.loaded is not None
        )


class ChainKeeper:
    """One chain of one model."""

    def __init__(self, chain: ChainId, wanted: Wanted, hub: Surroundings) -> None:
        self.chain = chain
        self.wanted = wanted
        self.state: str = "planning"
        self.reason = "Waiting for PCs that contribute."
        self.sentences: tuple[str, ...] = ()
        self.epoch = 0
        self.context_length = 0
        self.running = 0
        self.waiting = 0
        self._hub = hub
        self._stages: list[_Stage] = []
        self._live = asyncio.Event()
        self._wake = asyncio.Event()
        self._fault: FleetError | None = None
        self._excluded: dict[DeviceId, float] = {}
        self._unlinked: dict[DeviceId, int] = {}
        """How often in a row a node failed to link although its shard was loaded."""
        self._digest = ""
        self._drafting = Drafting(lookup=False)
        self._layers = 0
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin keeping."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self, reason: str) -> None:
        """End the chain and release its stages."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._live.clear()
        self._show("stopped", reason)
        await self._release(self._stages, reason)
        self._stages = []

    @property
    def live(self) -> bool:
        """Whether a request would be answered now."""
        return self._live.is_set()

    @property
    def head_assignment(self) -> str:
        """Assignment of stage 0, held by the coordinator itself."""
        return self._stages[0].assignment if self._stages else ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the nodes in stage order."""
        return tuple(s.candidate.name for s in self._stages)

    async def wait_live(self, deadline: float) -> None:
        """Wait until the chain serves.

        Raises:
            NoCapacity: it does not within ``deadline`` seconds; says why.
        """
        try:
            async with asyncio.timeout(deadline):
                await self._live.wait()
        except TimeoutError as exc:
            raise NoCapacity(
                f"{self.wanted.model_id} is not being served yet: {self.reason}",
                remedy="Wait a moment and ask again; 'fleetapp fleet status' shows the progress.",
            ) from exc

    def on_status(self, device_id: DeviceId, status: StageStatus) -> None:
        """A member reports on its assignment."""
        stage = self._find(status.assignment, device_id)
        if stage is None:
            return
        stage.status = status
        if status.phase == "ready":
            stage.loaded = status
        if status.phase == "failed" and self.state == "live":
            self._break(from_code(status.code, status.message, status.remedy))
        self._wake.set()
        self._hub.changed()

    def on_fault(self, device_id: DeviceId, fault: FaultReport) -> None:
        """A runner saw its ring break or died."""
        stage = self._find(fault.assignment, device_id)
        if stage is None or (fault.epoch and fault.epoch != self.epoch):
            return
        if fault.runner_died:
            stage.status = replace_phase(stage.status, "failed", fault.message)
        self._break(from_code(fault.code, fault.message))

    def on_lost(self, device_id: DeviceId, name: str) -> None:
        """A member's connection ended."""
        for stage in self._stages:
            if stage.candidate.device_id == device_id:
                stage.status = replace_phase(stage.status, "failed", f"{name} left")
                self._break(ChainBroken(f"{name} left the fleet while it held a stage."))

    def on_sent(self, device_id: DeviceId, sent: dict[str, int]) -> None:
        """Counters from a heartbeat."""
        for stage in self._stages:
            if stage.candidate.device_id == device_id and stage.assignment in sent:
                stage.sent_bytes = sent[stage.assignment]

    def note_trouble(self) -> None:
        """The head refused a request because its ring is broken; repair without waiting."""
        if self.live:
            self._break(ChainBroken("The ring broke."))

    def nodes_changed(self) -> None:
        """Members came, went, or changed their consent."""
        self._wake.set()

    def view(self) -> ChainView:
        """For status and the admin's table."""
        count = len(self._stages)
        return ChainView(
            chain=self.chain,
            model=self.wanted.model_id,
            precision=self.wanted.precision,
            epoch=self.epoch,
            state=self.state,  # type: ignore[arg-type]
            reason=self.reason,
            plan=" ".join(self.sentences),
            assignments=tuple(
                AssignmentView(
                    device_id=s.candidate.device_id,
                    node=s.candidate.name,
                    model=self.wanted.model_id,
                    stage=s.index,
                    stages=s.count,
                    layers=s.plan.layers,
                    phase=s.status.phase,
                    done=s.status.done,
                    total=s.status.total,
                    from_cache=s.status.from_cache,
                    message=s.status.message,
                )
                for s in self._stages
            ),
            hops=tuple(
                HopView(
                    from_device=s.candidate.device_id,
                    to_device=self._stages[(s.index + 1) % count].candidate.device_id,
                    bytes=s.sent_bytes - s.sent_base,
                )
                for s in self._stages
            )
            if count > 1
            else (),
            running=self.running,
            waiting=self.waiting,
        )

    # ------------------------------------------------------------------ the loop

    async def _keep(self) -> None:
        failures = 0
        while True:
            self._fault = None
            try:
                plan = await self._plan()
                await self._prepare(plan)
                await self._link()
                failures = 0
                self._unlinked.clear()
                self._show("live", "Serving.")
                self._live.set()
                await self._watch()
            except FleetError as exc:
                log.warning("chain %s: %s", self.chain, exc.message)
                self._live.clear()
                self._show("broken", exc.message)
                await asyncio.sleep(min(SETTLE_SECONDS * 2**failures, RETRY_MAX))
                failures += 1
                await self._drop_failed()
            finally:
                self._live.clear()

    async def _plan(self) -> list[tuple[StagePlan, Candidate]]:
        while True:
            self._wake.clear()
            nodes = self._usable()
            wanted = self.wanted.stages
            head = next((n for n in nodes if n.coordinator), None)
            if head is None:
                self._show("planning", "The coordinator itself must contribute, as it is the head.")
            elif self._stages and self.state == "broken":
                break  # repair with whoever is left; a missing node is taken in again later
            elif len(nodes) < wanted:
                self._show("planning", f"{len(nodes)} of {wanted} PCs are ready.")
            else:
                break
            await self._sleep(30.0)
        self._show("planning", "Choosing who serves which layers.")
        nodes.sort(key=lambda n: (not n.coordinator, n.name, n.device_id))
        chosen = nodes[: wanted or len(nodes)]
        cost = await self._hub.cost(self.wanted.model_id)
        drafting, size = await self._hub.drafting(self.wanted)
        if drafting.model and self.wanted.draft == AUTO and 2 * size > chosen[0].memory_free:
            drafting, size = Drafting(lookup=True), 0
        self._layers = len(cost.layer_bytes)
        chosen = chosen[: self._layers]
        plan: Plan = partition(
            [
                NodeBudget(n.device_id, n.name, n.memory_free - (0 if i else size))
                for i, n in enumerate(chosen)
            ],
            cost,
        )
        self.sentences = plan.sentences + ((str(drafting),) if drafting.lookup else ())
        self._drafting = drafting
        return list(zip(plan.stages, chosen, strict=True))

    def _usable(self) -> list[Candidate]:
        now = time.monotonic()
        nodes = list(self._hub.candidates())
        kept = [n for n in nodes if now - self._excluded.get(n.device_id, -1e9) > EXCLUDE_SECONDS]
        # The coordinator must be in; it is never left out for a failure that may pass.
        kept += [n for n in nodes if n.coordinator and n not in kept]
        return kept

    async def _prepare(self, plan: list[tuple[StagePlan, Candidate]]) -> None:
        self._show("preparing", "The PCs fetch and load their layers.")
        count = len(plan)
        old, stages, fresh = list(self._stages), [], []
        for index, (stage_plan, candidate) in enumerate(plan):
            kept = next((s for s in old if s.matches(stage_plan, candidate, index, count)), None)
            if kept is not None:
                old.remove(kept)
                kept.candidate = replace(candidate)
                stages.append(kept)
                continue
            name = f"{self.chain}.{next(self._numbers)}.{index}"
            stage = _Stage(
                assignment=name,
                plan=stage_plan,
                candidate=candidate,
                index=index,
                count=count,
                status=StageStatus(assignment=name, phase="waiting"),
            )
            stages.append(stage)
            fresh.append(stage)
        await self._release(old, "The plan has changed.")
        self._stages = stages
        self._hub.changed()
        for stage in stages:
            shard = await self._hub.shard(self.wanted.model_id, stage.plan.layers)
            self._digest = shard.model_digest
            if stage in fresh:
                draft = await self._draft_shard() if stage.index == 0 else None
                await self._hub.send(stage.candidate.device_id, self._assign(stage, shard, draft))
        await self._until(lambda s: s.status.phase in ("ready", "linked"), PREPARE_DEADLINE)

    async def _draft_shard(self) -> Shard | None:
        """All of the draft model as one stage."""
        if not self._drafting.model:
            return None
        layers = len((await self._hub.cost(self._drafting.model)).layer_bytes)
        return await self._hub.shard(self._drafting.model, LayerRange(0, layers))

    def _assign(self, stage: _Stage, shard: Shard, draft: Shard | None) -> Assign:
        return Assign(
            assignment=stage.assignment,
            chain=self.chain,
            model=self.wanted.model_id,
            stage=stage.index,
            stages=stage.count,
            layers=stage.plan.layers,
            head=stage.index == 0,
            manifest=shard.manifest,
            precision=self.wanted.precision,
            kv_bytes=0,
            max_context=0,
            threads=0,
            lookup=stage.index == 0 and self._drafting.lookup,
            draft=draft.manifest if draft is not None else None,
        )

    async def _link(self) -> None:
        self._show("linking", "Connecting the stages.")
        self.epoch = self._hub.next_epoch()
        stages, count = self._stages, len(self._stages)
        loaded = [s.loaded for s in stages if s.loaded is not None]
        # Stages may cut their caches differently; a chain holds what its smallest cache holds.
        size = max(said.block_size for said in loaded)
        blocks = min(said.blocks * said.block_size for said in loaded) // size
        spill = min(said.spill_blocks * said.block_size for said in loaded) // size
        self.context_length = min(said.max_context for said in loaded)
        for stage in stages:
            stage.sent_base = stage.sent_bytes
            following = stages[(stage.index + 1) % count]
            previous = stages[stage.index - 1]
            await self._hub.send(
                stage.candidate.device_id,
                LinkStage(
                    assignment=stage.assignment,
                    chain=self.chain,
                    epoch=self.epoch,
                    next_layer=0 if following.index == 0 else following.plan.layers.start,
                    model_digest=self._digest,
                    next=_neighbour(following) if count > 1 else None,
                    prev=_neighbour(previous) if count > 1 else None,
                    kv_blocks=blocks,
                    block_size=size,
                    spill_blocks=spill,
                ),
            )
        await self._until(
            lambda s: s.status.phase == "linked" and s.status.epoch == self.epoch, LINK_DEADLINE
        )

    async def _until(self, done: Callable[[_Stage], bool], deadline: float) -> None:
        """Wait until every stage is ``done``; fail as soon as one has failed."""
        end = time.monotonic() + deadline
        while True:
            self._wake.clear()
            if self._fault is not None:
                raise self._fault
            for stage in self._stages:
                if stage.status.phase == "failed":
                    self._blame(stage)
                    raise from_code(
                        stage.status.code or ChainBroken.code,
                        f"{stage.candidate.name}: {stage.status.message}",
                        stage.status.remedy,
                    )
            if all(done(s) for s in self._stages):
                return
            left = end - time.monotonic()
            if left <= 0:
                slow = [s.candidate.name for s in self._stages if not done(s)]
                raise PeerTimeout(f"{', '.join(slow)} did not get ready in time.")
            await self._sleep(left)

    def _could_hold(self) -> int:
        """Stages that a plan made now would have."""
        most = min(len(self._usable()), self._layers)
        return min(most, self.wanted.stages) if self.wanted.stages else most

    def _blame(self, stage: _Stage) -> None:
        """Leave a node out that cannot load, or repeatedly cannot link; a runner that died after
        loading is no reason.
        """
        device = stage.candidate.device_id
        if stage.loaded is not None:
            self._unlinked[device] = self._unlinked.get(device, 0) + 1
            if self._unlinked[device] < 2:
                return
        self._excluded[device] = time.monotonic()

    async def _watch(self) -> None:
        """Return never; raise when the chain broke, or when a fuller one can take its place."""
        while True:
            self._wake.clear()
            if self._fault is not None:
                raise self._fault
            members = {n.device_id for n in self._hub.candidates()}
            for stage in self._stages:
                if stage.candidate.device_id not in members:
                    raise ChainBroken(f"{stage.candidate.name} stopped contributing.")
            if self.running == 0 and len(self._stages) < self._could_hold():
                raise ChainBroken("A PC came; the layers are dealt again while nobody waits.")
            await self._sleep(2.0)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _break(self, error: FleetError) -> None:
        if self._fault is None:
            self._fault = error
        self._live.clear()
        self._wake.set()

    async def _drop_failed(self) -> None:
        failed = [s for s in self._stages if s.status.phase == "failed"]
        self._stages = [s for s in self._stages if s.status.phase != "failed"]
        await self._release(failed, "It failed.")
        if not any(s.status.phase in ("ready", "linked") for s in self._stages):
            await self._release(self._stages, "The plan is made anew.")
            self._stages = []

    async def _release(self, stages: list[_Stage], reason: str) -> None:
        for stage in stages:
            message = Release(assignment=stage.assignment, reason=reason)
            await _quietly(self._hub.send(stage.candidate.device_id, message))

    def _find(self, assignment: str, device_id: DeviceId) -> _Stage | None:
        return next(
            (
                s
                for s in self._stages
                if s.assignment == assignment and s.candidate.device_id == device_id
            ),
            None,
        )

    def _show(self, state: str, reason: str) -> None:
        self.state, self.reason = state, reason
        self._hub.changed()


def replace_phase(status: StageStatus, phase: str, message: str) -> StageStatus:
    """A copy of a status in another phase."""
    return StageStatus(
        assignment=status.assignment,
        phase=phase,  # type: ignore[arg-type]
        message=message,
        from_cache=status.from_cache,
        code=ChainBroken.code,
    )


def _neighbour(stage: _Stage) -> Neighbour:
    return Neighbour(
        device_id=stage.candidate.device_id,
        spki=stage.candidate.spki,
        hosts=stage.candidate.hosts,
        port=stage.loaded.port if stage.loaded is not None else 0,
    )


async def _quietly(sending: Awaitable[None]) -> None:
    """A node that is gone needs no release."""
    try:
        await sending
    except (FleetError, OSError) as exc:
        log.debug("release not delivered: %s", exc)
