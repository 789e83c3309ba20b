"""Everything that exists only while this PC belongs to a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fleetapp import __version__
from fleetapp.agent.hublink import HubLink
from fleetapp.agent.joining import Address, ask_for_leaf, bracket, proof_of_key
from fleetapp.agent.original import Place, find_original
from fleetapp.agent.renewal import Renewal
from fleetapp.agent.stages import Outgoing, RunnerSetup, StageHost
from fleetapp.agent.successor import SuccessorWatch
from fleetapp.agent.whereabouts import Whereabouts
from fleetapp.errors import FleetError, NotAMember, StorageError
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import (
    Assign,
    EarlierList,
    FromHub,
    Handover,
    Heartbeat,
    LinkStage,
    MemberHello,
    MembershipUpdate,
    Release,
    Signed,
    Welcome,
)
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.enrolment import Credentials, Enrolment, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.keys import hardware_id
from fleetapp.fleet.membership import Member, begins_a_term
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.hub import Hub
from fleetapp.hub.joining import Gatekeeper
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.router import Head
from fleetapp.hub.state import StateFile
from fleetapp.models.library import Library
from fleetapp.models.store import ShardStore
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings
from fleetapp.types import PROTOCOL_VERSION, DeviceId, FleetId, Hardware

log = logging.getLogger("fleetapp.agent.infleet")

RELEASE_AFTER = 10.0
"""Runners are kept this long after the hub was lost, in case it comes back (s)."""
KV_SHARE = 0.25
KV_MAX = 2 * 2**30
KV_MIN = 64 * 2**20
STATE, CODES, KEYS, SEEN, PLACE = "state.json", "codes.json", "keys.json", "seen.json", "place"
"""What the hub keeps beside its authority's key."""


@dataclass(frozen=True)
class Bound:
    """A listening server."""

    host: str
    port: int
    close: Callable[[], Awaitable[None]]
    renew: Callable[[], None] = lambda: None
    """Show the leaf that is on disk now to whoever connects from now on."""


class Servers(Protocol):
    """Opens the HTTP fronts; given by the layer above, which knows HTTP."""

    async def open_control(
        self, hub: Hub, trust: TrustList, credentials: Credentials, host: str, port: int
    ) -> Bound: ...

    async def open_api(self, hub: Hub, host: str, port: int) -> Bound: ...


@dataclass(frozen=True)
class PC:
    """What an agent has whether or not it belongs to a fleet."""

    paths: Paths
    platform: Platform
    settings: Callable[[], Settings]
    identity: Identity
    fleet_store: FleetStore
    discovery: Discovery
    servers: Servers
    name: Callable[[], str]
    runtime: Callable[[], str]
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    """Of this start of the agent."""


def open_library(pc: PC) -> Library:
    """The model library of this PC."""
    root = pc.settings().models_dir or pc.paths.models
    return Library(Path(root), pc.identity)


def forget_hub(pc: PC) -> None:
    """Forget the fleet that this PC coordinated; harmless if there is none.

    Codes and keys go too: one of an earlier fleet must not open the next. The audit log stays.
    Blocks on the keyring: call it in a thread.
    """
    Authority.remove(pc.paths, pc.platform)
    for name in (STATE, CODES, KEYS, SEEN, PLACE):
        (pc.paths.hub / name).unlink(missing_ok=True)


