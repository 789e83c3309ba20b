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

from msgspec import structs

from fleetapp.errors import FleetError, NotAMember, NotFound
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
    ProfileReport,
    Refuse,
    Release,
    Signed,
    StageStatus,
)
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import (
    Member,
    Membership,
    add,
    clean_name,
    remove,
    rename,
    rename_fleet,
    sign_membership,
)
from fleetapp.fleet.trust import TrustList
from fleetapp.hub import catchup
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.broadcast import MembershipPush
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.heads import RemoteHeads
from fleetapp.hub.joining import Gatekeeper
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.loads import Loads
from fleetapp.hub.models import Models
from fleetapp.hub.overview import fleet_view
from fleetapp.hub.registry import Registry, Session
from fleetapp.hub.router import Head, Router
from fleetapp.hub.stage import Candidate, Stage
from fleetapp.hub.state import StateFile
from fleetapp.hub.succession import Succession
from fleetapp.hub.swarm import SourceBook
from fleetapp.models.library import Library
from fleetapp.types import (
    DeviceId,
    FleetId,
    FleetView,
)

log = logging.getLogger("fleetapp.hub")

_DEVICE = re.compile(r"\bdevice ([a-z2-7]{20})\b")
LEFT = "left"
"""The reason in the goodbye of a member that wants to belong to the fleet no longer."""
MEMORY_SHARE = 0.8
"""Share of a node's free memory that a plan may use."""
SWEEP_SECONDS = 0.15
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
        self._store_membership = store_membership
        self._local_head = head
        self.heads = RemoteHeads(self.send)
        self._session_numbers: dict[Session, int] = {}
        self._numbers = itertools.count(1)
        self._listeners: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self.clones = clones(self.registry)
        self.push = MembershipPush(
            newest=lambda: (self.membership, self.signed_membership),
            sessions=self.registry.sessions,
            send=lambda session, message: self._spawn(self._send_quietly(session, message)),
        )
        self.sources = SourceBook(self.registry.sessions, identity.device_id)
        self.models = Models(identity.device_id[:6], self, library, state, audit)
        self.router = Router(
            servers=lambda: self.models.servers,
            head=self._head,
            nodes_online=lambda: len(self.registry.sessions()),
            created=int(state.value.created),
            named=self.named,
        )
        self.loads = Loads(self.router.reports, self.changed)
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
        self._spawn(self._sweep())
        self.models.start()

    async def stop(self) -> None:
        """End chains, then sessions."""
        self.router.close()
        await self.loads.stop()
        await self.models.stop()
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
            lends=hello.lends,
            shards=hello.shards,
            certificate_ends=hello.certificate_ends,
            remote=remote,
        )
        old = self.registry.attach(session)
        self._session_numbers[session] = next(self._numbers)
        if old is not None:
            self._gone(old)
            self._spawn(old.close())
        log.info("member %s connected", member.device_id)
        name = self._given_name(member.device_id) or clean_name(hello.name)
        if name and name != member.name:
            with contextlib.suppress(FleetError):  # not now; it says so again next time
                self.change_membership(lambda current: rename(current, member.device_id, name))
        self._adopt(session)
        self._members_changed()
        return session

    def _adopt(self, session: Session) -> None:
        """Use what a member has kept loaded; what nobody wants is let go."""
        self.models.knowledge.came(session.device_id)
        taken = self.models.adopt(session.hello.held, self._candidate(session))
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
        device = session.device_id
        match message:
            case Heartbeat():
                self.models.on_sent(device, message.sent_bytes)
            case StageStatus():
                self.models.on_status(device, message)
            case FaultReport():
                named = structs.replace(message, message=self.named(message.message))
                self.models.on_fault(device, named)
            case FromHead():
                self.heads.hear(device, message)
            case ProfileReport():
                self.models.knowledge.take(device, message)
            case EarlierList():
                catchup.catch_up(
                    message, self._trust, self.state, self.change_membership, self.audit
                )
            case HandedOver() | HandoverRefused():
                self.succession.answered(device, message)
            case Goodbye(reason):
                log.info("member %s says goodbye: %s", device, reason)
                if reason == LEFT and device != self.identity.device_id:
                    self.change_membership(lambda current: remove(current, device))
                    self.audit.write(device, "left")

    def _gone(self, session: Session) -> None:
        self.succession.lost(session.device_id)
        name = self._name_of(session)
        self.heads.device_lost(session.device_id)
        self.models.on_lost(session.device_id, name)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
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
        if given := self._given_name(member.device_id):
            member = structs.replace(member, name=given)
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

    # ------------------------------------------------------------------ what models ask

    def _head(self, stage: Stage) -> Head | None:
        if stage.candidate.device_id == self.identity.device_id:
            return self._local_head(stage.assignment)
        if self.session_of(stage.candidate.device_id) != stage.candidate.session:
            return None
        return self.heads.get(stage)

    def candidates(self) -> tuple[Candidate, ...]:
        """Connected members that contribute."""
        return tuple(self._candidate(s) for s in self.registry.sessions() if s.contribute)

    def idle(self) -> tuple[tuple[str, str], ...]:
        """Names of connected members that do not contribute, with their reasons."""
        return tuple(
            (self._name_of(s), s.reason) for s in self.registry.sessions() if not s.contribute
        )

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
            devices=session.lends or ("CPU",),
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

    def rename(self, device_id: str, name: str) -> bool:
        """Call a member ``name``, whatever it says of itself; empty gives it its own name back as
        soon as it connects again. Whether that is new.

        Raises:
            NotFound: no such member.
        """
        assert self.state.value is not None
        member = self.membership.members.get(device_id)
        if member is None:
            raise NotFound(f"The fleet has no member {device_id}.")
        names = {d: n for d, n in self.state.value.names.items() if d != device_id}
        given = {**names, device_id: name} if name else names
        if given == self.state.value.names:
            return False
        self.state.change(names=given)
        session = self.registry.get(member.device_id)
        shown = name or (clean_name(session.hello.name) if session is not None else "")
        if shown:
            self.change_membership(lambda current: rename(current, device_id, shown))
        return True

    def rename_fleet(self, name: str) -> bool:
        """Call the whole fleet ``name``; members hear of it with the list. Whether that is new."""
        assert self.state.value is not None
        if name == self.state.value.name == self.membership.fleet_name:
            return False
        self.state.change(name=name)
        self.change_membership(lambda current: rename_fleet(current, name))
        return True

    def _given_name(self, device_id: DeviceId) -> str:
        assert self.state.value is not None
        return self.state.value.names.get(device_id, "")

    def _drained(self, device_id: DeviceId) -> bool:
        assert self.state.value is not None
        return device_id in self.state.value.drained

    def session_of(self, device_id: DeviceId) -> int:
        """Number of a member's present connection; 0 if it has none."""
        session = self.registry.get(device_id)
        return self._session_numbers.get(session, 0) if session is not None else 0

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

    # ------------------------------------------------------------------ views

    def view(self) -> FleetView:
        """Everything an admin's table shows."""
        return fleet_view(self)

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
        self.models.nodes_changed()
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
