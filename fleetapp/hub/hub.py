"""The coordinator's mind, put together: members, sessions, chains, requests."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from msgspec import structs

from fleetapp.errors import BadRequest, FleetError, NotAMember, NotFound
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import (
    FaultReport,
    FromHub,
    FromMember,
    Goodbye,
    Heartbeat,
    MemberHello,
    MembershipUpdate,
    ProfileReport,
    Refuse,
    Signed,
    StageStatus,
)
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import Member, Membership, add, remove, sign_membership
from fleetapp.fleet.trust import TrustList
from fleetapp.hub import drafts
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.chains import Candidate, ChainKeeper, Shard
from fleetapp.hub.drafts import Drafting
from fleetapp.hub.joining import Gatekeeper
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.planner.edits import Inputs, parse_edit, what_if
from fleetapp.hub.planner.equal import ModelCost
from fleetapp.hub.planner.inputs import Demand, Model, Wish
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.hub.planning import Member as Contributor
from fleetapp.hub.planning import Planning, Served, held_memory, model_of
from fleetapp.hub.registry import Registry, Session
from fleetapp.hub.router import Head, Router
from fleetapp.hub.state import StateFile, Wanted
from fleetapp.models.library import Library
from fleetapp.types import (
    ChainId,
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
KV_TOKENS_PLANNED = 4096
"""Cache tokens a plan makes room for; a node takes more if it has it."""
PLANNED_CONTEXT = 2048
"""Cache tokens for each user that plans count with."""
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
        self.planning = Planning()
        self._authority = authority
        self._trust = trust
        self._library = library
        self._store_membership = store_membership
        self._keepers: dict[str, ChainKeeper] = {}
        self._chain_numbers = itertools.count(1)
        self._session_numbers: dict[Session, int] = {}
        self._numbers = itertools.count(1)
        self._listeners: set[asyncio.Event] = set()
        self._shards: dict[tuple[str, LayerRange], Shard] = {}
        self._split_lock = asyncio.Lock()
        self._tasks: set[asyncio.Future[None]] = set()
        self.router = Router(
            chains=lambda: tuple(self._keepers.values()),
            head=head,
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
        for keeper in self._keepers.values():
            await keeper.stop("The coordinator is shutting down.")
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
        )
        old = self.registry.attach(session)
        self._session_numbers[session] = next(self._numbers)
        if old is not None:
            self._gone(old)
            self._spawn(old.close())
        log.info("member %s connected", member.device_id)
        self._members_changed()
        return session

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
        if self.registry.heard(session, beat, now):
            self._members_changed()
        if isinstance(message, StageStatus):
            for keeper in self._keepers.values():
                keeper.on_status(session.device_id, message)
        elif isinstance(message, FaultReport):
            fault = structs.replace(message, message=self.named(message.message))
            for keeper in self._keepers.values():
                keeper.on_fault(session.device_id, fault)
        elif isinstance(message, ProfileReport):
            self.planning.take(session.device_id, message)
        elif beat is not None:
            for keeper in self._keepers.values():
                keeper.on_sent(session.device_id, beat.sent_bytes)
        elif isinstance(message, Goodbye):
            log.info("member %s says goodbye: %s", session.device_id, message.reason)
            if message.reason == LEFT and session.device_id != self.identity.device_id:
                self.change_membership(lambda current: remove(current, session.device_id))
                self.audit.write(session.device_id, "left")

    def _gone(self, session: Session) -> None:
        name = self._name_of(session)
        for keeper in self._keepers.values():
            keeper.on_lost(session.device_id, name)

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

    def _admit(self, member: Member) -> Signed:
        return self.change_membership(lambda current: add(current, member))

    def change_membership(self, reduce: Callable[[Membership], Membership]) -> Signed:
        """Apply a pure reducer, sign, store, tell everyone, and cut whoever is out.

        It is on disk before it counts: an epoch that was seen outside and forgotten here would be
        given to another list after a restart, and that pair nobody accepts.
        """
        changed = reduce(self.membership)
        if changed == self.membership:
            return self.signed_membership
        signed = sign_membership(changed, self._authority)
        self._store_membership(signed)
        self._trust.update(signed)
        for session in self.registry.sessions():
            if self._trust.allows(session.spki):
                self._spawn(self._send_quietly(session, MembershipUpdate(membership=signed)))
            else:
                self.detach(session)
                self._spawn(self._cut(session, signed))
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
    ) -> ChainKeeper:
        """Want a model; an existing chain of it is replaced if the wish differs.

        Raises:
            NotFound: the library has no such model.
            Unsupported: the draft model is not there or speaks another vocabulary.
        """
        assert self.state.value is not None
        manifest, _ = self._library.get(model_id)
        drafts.choose(draft, manifest, self._library.models())
        wanted = Wanted(model_id=model_id, precision=precision, stages=stages, draft=draft)
        current = self._keepers.get(model_id)
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
        keeper = self._keepers.pop(model_id, None)
        if keeper is None:
            raise NotFound(f"'{model_id}' is not being served.")
        self.state.change(
            wanted=tuple(w for w in self.state.value.wanted if w.model_id != model_id)
        )
        self.audit.write("local", "unserve", model=model_id)
        await keeper.stop("It was stopped by the admin.")
        self.changed()

    def chain_view(self, model_id: str) -> ChainView:
        """One chain."""
        return self._keepers[model_id].view()

    def _keep(self, wanted: Wanted) -> ChainKeeper:
        chain = ChainId(f"{self.identity.device_id[:6]}-{next(self._chain_numbers)}")
        keeper = ChainKeeper(chain, wanted, self)
        self._keepers[wanted.model_id] = keeper
        keeper.start()
        return keeper

    # ------------------------------------------------------------------ what chains ask

    def candidates(self) -> tuple[Candidate, ...]:
        """Connected members that contribute."""
        return tuple(
            Candidate(
                device_id=s.device_id,
                name=self._name_of(s),
                spki=s.spki,
                hosts=s.hosts,
                memory_free=int(s.memory_free * MEMORY_SHARE),
                coordinator=s.device_id == self.identity.device_id,
                session=self._session_numbers[s],
            )
            for s in self.registry.sessions()
            if s.contribute
        )

    async def cost(self, model_id: str) -> ModelCost:
        """What the model's layers weigh."""
        manifest, _ = await asyncio.to_thread(self._library.get, model_id)
        arch = manifest.architecture
        per_token = max(2 * h * d * 4 for h, d in zip(arch.kv_heads, arch.head_sizes, strict=True))
        return ModelCost(
            layer_bytes=manifest.layer_bytes,
            embedding_bytes=manifest.embedding_bytes,
            head_bytes=manifest.head_bytes,
            kv_bytes_per_layer=per_token * KV_TOKENS_PLANNED,
        )

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

    async def drafting(self, wanted: Wanted) -> tuple[Drafting, int]:
        """How its chain guesses ahead, and the bytes of its draft model."""
        return await asyncio.to_thread(self._drafting, wanted)

    def _drafting(self, wanted: Wanted) -> tuple[Drafting, int]:
        manifest, _ = self._library.get(wanted.model_id)
        drafting = drafts.choose(wanted.draft, manifest, self._library.models())
        if not drafting.model:
            return drafting, 0
        return drafting, drafts.weight(self._library.get(drafting.model)[0])

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
        await session.send(message)

    def next_epoch(self) -> int:
        """Higher than any before, also across restarts."""
        assert self.state.value is not None
        return self.state.change(epoch=self.state.value.epoch + 1).epoch

    # ------------------------------------------------------------------ plans

    async def planning_inputs(self, besides: Iterable[Wanted] = ()) -> Inputs:
        """Nodes, links and wishes as they are now.

        Args:
            besides: models that are not served, whose profiles shall be in it, too.
        """
        assert self.state.value is not None
        members = [
            Contributor(c.device_id, c.name, c.memory_free, c.coordinator)
            for c in self.candidates()
        ]
        wanted = self.state.value.wanted
        served = [await asyncio.to_thread(self._served, w) for w in (*wanted, *besides)]
        users = max(1, len(self.registry.sessions()))
        held = held_memory(k.view() for k in self._keepers.values())
        nodes = self.planning.nodes(members, served, held)
        wishes = tuple(
            Wish(s.model, Demand(users, PLANNED_CONTEXT, stages=w.stages))
            for s, w in zip(served, wanted, strict=False)
        )
        return Inputs(nodes, self.planning.links_between(nodes), wishes)

    def _served(self, wanted: Wanted) -> Served:
        manifest, digest = self._library.get(wanted.model_id)
        _, draft = self._drafting(wanted)
        return Served(model_of(manifest, wanted.precision, draft), digest, wanted.precision)

    async def plan_view(self, changes: tuple[str, ...], precision: Precision) -> FleetPlan:
        """What the planner would do now, or after some changes (see ``parse_edit``).

        Raises:
            BadRequest: a change that makes no sense, or there is nothing to plan.
            NotFound: no such model or PC.
        """
        others: dict[str, Served] = {}

        def find(name: str) -> Model:
            others[name] = self._served(Wanted(name, precision, 0, drafts.LOOKUP))
            return others[name].model

        edits = [await asyncio.to_thread(parse_edit, change, find) for change in changes]
        besides = [Wanted(name, precision, 0, drafts.LOOKUP) for name in others]
        inputs = what_if(await self.planning_inputs(besides), edits)
        if not inputs.wishes:
            raise BadRequest(
                "No model is served, so there is nothing to plan.",
                remedy="Name one: --what-if model=NAME.",
            )
        return await asyncio.to_thread(inputs.plan)

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
            chains=tuple(k.view() for k in self._keepers.values()),
        )

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
        for keeper in self._keepers.values():
            keeper.nodes_changed()
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
