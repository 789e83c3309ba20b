"""Keeps one wanted model served: plans its chains, mends them, holds standbys ready."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fleetapp.errors import FleetError, NoCapacity, StageSilent
from fleetapp.fleet.control import FaultReport, Held, StageStatus
from fleetapp.hub.assigning import release
from fleetapp.hub.chains import Chain
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.layout import Layout, as_planned, copies, kept_division, match, patch, same
from fleetapp.hub.outcasts import Outcasts
from fleetapp.hub.planner.change import worth_changing
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.hub.planning import Planned, as_it_runs, layout_of
from fleetapp.hub.restraint import Restraint
from fleetapp.hub.stage import Candidate, Deal, Stage, Surroundings
from fleetapp.hub.standbys import CALM, Standbys
from fleetapp.hub.state import Wanted
from fleetapp.types import ChainId, ChainView, DeviceId

log = logging.getLogger("fleetapp.hub.serving")

LOOK_AGAIN = 5.0
"""Between two looks at whether something better could be done (s)."""
PEAK_HALF_LIFE = 600.0
"""For so long a crowd is remembered (s)."""
LOOK_SHARE = 20.0
"""And at least so many times as long as looking took."""
RETIRE_SECONDS = 10.0
"""How long a chain that is not needed any more may end its answers before they move (s)."""
PATIENCE = 30.0
"""How long a hub that was away waits for as many PCs as there should be stages (s)."""
_NAMED = 5
"""So many PCs are named in a sentence."""
CHOOSING = "Choosing who serves which layers."


def too_few(there: int, wanted: int, idle: Sequence[tuple[str, str]]) -> str:
    """How many PCs there are, and why others do not work.

    Args:
        there: that contribute.
        wanted: that it takes.
        idle: name and reason of those that do not.
    """
    said = f"{there} of {wanted} PCs are ready."
    if not idle:
        return said
    names = [f"{name} ({why.replace('_', ' ') or 'no reason told'})" for name, why in idle[:_NAMED]]
    more = f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else ""
    return f"{said} Not working: {', '.join(names)}{more}."


class ModelServer:
    """The chains of one wanted model.

    Args:
        name: begins the names of its chains; no two servers, before or after a restart, share one.
        wanted: what to serve.
        hub: members, shards, messages.
        look_again: seconds between two looks at whether something better could be done.
        grace: seconds that PCs have to come back with what they kept, before anything is planned
            without them; for a hub that has been away.
        patience: seconds that such a hub waits for as many PCs as there should be stages: it may
            have served with fewer before.
    """

    def __init__(
        self,
        name: str,
        wanted: Wanted,
        hub: Surroundings,
        look_again: float = LOOK_AGAIN,
        grace: float = 0.0,
        patience: float = PATIENCE,
    ) -> None:
        self._look_again = look_again
        now = time.monotonic()
        self._grace_until = now + grace
        self._all_until = now + patience if grace else math.inf
        self.wanted = wanted
        self.waiting = 0
        """Requests that wait for a chain."""
        self.queued: Callable[[], int] = lambda: 0
        """How many wait for a place in one."""
        self.short = False
        """Whether too few PCs contribute."""
        self._name = name
        self._hub = hub
        self._numbers = itertools.count(1)
        self._chains: list[Chain] = []
        self._asked: dict[Chain, asyncio.Future[Sequence[Deal]]] = {}
        self._last: dict[Chain, Sequence[Deal]] = {}
        self._proven: dict[Chain, Sequence[Deal]] = {}
        """The division with which a chain was live last: what it is mended to."""
        self._planned: dict[Chain, Sequence[Deal]] = {}
        """Of chains that have not begun."""
        self._layout = Layout(())
        self._restraint = Restraint()
        self._drafting = Drafting(lookup=False)
        self._standbys = Standbys(name, wanted, hub, min(CALM, 10 * look_again), self._numbers)
        self._outcasts = Outcasts()
        self._peak = 0.0
        self._peak_at = time.monotonic()
        self._served_once = False
        self._next_look = 0.0
        self._looked_at: set[DeviceId] = set()
        """Who wanted to leave at the last look."""
        self._live = asyncio.Event()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin serving."""
        self._begin_chain()
        self._loop = asyncio.create_task(self._run())

    async def stop(self, reason: str) -> None:
        """End every chain and release every stage."""
        tasks = [t for t in (self._loop, *self._tasks) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for chain in self._chains:
            await chain.stop(reason)
        await self._standbys.let_go(reason)

    # ------------------------------------------------------------------ what others ask

    @property
    def chains(self) -> tuple[Chain, ...]:
        """All, those that retire included."""
        return tuple(self._chains)

    @property
    def live(self) -> tuple[Chain, ...]:
        """Chains that take a request now."""
        return tuple(c for c in self._chains if c.live and not c.retiring)

    @property
    def reason(self) -> str:
        """Why there is no live chain, or that there is one."""
        best = next(iter(self.live), None) or self._chains[0]
        lost = f"{best.lost} " if best.lost and not best.live else ""
        return f"{lost}{best.reason}"

    @property
    def running(self) -> int:
        """Requests in its chains."""
        return sum(c.running for c in self._chains)

    async def wait_live(self, deadline: float) -> bool:
        """Wait at most ``deadline`` seconds; whether some chain takes requests."""
        end = time.monotonic() + deadline
        while not self.live:
            self._live.clear()
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    await self._live.wait()
            except TimeoutError:
                return bool(self.live)
        return True

    async def wait_decided(self, deadline: float) -> None:
        """Wait at most ``deadline`` seconds for the first plan, or for why there is none."""
        first = self._chains[0]
        before, end = first.reason, time.monotonic() + deadline
        while first.state == "planning" and time.monotonic() < end:
            if first.reason not in (before, CHOOSING):
                return
            await asyncio.sleep(0.05)

    def views(self) -> tuple[ChainView, ...]:
        """Of every chain; standbys and those who wait are told with the first."""
        first, *others = self._chains
        standbys = tuple(s.view(self.wanted.model_id) for s in self._standbys.stages)
        return (first.view(self.waiting + self.queued(), standbys), *(c.view() for c in others))

    def standby_views(self) -> tuple[Stage, ...]:
        """Stages that are held ready."""
        return self._standbys.stages

    # ------------------------------------------------------------------ what members say

    def on_status(self, device_id: DeviceId, status: StageStatus) -> None:
        """A member reports on an assignment."""
        if any(c.on_status(device_id, status) for c in self._chains):
            return
        if self._standbys.on_status(device_id, status):
            self._outcasts.cast_out(device_id)

    def on_fault(self, device_id: DeviceId, fault: FaultReport) -> None:
        """A runner died, or saw its ring break; it may say which PC it blames."""
        silent = DeviceId(fault.device) if fault.code == StageSilent.code else None
        for chain in self._chains:
            # Two that do not reach each other accuse each other: it is enough to replace one.
            accused = any(s.lost and s.candidate.device_id == device_id for s in chain.stages)
            if (
                silent is not None
                and silent != device_id
                and not accused
                and fault.epoch == chain.epoch
            ):
                chain.on_silent(silent, fault.message)
            chain.on_fault(device_id, fault)
        self._standbys.on_fault(device_id, fault)

    def on_lost(self, device_id: DeviceId, name: str) -> None:
        """A member's connection ended."""
        self._standbys.on_lost(device_id)
        for chain in self._chains:
            chain.on_lost(device_id, name)
        self._wake.set()

    def on_sent(self, device_id: DeviceId, sent: dict[str, int]) -> None:
        """Counters from a heartbeat."""
        for chain in self._chains:
            chain.on_sent(device_id, sent)

    def nodes_changed(self) -> None:
        """Members came, went, changed their consent, or a request ended."""
        self._wake.set()
        for chain in self._chains:
            chain.look()

    def adopt(self, held: Iterable[Held], candidate: Candidate) -> set[str]:
        """Take over what a member has kept loaded, if it is of use; names of those taken."""
        taken = self._standbys.adopt(held, candidate)
        self._wake.set()
        return taken

    # ------------------------------------------------------------------ what its chains ask

    @property
    def drafting(self) -> Drafting:
        """How heads guess ahead."""
        return self._drafting

    async def deal(self, chain: Chain) -> Sequence[Deal]:
        """The next division for a chain, as soon as there is one."""
        if chain in self._planned:
            return self._planned.pop(chain)
        future = asyncio.get_running_loop().create_future()
        self._asked[chain] = future
        self._wake.set()
        try:
            deals: Sequence[Deal] = await future
            return deals
        finally:
            self._asked.pop(chain, None)

    def spare(self, deal: Deal) -> Stage | None:
        """Take a loaded stage that is in no chain."""
        return self._standbys.take(deal)

    async def set_aside(self, stages: Sequence[Stage], reason: str) -> None:
        """A chain does not need them; nobody else does."""
        await release(self._hub, stages, reason)

    def blame(self, stage: Stage) -> None:
        """See ``Outcasts.blame``."""
        self._outcasts.blame(stage)

    def went_live(self, chain: Chain) -> None:
        """A chain serves."""
        self._served_once = True
        self._hub.note(
            "plan",
            model=self.wanted.model_id,
            chain=chain.name,
            stages=", ".join(f"{s.candidate.name} {s.plan.layers}" for s in chain.stages),
        )
        self._proven[chain] = self._last[chain]
        self._outcasts.linked(chain.stages)
        if self.running + self.waiting:
            self._standbys.wait()
        self._live.set()
        self._wake.set()

    # ------------------------------------------------------------------ the loop

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._arrange()
            except FleetError as exc:
                for chain in self._asked:
                    chain.sentences = ()  # they told of a division that is no more
                    chain.show("planning", exc.message)
            except Exception:  # whatever it is must not end the looking after this model for good
                log.exception("arranging %s failed; it is tried again", self.wanted.model_id)
            try:
                async with asyncio.timeout(self._next_arranging()):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _next_arranging(self) -> float:
        """Seconds."""
        if time.monotonic() < self._grace_until and not self._served_once:
            return 0.25
        return min(self._look_again, self._standbys.waits or self._look_again)

    async def _arrange(self) -> None:
        """Mend what is broken, else see whether there is something better, else hold copies."""
        for chain in self._unserved():
            last = self._proven.get(chain)
            if last is not None and (mended := self._mended(chain, last)) is not None:
                holders = ", ".join(f"{d.plan.name} layers {d.plan.layers}" for d in mended)
                chain.sentences = (
                    f"Mended after a PC left: {holders}. Divided anew when nobody waits.",
                )
                self._give(chain, mended)
        nodes = self._usable()
        if self._unserved():
            await self._plan(nodes)
        elif all(c.live and not c.busy for c in self._active()):
            try:
                await self._improve(nodes)
            finally:  # also when there is nothing better, or it cannot be known
                await self._hold_copies()

    def _active(self) -> list[Chain]:
        return [c for c in self._chains if not c.retiring]

    def _unserved(self) -> list[Chain]:
        """Chains that wait for a division."""
        return [c for c in self._asked if not c.retiring]

    def _mended(self, chain: Chain, last: Sequence[Deal]) -> tuple[Deal, ...] | None:
        others = {d for c in self._chains if c is not chain for d in c.device_ids}
        return patch(last, chain.stages, self._standbys.stages, self._usable(), others)

    async def _plan(self, nodes: Sequence[Candidate]) -> None:
        """Make the whole plan anew because a chain cannot go on without."""
        layers = await self._hub.layers(self.wanted.model_id)
        if not self._served_once:
            waits = time.monotonic() < self._grace_until
            kept = kept_division(self._standbys.stages, layers, whole=waits)
            if (
                kept is not None
                and (filled := patch(kept, (), self._standbys.stages, nodes, ())) is not None
            ):
                self._give(self._unserved()[0], filled)
                self._restraint.changed(self._members())
                return
            if waits:
                raise NoCapacity("Waiting a moment for the PCs to come back.")
        # One that is there but has failed to load is not waited for.
        there = sum(not n.draining for n in self._hub.candidates())
        if not nodes or (
            not self._served_once
            and there < self.wanted.stages
            and time.monotonic() < self._all_until
        ):
            self.short = True
            raise NoCapacity(too_few(there, max(1, self.wanted.stages), self._hub.idle()))
        self.short = False
        for chain in self._unserved():
            chain.show("planning", CHOOSING)
        planned, drafting, candidates = await self._hub.plan(
            self.wanted, self._users(), self._left_out()
        )
        layout = layout_of(planned.plan, candidates)
        self._drafting = drafting
        self._apply(layout)

    async def _improve(self, nodes: Sequence[Candidate]) -> None:
        """Change over to a better plan: at once if a PC wants to be left out or the present chains
        stay as they are, else in a pause.
        """
        leaving = self._leaving()
        now = time.monotonic()
        if not nodes or (now < self._next_look and leaving == self._looked_at):
            return
        self._looked_at = leaving
        planned, drafting, candidates = await self._hub.plan(
            self.wanted, self._users(), self._left_out()
        )
        # PCs that come and go all the time must not keep the planner busy.
        ended = time.monotonic()
        pause = self._look_again
        makeshift = self._makeshift()
        if not makeshift:
            pause = max(pause, LOOK_SHARE * (ended - now))
        self._next_look = ended + pause
        layout = layout_of(planned.plan, candidates)
        present = [c.stages for c in self._active()]
        kept = [any(same(stages, deals) for deals in layout.chains) for stages in present]
        if as_planned(present, layout):
            self._layout = layout
            for chain in self._active():
                chain.sentences = self._sentences(layout)
            return
        if self._unserved():
            return
        waits = self.running and not leaving and not all(kept)
        if not waits and (
            leaving or makeshift or self._worth(planned, 0 if all(kept) else self.running)
        ):
            self._drafting = drafting
            self._apply(layout)
        else:  # it stays as it is, but there may be more PCs, or fewer, than when it was planned
            spare = copies(present, self._standbys.stages, self._usable())
            self._layout = replace(self._layout, standbys=spare)

    def _makeshift(self) -> bool:
        """Some chain is not as a plan would have it, or has fewer stages than were asked for."""
        return any(
            len({s.candidate.device_id for s in c.stages}) < len(c.stages)
            or len(c.stages) != (self.wanted.stages or len(c.stages))
            or self._last.get(c) is not self._proven.get(c)
            for c in self._active()
        )

    def _worth(self, planned: Planned, disturbed: int) -> bool:
        """``disturbed``: answers that would be computed again."""
        if self._restraint.holds(self._members()):
            return False
        current = as_it_runs(planned, [c.stages for c in self._active()])
        return worth_changing(current, FleetPlan((planned.plan,), (), ()), disturbed)

    def _members(self) -> frozenset[DeviceId]:
        return frozenset(n.device_id for n in self._usable())

    def _users(self) -> int:
        """How many to plan for: the most that have lately asked at once, and a quarter of the PCs
        that are there.
        """
        now = time.monotonic()
        self._peak *= 0.5 ** ((now - self._peak_at) / PEAK_HALF_LIFE)
        self._peak_at = now
        self._peak = max(self._peak, float(self.running + self.waiting + self.queued()))
        return max(1, round(self._peak), -(-len(self._hub.candidates()) // 4))

    def _leaving(self) -> set[DeviceId]:
        return {n.device_id for n in self._hub.candidates() if n.draining} & {
            d for c in self._chains for d in c.device_ids
        }

    def _apply(self, layout: Layout) -> None:
        self._layout = layout
        self._restraint.changed(self._members())
        sentences = self._sentences(layout)
        running = self._active()
        pairs = match([c.stages for c in running], layout.chains)
        for index, chain in enumerate(running):
            if index not in pairs:
                self._retire(chain)
                continue
            deals = layout.chains[pairs[index]]
            chain.sentences = sentences
            if chain in self._asked:
                self._give(chain, deals)
            elif not same(chain.stages, deals):
                self._last[chain] = deals
                chain.offer(deals)
        for index, deals in enumerate(layout.chains):
            if index not in pairs.values():
                self._begin_chain(deals).sentences = sentences

    def _sentences(self, layout: Layout) -> tuple[str, ...]:
        return layout.sentences + ((str(self._drafting),) if self._drafting.lookup else ())

    def _begin_chain(self, deals: Sequence[Deal] = ()) -> Chain:
        name = ChainId(f"{self._name}-{next(self._numbers)}")
        chain = Chain(name, self.wanted, self._hub, self)
        self._chains.append(chain)
        if deals:
            self._planned[chain] = self._last[chain] = deals
        chain.start()
        return chain

    def _give(self, chain: Chain, deals: Sequence[Deal]) -> None:
        self._last[chain] = deals
        future = self._asked.pop(chain)
        if not future.done():
            future.set_result(deals)

    def _retire(self, chain: Chain) -> None:
        chain.retiring = True
        task = asyncio.create_task(self._end(chain))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, chain: Chain) -> None:
        """Let it finish; what takes longer goes on in another chain."""
        await chain.wait_idle(RETIRE_SECONDS)
        await chain.stop("It is not needed any more.")
        self._asked.pop(chain, None)
        self._last.pop(chain, None)
        self._proven.pop(chain, None)
        self._planned.pop(chain, None)
        self._chains.remove(chain)
        self._hub.changed()
        self._wake.set()

    def _wished_copies(self) -> tuple[Deal, ...]:
        """The plan's, if that is what runs; else some of what runs instead."""
        present = [c.stages for c in self._active()]
        if as_planned(present, self._layout):
            return self._layout.standbys
        return copies(present, self._standbys.stages, self._usable())

    async def _hold_copies(self) -> None:
        """Have standbys loaded, and let go what nobody would miss."""
        if all(c.live for c in self._active()) and not self._standbys.waits:
            await self._standbys.hold(self._wished_copies(), self._usable(), self._drafting)

    def weights(self) -> dict[DeviceId, int]:
        """Bytes that its runners hold on each PC, which a plan may use again."""
        held: dict[DeviceId, int] = {}
        for stage in (*(s for c in self._chains for s in c.stages), *self._standbys.stages):
            if stage.sound:
                device = stage.candidate.device_id
                held[device] = held.get(device, 0) + stage.plan.weight_bytes
        return held

    def _left_out(self) -> frozenset[DeviceId]:
        return self._outcasts.among(self._hub.candidates())

    def _usable(self) -> tuple[Candidate, ...]:
        """Members that may be used."""
        out = self._left_out()
        return tuple(n for n in self._hub.candidates() if not n.draining and n.device_id not in out)
