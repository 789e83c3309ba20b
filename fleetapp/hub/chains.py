"""One chain of one model: prepare its stages, link them, watch, repair.

Who holds what is decided by its owner (``hub.serving``). What a chain does with a decision is
here: stages that already hold what is asked are kept, new ones are loaded beside the serving ones
where there is room, and only then the ring is formed anew. The head keeps its open answers
meanwhile and feeds their histories to the new stages.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fleetapp.errors import ChainBroken, FleetError, PeerTimeout, from_code
from fleetapp.fleet.control import FaultReport, LinkStage, StageStatus
from fleetapp.hub.assigning import give_out
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.stage import LOADED, Deal, Stage, Surroundings, all_of, find, new_stage
from fleetapp.hub.state import Wanted
from fleetapp.types import AssignmentView, ChainId, ChainView, DeviceId, HopView

log = logging.getLogger("fleetapp.hub.chains")

PREPARE_DEADLINE = 3600.0
"""A first download of a large shard over a slow link may take long; stalls end sooner (s)."""
LINK_DEADLINE = 10.0
"""Forming a ring takes tenths of a second; a process may stand still for five (s)."""
SETTLE_SECONDS = 0.15
"""After a break: neighbours of a dead runner notice before its own agent has said so (s)."""
RETRY_MAX = 5.0
"""Longest pause between two attempts; it doubles with each that does not go live (s)."""


class Owner(Protocol):
    """Decides who holds what."""

    @property
    def drafting(self) -> Drafting: ...
    async def deal(self, chain: Chain) -> Sequence[Deal]: ...
    def spare(self, deal: Deal) -> Stage | None: ...
    async def set_aside(self, stages: Sequence[Stage], reason: str) -> None: ...
    def blame(self, stage: Stage) -> None: ...
    def went_live(self, chain: Chain) -> None: ...


class Chain:
    """One way through a model.

    Args:
        name: of the chain.
        wanted: what it serves.
        hub: sends messages, knows shards.
        owner: decides who holds what.
    """

    def __init__(self, name: ChainId, wanted: Wanted, hub: Surroundings, owner: Owner) -> None:
        self.name = name
        self.wanted = wanted
        self.state: str = "planning"
        self.reason = "Waiting for PCs that contribute."
        self.sentences: tuple[str, ...] = ()
        self.lost = ""
        """Why it broke last, until it serves again."""
        self.epoch = 0
        self.context_length = 0
        self.running = 0
        self.retiring = False
        """It ends what it does and gets nothing new."""
        self._hub = hub
        self._owner = owner
        self._stages: list[Stage] = []
        self._coming: list[Stage] = []
        """Being loaded while the present ones serve."""
        self._offer: Sequence[Deal] = ()
        self._live = asyncio.Event()
        self._wake = asyncio.Event()
        self._fault: FleetError | None = None
        self._digest = ""
        self._numbers = itertools.count(1)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self, reason: str) -> None:
        """End the chain; its stages go back to the owner."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._live.clear()
        self.show("stopped", reason)
        stages = list(dict.fromkeys([*self._stages, *self._coming]))
        self._stages, self._coming = [], []
        await self._owner.set_aside(stages, reason)

    # ------------------------------------------------------------------ what others ask

    @property
    def live(self) -> bool:
        """Whether a request would be answered now."""
        return self._live.is_set()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In order; those of the ring that stands, or is being formed."""
        return tuple(self._stages)

    @property
    def head(self) -> Stage | None:
        """Stage 0, once its runner is loaded."""
        return self._stages[0] if self._stages and self._stages[0].sound else None

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the nodes in stage order."""
        return tuple(s.candidate.name for s in self._stages)

    @property
    def device_ids(self) -> frozenset[DeviceId]:
        """Of all stages, those being loaded included."""
        return frozenset(s.candidate.device_id for s in (*self._stages, *self._coming))

    @property
    def busy(self) -> bool:
        """Whether stages are being loaded for a better division."""
        return bool(self._coming or self._offer)

    async def wait_idle(self, deadline: float) -> None:
        """Wait until nothing runs here, the chain has broken, or so many seconds have passed."""
        end = time.monotonic() + deadline
        while self.running and self.live and (left := end - time.monotonic()) > 0:
            self._wake.clear()
            await self._sleep(left)

    def offer(self, deals: Sequence[Deal]) -> None:
        """Change over to another division when its stages are loaded; answers go on."""
        self._offer = tuple(deals)
        self._wake.set()

    def on_status(self, device_id: DeviceId, status: StageStatus) -> bool:
        """A member reports on an assignment; False if it is none of this chain."""
        stage = find([*self._stages, *self._coming], status.assignment, device_id)
        if stage is None:
            return False
        stage.hear(status)
        if status.phase == "failed" and self.live and stage in self._stages:
            self._break(from_code(status.code, status.message, status.remedy))
        self._wake.set()
        self._hub.changed()
        return True

    def on_fault(self, device_id: DeviceId, fault: FaultReport) -> bool:
        """A runner saw its ring break or died; False if it is none of this chain."""
        stage = find([*self._stages, *self._coming], fault.assignment, device_id)
        if stage is None:
            return False
        if fault.runner_died:
            stage.fail(fault.message)
        if fault.epoch and fault.epoch != self.epoch and not fault.runner_died:
            return True
        if stage in self._stages:
            self._break(from_code(fault.code, fault.message))
        self._wake.set()
        return True

    def on_silent(self, device_id: DeviceId, message: str) -> None:
        """A neighbour has heard nothing of a runner for too long, though its agent may live."""
        for stage in self._stages:
            if stage.candidate.device_id == device_id:
                stage.fail(message)
                self._owner.blame(stage)

    def on_lost(self, device_id: DeviceId, name: str) -> None:
        """A member's connection ended."""
        for stage in (*self._stages, *self._coming):
            if stage.candidate.device_id == device_id:
                stage.fail(f"{name} left")
                if stage in self._stages:
                    self._break(ChainBroken(f"{name} left the fleet while it held a stage."))
        self._wake.set()

    def on_sent(self, device_id: DeviceId, sent: dict[str, int]) -> None:
        """Counters from a heartbeat."""
        for stage in self._stages:
            if stage.candidate.device_id == device_id and stage.assignment in sent:
                stage.sent_bytes = sent[stage.assignment]

    def note_trouble(self) -> None:
        """The head refused a request because its ring is broken; repair without waiting."""
        if self.live:
            self._break(ChainBroken("The ring broke."))

    def look(self) -> None:
        """Members came, went, or changed their consent."""
        self._wake.set()

    def view(self, waiting: int = 0, standbys: tuple[AssignmentView, ...] = ()) -> ChainView:
        """For status and the admin's table."""
        stages, count = self._stages, len(self._stages)
        return ChainView(
            chain=self.name,
            model=self.wanted.model_id,
            precision=self.wanted.precision,
            epoch=self.epoch,
            state=self.state,  # type: ignore[arg-type]
            reason=self.reason,
            plan=" ".join(self.sentences),
            assignments=tuple(s.view(self.wanted.model_id) for s in stages),
            hops=tuple(
                HopView(
                    from_device=s.candidate.device_id,
                    to_device=stages[(i + 1) % count].candidate.device_id,
                    bytes=max(0, s.sent_bytes - s.sent_base),
                )
                for i, s in enumerate(stages)
            )
            if count > 1
            else (),
            standbys=standbys,
            running=self.running,
            waiting=waiting,
        )

    def show(self, state: str, reason: str) -> None:
        """Say where it stands."""
        if (self.state, self.reason) != (state, reason):
            self.state, self.reason = state, reason
            self._hub.changed()

    # ------------------------------------------------------------------ the loop

    async def _keep(self) -> None:
        failures = 0
        while True:
            try:
                deals = await self._owner.deal(self)
                self._fault, self._offer = None, ()
                await self._prepare(deals)
                await self._go_live()
                failures = 0
                while True:
                    await self._change_over(await self._watch())
            except Exception as exc:
                if isinstance(exc, FleetError):
                    log.warning("chain %s: %s", self.name, exc.message)
                else:  # whatever it is must not end this chain for good
                    log.exception("chain %s", self.name)
                self._live.clear()
                why = exc.message if isinstance(exc, FleetError) else f"The hub failed: {exc}"
                if self._fault is not None:
                    self.lost = why
                self.show("broken", why)
                await asyncio.sleep(min(SETTLE_SECONDS * 2**failures, RETRY_MAX))
                failures += 1
                await self._drop_failed()
            finally:
                self._live.clear()

    async def _prepare(self, deals: Sequence[Deal]) -> None:
        """Have these stages loaded and nothing else: what is not needed is released first."""
        self.show("preparing", "The PCs fetch and load their layers.")
        stages, fresh = self._stages_for(deals)
        old = [s for s in self._stages if s not in stages]
        self._stages = stages
        await self._owner.set_aside(old, "The plan has changed.")
        self._hub.changed()
        await self._load(stages, fresh)
        await self._until(stages, lambda s: s.sound, PREPARE_DEADLINE)

    def _stages_for(self, deals: Sequence[Deal]) -> tuple[list[Stage], list[Stage]]:
        """The stages of a division, and those of them that hold nothing yet."""
        stages: list[Stage] = []
        fresh: list[Stage] = []
        for deal in deals:
            mine = (s for s in self._stages if s not in stages and s.serves(deal))
            stage = next(mine, None) or self._owner.spare(deal)
            if stage is not None:
                stage.candidate = deal.candidate
            else:
                name = f"{self.name}.{next(self._numbers)}.{deal.index}"
                stage = new_stage(name, deal)
                fresh.append(stage)
            stages.append(stage)
        return stages, fresh

    async def _load(self, stages: Sequence[Stage], fresh: Sequence[Stage]) -> None:
        for stage in stages:
            shard = await self._hub.shard(self.wanted.model_id, stage.plan.layers)
            self._digest = shard.model_digest
            if stage in fresh:
                await give_out(self._hub, self.name, self.wanted, self._owner.drafting, stage)

    async def _go_live(self) -> None:
        await self._link()
        self.lost = ""
        self.show("live", "Serving.")
        self._live.set()
        self._owner.went_live(self)

    async def _change_over(self, deals: Sequence[Deal]) -> None:
        """Load another division beside the one that serves, then take it.

        Raises:
            FleetError: the ring that serves broke meanwhile, or the new one could not be formed.
        """
        coming, fresh = self._stages_for(deals)
        if coming == self._stages:
            return
        self._coming = coming
        try:
            await self._load(coming, fresh)
            await self._until(coming, lambda s: s.sound, PREPARE_DEADLINE)
        except FleetError as exc:
            self._coming = []
            spare = [s for s in coming if s not in self._stages]
            await self._owner.set_aside(spare, "It is not needed.")
            if self._fault is not None:
                raise
            log.warning("chain %s stays as it is: %s", self.name, exc.message)
            return
        old = [s for s in self._stages if s not in coming]
        self._live.clear()
        self._stages, self._coming = coming, []
        try:
            await self._go_live()
        finally:
            await self._owner.set_aside(old, "Another PC has taken its place.")

    async def _link(self) -> None:
        self.show("linking", "Connecting the stages.")
        self.epoch = self._hub.next_epoch()
        stages, count = self._stages, len(self._stages)
        loaded = [s.loaded for s in stages if s.loaded is not None]
        # Stages may cut their caches differently; a chain holds what its smallest cache holds.
        size = max(said.block_size for said in loaded)
        blocks = min(said.blocks * said.block_size for said in loaded) // size
        spill = min(said.spill_blocks * said.block_size for said in loaded) // size
        self.context_length = min(said.max_context for said in loaded)
        for i, stage in enumerate(stages):
            stage.sent_base = stage.sent_bytes
            following, previous = stages[(i + 1) % count], stages[i - 1]
            await self._hub.send(
                stage.candidate.device_id,
                LinkStage(
                    assignment=stage.assignment,
                    chain=self.name,
                    epoch=self.epoch,
                    next_layer=0 if following.index == 0 else following.plan.layers.start,
                    model_digest=self._digest,
                    next=following.neighbour() if count > 1 else None,
                    prev=previous.neighbour() if count > 1 else None,
                    kv_blocks=blocks,
                    block_size=size,
                    spill_blocks=spill,
                ),
            )
        try:
            await self._until(stages, self._linked, LINK_DEADLINE)
        except FleetError:
            await self._blame_for_link(stages)
            raise

    def _linked(self, stage: Stage) -> bool:
        return stage.status.phase == "linked" and stage.status.epoch == self.epoch

    async def _blame_for_link(self, stages: list[Stage]) -> None:
        """One that has said nothing at all while its neighbours gave up is the one that is frozen;
        if all have spoken, those that failed are to blame.
        """
        await asyncio.sleep(SETTLE_SECONDS)
        failed = [s for s in stages if s.status.phase == "failed"]
        dumb = [s for s in stages if s not in failed and not self._linked(s)]
        for stage in dumb:
            stage.fail("it did not answer while the ring was formed")
        for stage in dumb or failed:
            self._owner.blame(stage)

    async def _until(
        self, stages: list[Stage], done: Callable[[Stage], bool], deadline: float
    ) -> None:
        """Wait until every stage is ``done``; fail as soon as one, or the serving ring, has."""
        end = time.monotonic() + deadline
        while True:
            self._wake.clear()
            if self._fault is not None:
                raise self._fault
            for stage in stages:
                if stage.status.phase == "failed":
                    if stage.loaded is None:
                        self._owner.blame(stage)
                    raise from_code(
                        stage.status.code or ChainBroken.code,
                        f"{stage.candidate.name}: {stage.status.message}",
                        stage.status.remedy,
                    )
            if all(done(s) for s in stages):
                return
            left = end - time.monotonic()
            if left <= 0:
                slow = ", ".join(all_of(stages, done))
                raise PeerTimeout(f"{slow} did not get ready in time.")
            await self._sleep(left)

    async def _watch(self) -> Sequence[Deal]:
        """Return what was offered; raise when the chain broke."""
        while True:
            self._wake.clear()
            if self._fault is not None:
                raise self._fault
            gone = self._fail_those_who_stopped()
            if gone:
                raise ChainBroken(f"{' and '.join(gone)} stopped contributing.")
            if self._offer:
                offer, self._offer = self._offer, ()
                return offer
            await self._sleep(2.0)

    def _fail_those_who_stopped(self) -> list[str]:
        """Stages on PCs that contribute no more; the names of those PCs."""
        members = {n.device_id for n in self._hub.candidates()}
        gone = [
            s
            for s in self._stages
            if s.candidate.device_id not in members and s.status.phase != "failed"
        ]
        for stage in gone:
            stage.fail("it stopped contributing")
        return [s.candidate.name for s in gone]

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
        """What failed goes; what is sound is kept for the next division."""
        coming = [s for s in self._coming if s not in self._stages]
        self._coming = []
        self._fail_those_who_stopped()
        for stage in self._stages:
            if stage.only_unlinked and stage.loaded is not None:
                stage.status = stage.loaded  # it may well link with other neighbours
        failed = [s for s in self._stages if s.status.phase == "failed"]
        self._stages = [s for s in self._stages if s.status.phase in LOADED]
        await self._owner.set_aside([*failed, *coming], "It is not needed.")
