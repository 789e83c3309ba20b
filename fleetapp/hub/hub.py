"""The coordinator's mind, put together: members, sessions, chains, requests."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from fleetapp.errors import FleetError, NoCapacity, NotAMember, NotFound
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import (
    EarlierList,
    FaultReport,
    FromHead,
    FromHub,
    FromMember,
    Goodbye,
    HandedOver,
    HandoverRefused,
    Heartbeat,
    MemberHello,
    MembershipUpdate,
    Refuse,
    Release,
    Signed,
    StageStatus,
)
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import Member, Membership, add, remove, sign_membership
from fleetapp.fleet.trust import TrustList
from fleetapp.hub import catchup, drafts
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.broadcast import MembershipPush
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.heads import RemoteHeads
from fleetapp.hub.joining import Gatekeeper
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.planner.inputs import Wish
from fleetapp.hub.planning import Nothing, Planned, Planner, demand, model_of
from fleetapp.hub.registry import Registry, Session
from fleetapp.hub.router import Head, Router
from fleetapp.hub.serving import ModelServer
from fleetapp.hub.stage import Candidate, Shard, Stage
from fleetapp.hub.state import StateFile, Wanted
from fleetapp.hub.succession import Succession
from fleetapp.hub.swarm import SourceBook
from fleetapp.models.library import Library
from fleetapp.types import (
    ChainView,
    DeviceId,
    FleetId,
    FleetView,
    LayerRange,
    NodeView,
    Precision,
)

log = logging.getLogger("fleetapp.hub")

_DEVICE = re.compile(r"\bdevice ([a-z2-7]{20})\b")
LEFT = "left"
"""The reason in the goodbye of a member that wants to belong to the fleet no longer."""
MEMORY_SHARE = 0.8
"""Share of a node's free memory that a plan may use."""
CUT_SECONDS = 1.0
"""How long a shut-out device's connection may take to read why before it is closed (s)."""


