"""The models of a fleet that are served: wished for, planned together, cut into shards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from fleetapp.errors import BadRequest, NoCapacity, NotFound
from fleetapp.fleet.control import FaultReport, FromHub, Held, Signed, StageStatus
from fleetapp.hub import drafts
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.knowledge import Knowledge, Served, model_of
from fleetapp.hub.planner.edits import Inputs, parse_edit, what_if
from fleetapp.hub.planner.inputs import Model, Wish
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.hub.planning import Planned, Planner, demand, in_order
from fleetapp.hub.serving import ModelServer
from fleetapp.hub.stage import Candidate, Shard
from fleetapp.hub.state import StateFile, Wanted
from fleetapp.models.library import Library
from fleetapp.types import ChainView, DeviceId, LayerRange, Precision

log = logging.getLogger("fleetapp.hub.models")


GRACE = 6.0
"""Members try to reach a hub that is back within this time (s)."""
MEMORY_STEP = 128 * 2**20
"""Free memory changes all the time; plans need not."""


def _steps(memory: int) -> int:
    return memory // MEMORY_STEP * MEMORY_STEP


class Members(Protocol):
    """What the served models need of the hub's members."""

    def candidates(self) -> tuple[Candidate, ...]: ...
    def idle(self) -> tuple[tuple[str, str], ...]: ...
    def session_of(self, device_id: DeviceId) -> int: ...
    async def send(self, device_id: DeviceId, message: FromHub) -> None: ...
    def changed(self) -> None: ...


