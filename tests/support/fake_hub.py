"""Surroundings of a chain that behave like a hub with honest members, without any network."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from fleetapp.fleet.control import (
    Assign,
    FaultReport,
    FromHub,
    Held,
    LinkStage,
    Release,
    Signed,
    StageStatus,
)
from fleetapp.hub.chains import Chain
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.knowledge import Knowledge
from fleetapp.hub.planner.edits import Inputs
from fleetapp.hub.planner.inputs import Model, Wish
from fleetapp.hub.planning import Planned, Planner, demand, in_order
from fleetapp.hub.serving import ModelServer
from fleetapp.hub.stage import Candidate, Shard
from fleetapp.hub.state import Wanted
from fleetapp.types import DeviceId, LayerRange

GIB = 2**30


class FakeHub:
    """Members answer an Assign with ready and a LinkStage with linked, unless told otherwise."""

    def __init__(self, *names: str, layers: int = 12, stages: int = 0) -> None:
        self.nodes = {n: self._candidate(n, i) for i, n in enumerate(names)}
        self.layer_count = layers
        self.users = 0
        """Planned for; 0: as many as the server says."""
        self.planner = Planner()
        self.epoch = 0
        self.assigned: list[tuple[str, Assign]] = []
        self.linked: list[tuple[str, LinkStage]] = []
        self.released: list[tuple[str, str]] = []
        self.broken_loads: set[str] = set()
        self.resting: tuple[tuple[str, str], ...] = ()
        self.changes = asyncio.Event()
        self.noted: list[tuple[str, dict[str, str | int]]] = []
        self.guesses = (Drafting(lookup=True), 0)
        self.wanted = Wanted("m", "exact", stages)
        self.server = ModelServer("c", self.wanted, self, 0.05)

    def again(self, grace: float, patience: float = 30.0) -> None:
        """As after a restart of the hub."""
        self.server = ModelServer("d", self.wanted, self, 0.05, grace, patience)

    @property
    def chain(self) -> Chain:
        return self.server.chains[0]

    def _candidate(self, name: str, session: int) -> Candidate:
        return Candidate(
            device_id=DeviceId(name),
            name=name,
            spki=f"spki-{name}",
            hosts=("127.0.0.1",),
            memory_free=8 * GIB,
            coordinator=name == "hub",
            session=session,
        )

    # what a chain asks

    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(self.nodes.values())

    def idle(self) -> tuple[tuple[str, str], ...]:
        return self.resting

    async def layers(self, model_id: str) -> int:
        return self.layer_count

    async def plan(
        self, wanted: Wanted, users: int, without: frozenset[DeviceId]
    ) -> tuple[Planned, Drafting, tuple[Candidate, ...]]:
        drafting, size = self.guesses
        nodes = in_order(
            c for c in self.candidates() if not c.draining and c.device_id not in without
        )
        model = Model("m", (10,) * self.layer_count, 5, 5, 1, 8, head_extra=size)
        wish = Wish(model, demand(self.users or users, wanted.stages, len(nodes), self.layer_count))
        inputs = Inputs(Knowledge().nodes(nodes, ()), (), (wish,))
        plan = (await self.planner.plan(inputs)).model("m")
        assert plan is not None
        return Planned(plan, inputs), drafting, nodes

    async def shard(self, model_id: str, layers: LayerRange) -> Shard:
        return Shard(Signed(b"", b"", ""), "digest")

    async def send(self, device_id: DeviceId, message: FromHub) -> None:
        if isinstance(message, Assign):
            self.assigned.append((device_id, message))
            phase = "failed" if device_id in self.broken_loads else "ready"
            self._later(device_id, message.assignment, phase)
        elif isinstance(message, LinkStage):
            self.linked.append((device_id, message))
            self._later(device_id, message.assignment, "linked", message.epoch)
        elif isinstance(message, Release):
            self.released.append((device_id, message.assignment))

    def session_of(self, device_id: DeviceId) -> int:
        node = self.nodes.get(device_id)
        return node.session if node is not None else -1

    def next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def changed(self) -> None:
        self.changes.set()

    def note(self, action: str, **details: str | int) -> None:
        self.noted.append((action, details))

    # what tests do

    def _later(self, device: DeviceId, assignment: str, phase: str, epoch: int = 0) -> None:
        # As real members do: only "ready" says where the stage listens and what it can hold.
        status = self._status(assignment, phase, epoch)
        asyncio.get_running_loop().call_soon(self.server.on_status, device, status)

    def _status(self, assignment: str, phase: str, epoch: int = 0) -> StageStatus:
        ready = phase == "ready"
        return StageStatus(
            assignment=assignment,
            phase=phase,
            epoch=epoch,
            port=7001 if ready else 0,
            blocks=10 if ready else 0,
            block_size=32 if ready else 0,
            max_context=320 if ready else 0,
            code="runner_failed" if phase == "failed" else "",
            message="boom" if phase == "failed" else "",
        )

    def lose(self, name: str) -> None:
        del self.nodes[name]
        self.server.on_lost(DeviceId(name), name)

    def come_back(self, name: str, session: int) -> None:
        self.nodes[name] = self._candidate(name, session)
        self.server.nodes_changed()

    def drain(self, name: str) -> None:
        self.nodes[name] = replace(self.nodes[name], draining=True)
        self.server.nodes_changed()

    def undrain(self, name: str) -> None:
        self.nodes[name] = replace(self.nodes[name], draining=False)
        self.server.nodes_changed()

    def reconnect(self, name: str, session: int) -> None:
        """Its connection breaks and stands again at once; it has kept its runners."""
        held = [
            Held(
                assignment=a.assignment,
                model=a.model,
                stage=a.stage,
                stages=a.stages,
                layers=a.layers,
                weight_bytes=1,
                device=a.device,
                head=a.head,
                precision=a.precision,
                manifest="",
                lookup=a.lookup,
                draft="",
                status=self._status(a.assignment, "ready"),
            )
            for d, a in self.assigned
            if d == name
        ]
        self.server.on_lost(DeviceId(name), name)
        self.nodes[name] = self._candidate(name, session)
        self.server.adopt(held, self.nodes[name])
        self.server.nodes_changed()

    def falls_silent(self, name: str, *, told_by: str) -> None:
        assignment = next(a.assignment for d, a in reversed(self.assigned) if d == told_by)
        fault = FaultReport(assignment, self.epoch, "stage_silent", "nothing is heard of it", name)
        self.server.on_fault(DeviceId(told_by), fault)

    async def devices(self, *names: str) -> None:
        """Wait until the chain is live on these."""
        async with asyncio.timeout(5):
            while self.chain.devices != names or not self.chain.live:
                self.changes.clear()
                await self.changes.wait()

    async def live_chains(self, count: int) -> None:
        """Wait until so many chains serve."""
        async with asyncio.timeout(5):
            while len(self.server.live) != count:
                self.changes.clear()
                await self.changes.wait()

    async def only_chains(self, count: int) -> None:
        """Wait until there are no more than so many."""
        async with asyncio.timeout(5):
            while len(self.server.chains) != count:
                self.changes.clear()
                await self.changes.wait()

    async def standbys(self, count: int) -> None:
        """Wait until so many stages are held ready."""
        async with asyncio.timeout(5):
            while sum(s.sound for s in self.server.standby_views()) != count:
                self.changes.clear()
                await self.changes.wait()

    def runner_dies(self, name: str) -> None:
        assignment = next(a.assignment for d, a in reversed(self.assigned) if d == name)
        fault = FaultReport(assignment, self.epoch, "runner_failed", "it died", name, True)
        self.server.on_fault(DeviceId(name), fault)

    async def until(self, state: str, deadline: float = 5.0) -> None:
        async with asyncio.timeout(deadline):
            while self.chain.state != state:
                self.changes.clear()
                await self.changes.wait()