class Hub:
    """One per fleet, inside the coordinator's agent.

    Args:
        identity: this PC; the coordinator signs manifests with it.
        authority: signs certificates and the membership.
        library: models that can be served.
        head: the head runner of an assignment on this PC.
    """

    def __init__(
        self,
        identity: Identity,
        authority: Authority,
        trust: TrustList,
        state: StateFile,
        codes: CodeBook,
        keys: KeyBook,
        audit: AuditLog,
        clones: Callable[[Registry], CloneWatch],
        library: Library,
        head: Callable[[str], Head | None],
        store_membership: Callable[[Signed], None],
    ) -> None:
        assert state.value is not None
        self.identity = identity
        self.state = state
        self.codes = codes
        self.keys = keys
        self.audit = audit
        self.registry = Registry()
        self.succession = Succession(identity.device_id, trust, self.registry)
        self._authority = authority
        self._trust = trust
        self._library = library
        self._store_membership = store_membership
        self._servers: dict[str, ModelServer] = {}
        self._users: dict[str, int] = {}
        """How many each model is planned for."""
        self._planner = Planner(Nothing)
        self._local_head = head
        self.heads = RemoteHeads(self.send)
        self._session_numbers: dict[Session, int] = {}
        self._numbers = itertools.count(1)
        self._listeners: set[asyncio.Event] = set()
        self._shards: dict[tuple[str, LayerRange], Shard] = {}
        self._split_lock = asyncio.Lock()
        self._tasks: set[asyncio.Future[None]] = set()
        self.clones = clones(self.registry)
        self.push = MembershipPush(
            newest=lambda: (self.membership, self.signed_membership),
            sessions=self.registry.sessions,
            send=lambda session, message: self._spawn(self._send_quietly(session, message)),
        )
        self.sources = SourceBook(self.registry.sessions, identity.device_id)
        self.router = Router(
            servers=lambda: tuple(self._servers.values()),
            head=self._head,
            nodes_online=lambda: len(self.registry.sessions()),
            created=int(state.value.created),
            named=self.named,
        )
        self.gate = Gatekeeper(
            device=identity.device_id,
            authority=authority,
            codes=codes,
            state=state,
            audit=audit,
            admit=self._admit,
            standing=self._standing,
            listed=self._listed,
            signer=trust.verify,
            clones=self.clones,
        )

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Begin sweeping and serve what was wanted before."""
        assert self.state.value is not None
        self._spawn(self._sweep())
        for wanted in self.state.value.wanted:
            self._keep(wanted)

    async def stop(self) -> None:
        """End chains, then sessions."""
        for server in self._servers.values():
            await server.stop("The coordinator is shutting down.")
        self.push.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(s.close() for s in self.registry.sessions()))

    # ------------------------------------------------------------------ sessions

    def attach(
        self,
        spki: str,
        hello: MemberHello,
        remote: str,
        send: Callable[[FromHub], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> Session:
        """A member has connected; an older connection of the same device gives way."""
        member = self._trust.require(spki)
        session = Session(
            device_id=member.device_id,
            spki=spki,
            hello=hello,
            hosts=_reachable(remote, hello.hosts),
            send=send,
            close=close,
            last_heard=time.monotonic(),
            memory_free=hello.hardware.memory_free,
            disk_free=hello.hardware.disk_free,
            contribute=hello.contribute,
            shards=hello.shards,
            remote=remote,
        )
        old = self.registry.attach(session)
        self._session_numbers[session] = next(self._numbers)
        if old is not None:
            self._gone(old)
            self._spawn(old.close())
        log.info("member %s connected", member.device_id)
        self._adopt(session)
        self._members_changed()
        return session

    def _adopt(self, session: Session) -> None:
        """Use what a member has kept loaded; what nobody wants is let go."""
        candidate = self._candidate(session)
        taken: set[str] = set()
        for server in self._servers.values():
            taken |= server.adopt(session.hello.held, candidate)
        for held in session.hello.held:
            if held.assignment not in taken:
                message = Release(held.assignment, "It is not needed any more.")
                self._spawn(self._send_quietly(session, message))

    def detach(self, session: Session) -> None:
        """A control connection ended, for whatever reason."""
        self._session_numbers.pop(session, None)
        if self.registry.detach(session):
            self._gone(session)
            self._members_changed()

    def received(self, session: Session, message: FromMember) -> None:
        """One message of a member."""
        now = time.monotonic()
        beat = message if isinstance(message, Heartbeat) else None
        if beat is not None and beat.hosts is not None:
            session.hosts = _reachable(session.remote, beat.hosts)
        if self.registry.heard(session, beat, now):
            self._members_changed()
        if isinstance(message, StageStatus):
            for server in self._servers.values():
                server.on_status(session.device_id, message)
        elif isinstance(message, FaultReport):
            fault = structs.replace(message, message=self.named(message.message))
            for server in self._servers.values():
                server.on_fault(session.device_id, fault)
        elif isinstance(message, FromHead):
            self.heads.hear(session.device_id, message)
        elif beat is not None:
            for server in self._servers.values():
                server.on_sent(session.device_id, beat.sent_bytes)
        elif isinstance(message, EarlierList):
            catchup.catch_up(message, self._trust, self.state, self.change_membership, self.audit)
        elif isinstance(message, HandedOver | HandoverRefused):
            self.succession.answered(session.device_id, message)
        elif isinstance(message, Goodbye):
            log.info("member %s says goodbye: %s", session.device_id, message.reason)
            if message.reason == LEFT and session.device_id != self.identity.device_id:
                self.change_membership(lambda current: remove(current, session.device_id))
                self.audit.write(session.device_id, "left")

    def _gone(self, session: Session) -> None:
        self.succession.lost(session.device_id)
        name = self._name_of(session)
        self.heads.device_lost(session.device_id)
        for server in self._servers.values():
            server.on_lost(session.device_id, name)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            for session in self.registry.silent(time.monotonic()):
                log.warning("member %s has gone silent", session.device_id)
                self.detach(session)
                self._spawn(session.close())

    # ------------------------------------------------------------------ membership

    @property
    def fleet_id(self) -> FleetId:
        """Of the fleet this hub coordinates."""
        return self._authority.fleet_id

    @property
    def signed_membership(self) -> Signed:
        """The newest list."""
        signed = self._trust.signed
        assert signed is not None, "a fleet has a membership from its first moment"
        return signed

    @property
    def membership(self) -> Membership:
        """The newest list, opened."""
        membership = self._trust.membership
        assert membership is not None, "a fleet has a membership from its first moment"
        return membership

    def _standing(self, spki: str) -> Signed | None:
        if not any(m.spki == spki for m in self.membership.members.values()):
            return None
        self._trust.require(spki)
        return self.signed_membership

    def _listed(self, spki: str) -> Signed:
        if self._trust.find(spki) is None:
            raise NotAMember("This PC is not in the fleet's membership list.")
        return self.signed_membership

    def _admit(self, member: Member) -> Signed:
        return self.change_membership(lambda current: add(current, member))

    def change_membership(self, reduce: Callable[[Membership], Membership]) -> Signed:
        """Apply a pure reducer, sign, store, tell everyone, and cut whoever is out.

        It is on disk before it counts: an epoch that was seen outside and forgotten here would be
        given to another list after a restart, and that pair nobody accepts.
        """
        self.succession.require_office()
        changed = reduce(self.membership)
        if changed == self.membership:
            return self.signed_membership
        signed = sign_membership(changed, self._authority)
        self._store_membership(signed)
        self._trust.update(signed)
        for session in self.registry.sessions():
            if not self._trust.allows(session.spki):
                self.detach(session)
                self._spawn(self._cut(session, signed))
        self.push.changed()
        self._members_changed()
        return signed

    async def _cut(self, session: Session, signed: Signed) -> None:
        """Close a shut-out device's connection; it learns why if it reads at once."""
        log.warning("connection of %s is cut: it is no member any more", session.device_id)
        reason = NotAMember(f"{session.hello.name} is no member of this fleet any more.")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CUT_SECONDS):
                await self._send_quietly(session, MembershipUpdate(membership=signed))
                await self._send_quietly(
                    session, Refuse(reason.code, reason.message, reason.remedy)
                )
        await session.close()

    # ------------------------------------------------------------------ chains

    def serve(
        self, model_id: str, precision: Precision, stages: int, draft: str = drafts.AUTO
    ) -> ModelServer:
        """Want a model; present chains of it are replaced if the wish differs.

        Raises:
            NotFound: the library has no such model.
            Unsupported: the draft model is not there or speaks another vocabulary.
        """
        assert self.state.value is not None
        manifest, _ = self._library.get(model_id)
        drafts.choose(draft, manifest, self._library.models())
        wanted = Wanted(model_id=model_id, precision=precision, stages=stages, draft=draft)
        current = self._servers.get(model_id)
        if current is not None and current.wanted == wanted:
            return current
        others = tuple(w for w in self.state.value.wanted if w.model_id != model_id)
        self.state.change(wanted=(*others, wanted))
        self.audit.write("local", "serve", model=model_id, precision=precision, stages=stages)
        if current is not None:
            self._spawn(current.stop("It is being replaced."))
        return self._keep(wanted)

    async def unserve(self, model_id: str) -> None:
        """Stop serving a model.

        Raises:
            NotFound: it is not being served.
        """
        assert self.state.value is not None
        server = self._servers.pop(model_id, None)
        if server is None:
            raise NotFound(f"'{model_id}' is not being served.")
        self.state.change(
            wanted=tuple(w for w in self.state.value.wanted if w.model_id != model_id)
        )
        self.audit.write("local", "unserve", model=model_id)
        await server.stop("It was stopped by the admin.")
        self.changed()

    def chain_view(self, model_id: str) -> ChainView:
        """The first chain of a model."""
        return self._servers[model_id].views()[0]

    def _keep(self, wanted: Wanted) -> ModelServer:
        # With an epoch in it the name is new, also after a restart: members may still hold stages
        # of chains that this hub has forgotten.
        server = ModelServer(f"{self.identity.device_id[:6]}-{self.next_epoch()}", wanted, self)
        self._servers[wanted.model_id] = server
        server.start()
        return server

    def _head(self, stage: Stage) -> Head | None:
        if stage.candidate.device_id == self.identity.device_id:
            return self._local_head(stage.assignment)
        if self.session_of(stage.candidate.device_id) != stage.candidate.session:
            return None
        return self.heads.get(stage)

    # ------------------------------------------------------------------ what chains ask

    def candidates(self) -> tuple[Candidate, ...]:
        """Connected members that contribute."""
        return tuple(self._candidate(s) for s in self.registry.sessions() if s.contribute)

    def _candidate(self, session: Session) -> Candidate:
        return Candidate(
            device_id=session.device_id,
            name=self._name_of(session),
            spki=session.spki,
            hosts=session.hosts,
            memory_free=int(session.memory_free * MEMORY_SHARE),
            coordinator=session.device_id == self.identity.device_id,
            session=self._session_numbers[session],
            draining=session.draining or self._drained(session.device_id),
            devices=session.hello.hardware.devices,
        )

    def drain(self, device_id: str, *, on: bool) -> bool:
        """Have a member hand its work over and get none, or let it work again; whether that is new.

        Raises:
            NotFound: no such member.
        """
        assert self.state.value is not None
        if device_id not in self.membership.members:
            raise NotFound(f"The fleet has no member {device_id}.")
        drained = self.state.value.drained
        if (device_id in drained) == on:
            return False
        rest = tuple(d for d in drained if d != device_id)
        self.state.change(drained=(*rest, device_id) if on else rest)
        self._members_changed()
        return True

    def _drained(self, device_id: DeviceId) -> bool:
        assert self.state.value is not None
        return device_id in self.state.value.drained

    def session_of(self, device_id: DeviceId) -> int:
        """Number of a member's present connection; 0 if it has none."""
        session = self.registry.get(device_id)
        return self._session_numbers.get(session, 0) if session is not None else 0

    async def plan(
        self, wanted: Wanted, users: int, without: frozenset[DeviceId]
    ) -> tuple[Planned, Drafting, tuple[Candidate, ...]]:
        """Plan all wanted models together and return this one's part.

        What our own runners hold counts as free: a plan may use it again.

        Raises:
            NotFound: the library has lost the model.
        """
        candidates = self._plannable(without)
        self._users[wanted.model_id] = users
        wishes = []
        drafting = Drafting(lookup=False)
        for server in self._servers.values():
            most = max((c.memory_free for c in candidates), default=0)
            wish, chosen = await asyncio.to_thread(self._wish, server.wanted, len(candidates), most)
            wishes.append(wish)
            if server.wanted == wanted:
                drafting = chosen
        inputs = self._planner.inputs(candidates, wishes)
        plan = (await self._planner.plan(inputs)).model(wanted.model_id)
        if plan is None:
            raise NoCapacity(f"There is no plan for {wanted.model_id}.")
        return Planned(plan, inputs), drafting, candidates

    def _plannable(self, without: frozenset[DeviceId]) -> tuple[Candidate, ...]:
        held: dict[DeviceId, int] = {}
        for server in self._servers.values():
            for device, size in server.weights().items():
                held[device] = held.get(device, 0) + size
        return tuple(
            replace(c, memory_free=c.memory_free + held.get(c.device_id, 0))
            for c in self.candidates()
            if not c.draining and c.device_id not in without
        )

    def _wish(self, wanted: Wanted, nodes: int, most: int) -> tuple[Wish, Drafting]:
        """``most`` is the memory of the largest node: a draft model that fits nowhere stays away,
        unless it was asked for.
        """
        manifest, _ = self._library.get(wanted.model_id)
        drafting = drafts.choose(wanted.draft, manifest, self._library.models())
        size = drafts.weight(self._library.get(drafting.model)[0]) if drafting.model else 0
        if size and wanted.draft == drafts.AUTO and 2 * size > most:
            drafting, size = Drafting(lookup=True), 0
        model = model_of(manifest, wanted.precision, drafting, size)
        users = self._users.get(wanted.model_id, 1)
        return Wish(model, demand(users, wanted.stages, nodes, model.layers)), drafting

    async def layers(self, model_id: str) -> int:
        """How many the model has."""
        manifest, _ = await asyncio.to_thread(self._library.get, model_id)
        return len(manifest.layer_bytes)

    async def shard(self, model_id: str, layers: LayerRange) -> Shard:
        """Split on demand; the result is kept, as plans repeat."""
        async with self._split_lock:
            found = self._shards.get((model_id, layers))
            if found is None:
                folder = await asyncio.to_thread(self._library.stage, model_id, layers)
                found = Shard(
                    manifest=Signed(folder.payload, folder.signature, folder.signer),
                    model_digest=folder.manifest.model_digest,
                )
                self._shards[model_id, layers] = found
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

    async def send(self, device_id: DeviceId, message: FromHub) -> None:
        """To one member.

        Raises:
            NotAMember: it is not connected.
        """
        session = self.registry.get(device_id)
        if session is None:
            raise NotAMember(f"{device_id} is not connected.")
        await session.send(self.sources.with_sources(device_id, message))
        if isinstance(message, Release):
            self.heads.released(message.assignment)

    def next_epoch(self) -> int:
        """Higher than any before, also across restarts."""
        assert self.state.value is not None
        return self.state.change(epoch=self.state.value.epoch + 1).epoch

    # ------------------------------------------------------------------ views

    def view(self) -> FleetView:
        """Everything an admin's table shows."""
        assert self.state.value is not None
        now = time.monotonic()
        nodes = []
        for member in self.membership.members.values():
            session = self.registry.get(member.device_id)
            if member.state != "active":
                state = "revoked"
            elif session is None:
                state = "offline"
            else:
                state = {"gone": "offline"}.get(session.liveness(now), session.liveness(now))
            nodes.append(
                NodeView(
                    device_id=member.device_id,
                    name=member.name,
                    role=member.role,
                    state=state,  # type: ignore[arg-type]
                    contribute=session.contribute if session else False,
                    app=session.hello.app if session else "",
                    hardware=session.hello.hardware if session else None,
                    last_seen=round(now - session.last_heard, 1) if session else None,
                    drained=self._drained(member.device_id),
                    reason=session.reason if session else "",
                )
            )
        nodes += [
            NodeView(
                device_id=p.device_id, name=p.name, role="member", state="pending", contribute=False
            )
            for p in self.state.value.pending
        ]
        return FleetView(
            fleet_id=self.state.value.fleet_id,
            name=self.state.value.name,
            nodes=tuple(nodes),
            chains=self.chain_views(),
            warnings=self.clones.warnings,
        )

    def chain_views(self) -> tuple[ChainView, ...]:
        """Every chain."""
        return tuple(view for s in self._servers.values() for view in s.views())

    def changed(self) -> None:
        """Wake everybody who watches."""
        for event in self._listeners:
            event.set()

    def listen(self) -> asyncio.Event:
        """An event set at each change; give it back with ``unlisten``."""
        event = asyncio.Event()
        self._listeners.add(event)
        return event

    def unlisten(self, event: asyncio.Event) -> None:
        """Stop listening."""
        self._listeners.discard(event)

    def _name_of(self, session: Session) -> str:
        member = self.membership.members.get(session.device_id)
        return member.name if member is not None else session.hello.name

    def named(self, text: str) -> str:
        """The same sentence with "device abc…" replaced by the PC's name."""
        members = self.membership.members
        return _DEVICE.sub(
            lambda found: members[found[1]].name if found[1] in members else found[0], text
        )

    def _members_changed(self) -> None:
        for server in self._servers.values():
            server.nodes_changed()
        self.changed()

    async def _send_quietly(self, session: Session, message: FromHub) -> None:
        try:
            await session.send(message)
        except (FleetError, OSError) as exc:
            log.debug("not delivered to %s: %s", session.device_id, exc)

    def _spawn(self, coroutine: Awaitable[None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _reachable(remote: str, hosts: tuple[str, ...]) -> tuple[str, ...]:
    """Where other PCs may reach a member's runners, what was seen of it first.

    The coordinator's own agent connects over loopback, which means another PC to everybody else;
    loopback counts only where the whole fleet lives on it.
    """
    known = tuple(dict.fromkeys(h for h in (remote, *hosts) if h))
    outside = tuple(h for h in known if not _is_loopback(h))
    return outside or known


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