class InFleet:
    """One membership, from start to stop.

    Args:
        pc: this PC.
        changed: called after every change that people should see.
    """

    def __init__(self, pc: PC, enrolment: Enrolment, changed: Callable[[], None]) -> None:
        self.pc = pc
        self.enrolment = enrolment
        self._connected = asyncio.Event()
        self.reason = "Looking for the coordinator."
        self.hub: Hub | None = None
        self.api: Bound | None = None
        self._changed = changed
        self._control: Bound | None = None
        self.trust = enrolment.trust()
        self.where = Whereabouts(
            device=pc.identity.device_id,
            info=enrolment.info,
            store=pc.fleet_store,
            trust=self.trust,
            discovery=pc.discovery,
            configured=lambda: pc.settings().hub_address,
        )
        self.link = HubLink(
            credentials=enrolment.credentials,
            trust=self.trust,
            addresses=self.addresses,
            hello=self._hello,
            heartbeat=self._heartbeat,
            on_message=self._on_message,
            on_change=self._on_change,
        )
        self.renewal = Renewal(
            store=pc.fleet_store,
            leaf=enrolment.leaf,
            ask=self._new_leaf,
            renewed=self._renewed,
            changed=changed,
        )
        self.on_office: Callable[[bytes], None] = lambda _: None
        """Told when the coordinator hands its office over to this PC."""
        self.on_role: Callable[[], None] = lambda: None
        """Told when the list gives this PC another role than it acts in."""
        self._watch = SuccessorWatch(
            identity=pc.identity,
            credentials=enrolment.credentials,
            trust=self.trust,
            strangers=self._strangers,
            found=self._found_newer,
        )
        self._original: list[Address] = []
        """Where the coordinator is of whose folder this PC's is a copy."""
        self._earlier: Signed | None = None
        """Of the term before, for a coordinator that took over with an older one."""
        self._gate: Gatekeeper | None = None
        self._store = ShardStore(pc.paths.shards)
        self.stages = StageHost(
            store=self._store,
            source=self.link,
            setup=self._setup,
            made_here=lambda name: self.hub.shard_folder(name) if self.hub else None,
            verify=self._verify,
            trusted=self.trust.allows,
            report=self._report,
            changed=changed,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._release: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether the hub has greeted and is still there."""
        return self._connected.is_set()

    async def wait_connected(self, deadline: float) -> bool:
        """Wait at most ``deadline`` seconds; whether the hub has greeted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await self._connected.wait()
        return self.connected

    @property
    def is_coordinator(self) -> bool:
        """Whether the signed membership names this PC a coordinator."""
        member = self.member
        return member is not None and "coordinator" in member.roles

    @property
    def acts_in_its_role(self) -> bool:
        """Whether it runs a hub if, and only if, the list says so and it has the authority."""
        may = self.is_coordinator and Authority.exists(self.pc.paths) and not self._original
        return may == (self.hub is not None)

    @property
    def member(self) -> Member | None:
        """This PC in the signed membership; None if it is not in there any more."""
        membership = self.trust.membership
        return membership.members.get(self.pc.identity.device_id) if membership else None

    @property
    def fleet_id(self) -> FleetId:
        """Of the fleet."""
        return self.enrolment.info.fleet_id

    async def start(self, *, may_be_copy: bool = True) -> None:
        """Open servers (coordinator), announce, connect.

        Args:
            may_be_copy: whether this state folder may have been copied since the agent last ran.
        """
        place = Place(self.pc.paths.hub / PLACE, self.pc.paths.home, self.pc.platform)
        if may_be_copy and not self.acts_in_its_role and not place.is_the_same:
            # A copy of the coordinator's folder coordinates nothing: it asks the original to make
            # it a member of its own.
            self._original = await find_original(self.pc.identity, self.trust, self.pc.discovery)
        if not self.acts_in_its_role:
            await self._start_hub()
            place.note()
        self._announce()
        self._tasks.append(asyncio.create_task(self.link.run()))
        self._tasks.append(asyncio.create_task(self._counters()))
        self._tasks.append(asyncio.create_task(self.renewal.run()))
        self._tasks.append(asyncio.create_task(self._watch.run()))

    async def stop(self, reason: str) -> None:
        """Say goodbye, stop runners, close servers."""
        self.pc.discovery.withdraw()
        if self.hub is not None:
            await self.hub.stop()  # first: its own goodbye would set it to repairing the chain
        await self.link.goodbye(reason)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._release is not None:
            self._release.cancel()
        await self.stages.release_all()
        for server in (self.api, self._control):
            if server is not None:
                await server.close()

    async def _start_hub(self) -> None:
        pc, settings = self.pc, self.pc.settings()
        state = StateFile(pc.paths.hub / STATE, pc.platform)
        if state.load() is None:
            raise StorageError(
                f"The coordinator's state {pc.paths.hub / STATE} is missing.",
                remedy="Restore it from a backup, or leave and create the fleet anew.",
            )
        authority = await asyncio.to_thread(Authority.open, pc.paths, pc.platform)
        audit = AuditLog(pc.paths.hub / "audit.jsonl")
        hub = Hub(
            identity=pc.identity,
            authority=authority,
            trust=self.trust,
            state=state,
            codes=CodeBook(pc.paths.hub / CODES, authority.spki, pc.platform),
            keys=KeyBook(pc.paths.hub / KEYS, pc.platform),
            audit=audit,
            clones=lambda registry: CloneWatch(pc.paths.hub / SEEN, pc.platform, registry, audit),
            library=await asyncio.to_thread(open_library, pc),
            head=self._head,
            store_membership=self._keep_membership,
        )
        # Before anybody connects: nobody could ask a coordinator whose own leaf has expired.
        self._gate = hub.gate
        await self.renewal.look()
        host = self._listen_host()
        self._control = await pc.servers.open_control(
            hub, self.trust, self.enrolment.credentials, host, settings.control_port
        )
        try:
            self.api = await pc.servers.open_api(hub, settings.api_host, settings.api_port)
        except FleetError:
            await self._control.close()
            raise
        self.hub = hub
        await hub.start()

    def _announce(self) -> None:
        port = self._control.port if self._control is not None else 0
        self.pc.discovery.announce(
            device_id=self.pc.identity.device_id,
            fleet_id=self.fleet_id,
            role="coordinator" if self._control is not None else "member",
            port=port,
            addresses=self._hosts(),
        )

    # ------------------------------------------------------------------ what others ask

    def _head(self, assignment: str) -> Head | None:
        return self.stages.runner(assignment)

    async def addresses(self) -> list[Address]:
        """Where the coordinator may be, best first."""
        if self._control is not None:
            return [("127.0.0.1", self._control.port)]
        return self._original or self.where.coordinator()

    def _strangers(self) -> list[Address]:
        return self.where.strangers(lost=not self.connected and self.hub is None)

    async def _found_newer(self, signed: Signed, address: Address) -> None:
        if self.hub is None:
            self.where.remember([f"{bracket(address[0])}:{address[1]}"])
        await self._update_membership(signed)
        self.link.kick()

    def keep_list(self, signed: Signed, hub: DeviceId, addresses: tuple[str, ...]) -> None:
        """Keep a list that names another coordinator, and where that is."""
        self.trust.update(signed)
        self._keep_membership(signed)
        self.where.remember(addresses, hub)

    def _hello(self) -> MemberHello:
        pc, settings = self.pc, self.pc.settings()
        return MemberHello(
            protocol=PROTOCOL_VERSION,
            app=__version__,
            device_id=pc.identity.device_id,
            name=pc.name(),
            hardware=Hardware(
                cores=pc.platform.cores(),
                memory_total=pc.platform.memory_total(),
                memory_free=pc.platform.memory_free(),
                disk_free=pc.platform.disk_free(pc.paths.home),
                cpu=pc.platform.cpu_name(),
                runtime=pc.runtime(),
            ),
            contribute=settings.contribute,
            hosts=self._hosts(),
            instance=pc.instance,
            hardware_id=hardware_id(pc.platform.machine_facts(), self.fleet_id),
        )

    async def _heartbeat(self, seq: int) -> Heartbeat:
        return Heartbeat(
            seq=seq,
            memory_free=self.pc.platform.memory_free(),
            disk_free=self.pc.platform.disk_free(self.pc.paths.home),
            contribute=self.pc.settings().contribute,
            sent_bytes=self.stages.sent_bytes(),
        )

    def _setup(self) -> RunnerSetup:
        pc, settings, credentials = self.pc, self.pc.settings(), self.enrolment.credentials
        free = pc.platform.memory_free()
        automatic = max(KV_MIN, min(KV_MAX, int(free * KV_SHARE)))
        return RunnerSetup(
            device="CPU",
            threads=settings.threads,
            kv_bytes=settings.kv_memory_mb * 2**20 or automatic,
            cache_dir=pc.paths.cache,
            listen_host=self._listen_host(),
            listen_port=settings.data_port,
            cert_path=credentials.leaf_path,
            key_path=credentials.key_path,
            authority_path=pc.paths.fleet / "authority.crt",
            fleet=self.fleet_id,
            device_id=pc.identity.device_id,
            name=pc.name(),
            spill_bytes=settings.kv_spill_mb * 2**20,
            spill_disk_bytes=settings.kv_spill_disk_mb * 2**20,
            max_context=settings.max_context,
        )

    def _hosts(self) -> tuple[str, ...]:
        chosen = self.pc.settings().interfaces()
        if chosen:
            return chosen
        usable = tuple(a.address for a in self.pc.platform.addresses())
        return usable or ("127.0.0.1",)

    def _listen_host(self) -> str:
        hosts = self._hosts()
        return "127.0.0.1" if all(h.startswith("127.") for h in hosts) else "0.0.0.0"  # noqa: S104 - members connect from other PCs; every connection needs a fleet certificate

    def _verify(self, assign: Assign) -> None:
        for signed in (assign.manifest, assign.draft):
            if signed is not None:
                self.trust.verify(signed, "coordinator")

    # ------------------------------------------------------------------ certificate

    async def _new_leaf(self) -> bytes:
        ask = proof_of_key(self.pc.identity, self.pc.name())
        if self._gate is not None:
            return self._gate.request(ask, "").leaf.encode()
        return await ask_for_leaf(
            ask,
            self.enrolment.credentials.authority_pem,
            self.fleet_id,
            [member.device_id for member in self.trust.coordinators()],
            await self.addresses(),
        )

    async def _renewed(self) -> None:
        self.link.renew()
        if self._control is not None:
            self._control.renew()
        await self.stages.renew()

    # ------------------------------------------------------------------ messages

    async def _report(self, message: Outgoing) -> None:
        await self.link.send(message)

    async def _on_message(self, message: FromHub) -> None:
        if isinstance(message, Welcome | MembershipUpdate):
            if isinstance(message, MembershipUpdate) and message.hub_addresses:
                self.where.remember(message.hub_addresses)
            await self._update_membership(message.membership)
        elif isinstance(message, Handover):
            self.on_office(message.bundle)
        elif isinstance(message, Assign):
            await self.stages.assign(message)
        elif isinstance(message, LinkStage):
            self._tasks.append(asyncio.create_task(self.stages.link(message)))
            self._tasks = [t for t in self._tasks if not t.done()]
        elif isinstance(message, Release):
            await self.stages.release(message.assignment)

    async def _update_membership(self, signed: Signed) -> None:
        before = self.trust.signed
        if self.trust.update(signed):
            self._keep_membership(signed)
            if before is not None and begins_a_term(self.trust.open(before), self.trust.epoch):
                self._earlier = before
                if self.connected:
                    await self._tell_earlier()
            if not self.acts_in_its_role:
                self.on_role()
        if not self.trust.allows(self.pc.identity.spki):
            await self.stages.release_all()
        self.trust.require(self.pc.identity.spki)
        await self.stages.leave_strangers()

    async def _tell_earlier(self) -> None:
        if self._earlier is not None:
            await self.link.send(EarlierList(self._earlier))
            self._earlier = None

    def _keep_membership(self, signed: Signed) -> None:
        self.pc.fleet_store.save_membership(signed)

    async def _on_change(self, connected: bool, reason: str) -> None:
        self.reason = reason
        if connected:
            self._connected.set()
            if self._release is not None:
                self._release.cancel()
                self._release = None
            # The hub deals anew after every connection; what was held for the old one goes.
            await self.stages.release_all()
            await self._tell_earlier()
        else:
            self._connected.clear()
            if self._release is None:
                self._release = asyncio.create_task(self._release_later())
        self._changed()

    async def _release_later(self) -> None:
        await asyncio.sleep(RELEASE_AFTER)
        await self.stages.release_all()

    async def _counters(self) -> None:
        while True:
            started = time.monotonic()
            try:
                await self.stages.refresh_counters()
            except NotAMember as exc:
                log.info("%s", exc)
            await asyncio.sleep(max(0.5, 1.0 - (time.monotonic() - started)))