class Models:
    """Implements ``hub.stage.Surroundings`` for the servers that it owns.

    Args:
        name: begins the names of chains; of the coordinator.
        members: who is there.
        library: models and shards of this PC.
        state: what is wanted, and the last epoch given out.
        audit: hears of what is started and stopped.
    """

    def __init__(
        self, name: str, members: Members, library: Library, state: StateFile, audit: AuditLog
    ) -> None:
        self.knowledge = Knowledge()
        self._name = name
        self._members = members
        self._library = library
        self._state = state
        self._audit = audit
        self._servers: dict[str, ModelServer] = {}
        self._users: dict[str, int] = {}
        """How many each model is planned for."""
        self._planner = Planner()
        self._shards: dict[str, Shard] = {}
        """By digest; kept, for a signature made anew would be another one."""
        self._split_lock = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ what is served

    @property
    def servers(self) -> tuple[ModelServer, ...]:
        """One per wanted model."""
        return tuple(self._servers.values())

    def start(self) -> None:
        """Serve what was wanted before."""
        assert self._state.value is not None
        for wanted in self._state.value.wanted:
            self._keep(wanted, GRACE)

    async def stop(self) -> None:
        """End all chains."""
        for server in self.servers:
            await server.stop("The coordinator is shutting down.")
        await asyncio.gather(*self._ending, return_exceptions=True)

    def serve(
        self, model_id: str, precision: Precision, stages: int, draft: str = drafts.AUTO
    ) -> ModelServer:
        """Want a model; present chains of it are replaced if the wish differs.

        Raises:
            NotFound: the library has no such model.
            Unsupported: the draft model is not there or speaks another vocabulary.
        """
        assert self._state.value is not None
        manifest, _ = self._library.get(model_id)
        drafts.choose(draft, manifest, self._library.models())
        wanted = Wanted(model_id=model_id, precision=precision, stages=stages, draft=draft)
        current = self._servers.get(model_id)
        if current is not None and current.wanted == wanted:
            return current
        others = tuple(w for w in self._state.value.wanted if w.model_id != model_id)
        self._state.change(wanted=(*others, wanted))
        self._audit.write("local", "serve", model=model_id, precision=precision, stages=stages)
        if current is not None:
            task = asyncio.create_task(current.stop("It is being replaced."))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        return self._keep(wanted)

    def require_enough(self, model_id: str, stages: int) -> None:
        """Before what serves is given up for something that cannot be had now.

        Raises:
            NoCapacity: the model is served, and fewer PCs contribute than it shall have stages.
        """
        there = sum(not c.draining for c in self.candidates())
        current = self._servers.get(model_id)
        if current is not None and current.live and stages > there:
            raise NoCapacity(
                f"{there} of {stages} PCs are ready, so {model_id} is served as before.",
                remedy="Let more PCs contribute, or ask for fewer stages.",
            )

    async def unserve(self, model_id: str) -> None:
        """Stop serving a model.

        Raises:
            NotFound: it is not being served.
        """
        assert self._state.value is not None
        server = self._servers.pop(model_id, None)
        if server is None:
            raise NotFound(f"'{model_id}' is not being served.")
        self._state.change(
            wanted=tuple(w for w in self._state.value.wanted if w.model_id != model_id)
        )
        self._audit.write("local", "unserve", model=model_id)
        await server.stop("It was stopped by the admin.")
        self.changed()

    def in_use(self, model_id: str) -> tuple[str, ...]:
        """Which served models need a model: itself, or those that draft with it."""
        return tuple(
            name
            for name, server in self._servers.items()
            if model_id in (name, server.wanted.draft, server.drafting.model)
        )

    def view(self, model_id: str) -> ChainView:
        """The first chain of a model."""
        return self._servers[model_id].views()[0]

    def views(self) -> tuple[ChainView, ...]:
        """Every chain."""
        return tuple(view for server in self.servers for view in server.views())

    def _keep(self, wanted: Wanted, grace: float = 0.0) -> ModelServer:
        # With an epoch in it the name is new, also after a restart: members may still hold stages
        # of chains that this hub has forgotten.
        server = ModelServer(f"{self._name}-{self.next_epoch()}", wanted, self, grace=grace)
        self._servers[wanted.model_id] = server
        server.start()
        return server

    # ------------------------------------------------------------------ what members say

    def adopt(self, held: Iterable[Held], candidate: Candidate) -> set[str]:
        """Use what a member has kept loaded; names of what is of use."""
        held = tuple(held)
        taken: set[str] = set()
        for server in self.servers:
            taken |= server.adopt(held, candidate)
        return taken

    def on_status(self, device_id: DeviceId, status: StageStatus) -> None:
        """A member reports on an assignment."""
        for server in self.servers:
            server.on_status(device_id, status)

    def on_fault(self, device_id: DeviceId, fault: FaultReport) -> None:
        """A runner died, or saw its ring break."""
        for server in self.servers:
            server.on_fault(device_id, fault)

    def on_sent(self, device_id: DeviceId, sent: dict[str, int]) -> None:
        """Counters from a heartbeat."""
        for server in self.servers:
            server.on_sent(device_id, sent)

    def on_lost(self, device_id: DeviceId, name: str) -> None:
        """A member's connection ended."""
        self.knowledge.left(device_id)
        for server in self.servers:
            server.on_lost(device_id, name)

    def nodes_changed(self) -> None:
        """Members came, went, or changed their consent."""
        for server in self.servers:
            server.nodes_changed()

    # ------------------------------------------------------------------ plans

    async def plan(
        self, wanted: Wanted, users: int, without: frozenset[DeviceId]
    ) -> tuple[Planned, Drafting, tuple[Candidate, ...]]:
        """Plan all wanted models together and return this one's part.

        What our own runners hold counts as free: a plan may use it again.

        Raises:
            NotFound: the library has lost the model.
        """
        self._users[wanted.model_id] = users
        inputs, candidates, drafting = await self._inputs(without)
        plan = (await self._planner.plan(inputs)).model(wanted.model_id)
        if plan is None:
            raise NoCapacity(f"There is no plan for {wanted.model_id}.")
        return Planned(plan, inputs), drafting[wanted.model_id], candidates

    async def plan_view(self, changes: tuple[str, ...], precision: Precision) -> FleetPlan:
        """What the planner would do now, or after some changes (see ``parse_edit``).

        Raises:
            BadRequest: a change that makes no sense, or there is nothing to plan.
            NotFound: no such model or PC.
        """
        others: dict[str, Wanted] = {}

        def find(name: str) -> Model:
            others[name] = Wanted(name, precision, 0, drafts.LOOKUP)
            return self._served(others[name], 0)[0].model

        edits = [await asyncio.to_thread(parse_edit, change, find) for change in changes]
        inputs, _, _ = await self._inputs(frozenset(), others.values())
        inputs = what_if(inputs, edits)
        if not inputs.wishes:
            raise BadRequest(
                "No model is served, so there is nothing to plan.",
                remedy="Name one: --what-if model=NAME.",
            )
        return await asyncio.to_thread(inputs.plan)

    async def _inputs(
        self, without: frozenset[DeviceId], besides: Iterable[Wanted] = ()
    ) -> tuple[Inputs, tuple[Candidate, ...], dict[str, Drafting]]:
        """Nodes, links and wishes as they are now.

        Args:
            without: PCs that are left out.
            besides: models that are not served, whose profiles shall be in it, too.
        """
        candidates = self._plannable(without)
        most = max((c.memory_free for c in candidates), default=0)
        assert self._state.value is not None
        wanted = self._state.value.wanted
        served: list[Served] = []
        drafting: dict[str, Drafting] = {}
        for wish in (*wanted, *besides):
            known, drafting[wish.model_id] = await asyncio.to_thread(self._served, wish, most)
            served.append(known)
        wishes = tuple(
            Wish(
                s.model,
                demand(self._users.get(w.model_id, 1), w.stages, len(candidates), s.model.layers),
            )
            for s, w in zip(served, wanted, strict=False)
        )
        nodes = self.knowledge.nodes(candidates, served)
        return Inputs(nodes, self.knowledge.links_between(nodes), wishes), candidates, drafting

    def _plannable(self, without: frozenset[DeviceId]) -> tuple[Candidate, ...]:
        held: dict[DeviceId, int] = {}
        for server in self.servers:
            for device, size in server.weights().items():
                held[device] = held.get(device, 0) + size
        return in_order(
            replace(c, memory_free=_steps(c.memory_free + held.get(c.device_id, 0)))
            for c in self.candidates()
            if not c.draining and c.device_id not in without
        )

    def _served(self, wanted: Wanted, most: int) -> tuple[Served, Drafting]:
        """``most`` is the memory of the largest node: a draft model that fits nowhere stays away,
        unless it was asked for. Reads the library.
        """
        manifest, digest = self._library.get(wanted.model_id)
        drafting = drafts.choose(wanted.draft, manifest, self._library.models())
        size = drafts.weight(self._library.get(drafting.model)[0]) if drafting.model else 0
        if size and wanted.draft == drafts.AUTO and 2 * size > most:
            drafting, size = Drafting(lookup=True), 0
        model = model_of(manifest, wanted.precision, size)
        return Served(model, digest, wanted.precision), drafting

    # ------------------------------------------------------------------ what chains ask

    def candidates(self) -> tuple[Candidate, ...]:
        """Connected members that contribute."""
        return self._members.candidates()

    def idle(self) -> tuple[tuple[str, str], ...]:
        """Names of connected members that do not contribute, with their reasons."""
        return self._members.idle()

    def session_of(self, device_id: DeviceId) -> int:
        """Number of a member's present connection; 0 if it has none."""
        return self._members.session_of(device_id)

    async def send(self, device_id: DeviceId, message: FromHub) -> None:
        """To one member. Raises NotAMember if it is not connected."""
        await self._members.send(device_id, message)

    def changed(self) -> None:
        """Wake everybody who watches."""
        self._members.changed()

    def note(self, action: str, **details: str | int) -> None:
        """Into the audit log, as what the fleet does by itself."""
        self._audit.write("fleet", action, **details)

    def next_epoch(self) -> int:
        """Higher than any before, also across restarts."""
        assert self._state.value is not None
        return self._state.change(epoch=self._state.value.epoch + 1).epoch

    async def layers(self, model_id: str) -> int:
        """How many the model has."""
        manifest, _ = await asyncio.to_thread(self._library.get, model_id)
        return len(manifest.layer_bytes)

    async def shard(self, model_id: str, layers: LayerRange) -> Shard:
        """Split on demand; the library keeps the result and knows if it is gone."""
        async with self._split_lock:
            folder = await asyncio.to_thread(self._library.stage, model_id, layers)
            found = self._shards.get(folder.digest)
            if found is None:
                found = Shard(
                    manifest=Signed(folder.payload, folder.signature, folder.signer),
                    model_digest=folder.manifest.model_digest,
                )
                self._shards[folder.digest] = found
            return found

    def read_chunk(self, sha256: str) -> bytes:
        """One chunk of any shard made here; blocks on the disk.

        Raises:
            NotFound: no shard has it.
            HashMismatch: it is damaged on this disk.
        """
        return self._library.shards.read_chunk(sha256)

    def shard_folder(self, digest: str) -> Path | None:
        """Where a shard made here lies, for the coordinator's own stage."""
        return self._library.shards.path(digest)
