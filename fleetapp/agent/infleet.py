"""Everything that exists only while this PC belongs to a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from fleetapp.agent.headlink import HeadLink
from fleetapp.agent.held import RunnerSetup
from fleetapp.agent.hublink import HubLink
from fleetapp.agent.joining import Address, ask_for_leaf, bracket, proof_of_key
from fleetapp.agent.limiter import Limiter
from fleetapp.agent.original import Place, find_original
from fleetapp.agent.pc import CODES, KEYS, PC, PLACE, SEEN, STATE, Bound, open_library
from fleetapp.agent.peers import Peers
from fleetapp.agent.profiling import Measuring, MeteredSource, ProfileFile
from fleetapp.agent.renewal import Renewal
from fleetapp.agent.stages import Outgoing, StageHost
from fleetapp.agent.successor import SuccessorWatch
from fleetapp.agent.telling import Telling
from fleetapp.agent.thispc import hosts_of, listen_host, runner_setup
from fleetapp.agent.whereabouts import Whereabouts
from fleetapp.agent.yielding import FleetWork
from fleetapp.errors import BadSignature, FleetError, Malformed, NotAMember, StorageError
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
    MembershipDelta,
    MembershipUpdate,
    Release,
    Signed,
    ToHead,
    Welcome,
)
from fleetapp.fleet.enrolment import Enrolment
from fleetapp.fleet.membership import Member, begins_a_term
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.hub import Hub
from fleetapp.hub.joining import Gatekeeper
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.router import Head
from fleetapp.hub.state import RESTORE, StateFile
from fleetapp.models.store import ShardStore
from fleetapp.types import DeviceId, FleetId
from fleetapp.wire.meter import Meter

log = logging.getLogger("fleetapp.agent.infleet")

FOLLOW_SECONDS = 2.0
"""How often this PC's own addresses are looked at."""
RELEASE_AFTER = 60.0
"""Runners are kept this long after the hub was lost, in case it comes back (s)."""


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
        self._store = ShardStore(pc.paths.shards, free=lambda _: self._telling.disk_free())
        self._peers = Peers(enrolment.credentials, self.trust, pc.platform.addresses)
        self._blobs: Bound | None = None
        self._meter = Meter()
        self.stages = StageHost(
            store=self._store,
            source=MeteredSource(self.link, self._meter, self._hub_device),
            setup=self._setup,
            made_here=lambda name: self.hub.models.shard_folder(name) if self.hub else None,
            verify=self._verify,
            trusted=self.trust.allows,
            report=self._report,
            changed=changed,
            peers=self._peers,
            limiter=Limiter(lambda: pc.settings().download_limit_mbit),
        )
        self._telling = Telling(
            pc=pc,
            fleet_id=self.fleet_id,
            trust=self.trust,
            stages=self.stages,
            store=self._store,
            renewal=self.renewal,
            announced=lambda: self._announced,
            shard_port=lambda: self._blobs.port if self._blobs is not None else 0,
        )
        self._heads = HeadLink(self.stages.runner, self.link.send)
        self._work = FleetWork(self.stages, self.link, self._announce_again)
        self._announced: tuple[str, ...] = ()
        self._measuring = Measuring(
            remembered=ProfileFile(pc.paths.home / "profiles.json"),
            stages=self.stages.linked,
            downloads=self._meter.estimates,
            send=self.link.send,
            allowed=lambda: self.pc.guest.decision.contribute and self.connected,
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
    def name(self) -> str:
        """Of the fleet, as its newest list calls it."""
        membership = self.trust.membership
        return membership.fleet_name if membership else self.enrolment.info.name

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
        else:
            await self._share()
        self._announce()
        self._tasks.append(asyncio.create_task(self.link.run()))
        self._tasks.append(asyncio.create_task(self._counters()))
        self._tasks.append(asyncio.create_task(self._follow_addresses()))
        self._tasks.append(asyncio.create_task(self.renewal.run()))
        self._tasks.append(asyncio.create_task(self._watch.run()))
        self.pc.guest.attach(self._work)
        self._tasks.append(asyncio.create_task(self._measuring.run()))

    async def stop(self, reason: str) -> None:
        """Say goodbye, stop runners, close servers."""
        self.pc.guest.attach(None)
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
        for server in (self.api, self._control, self._blobs):
            if server is not None:
                await server.close()
        await self._peers.close()

    async def _share(self) -> None:
        """Serve shards to other members, if that can be; nothing depends on it."""
        settings = self.pc.settings()
        if not settings.share_shards:
            return
        try:
            self._blobs = await self.pc.servers.open_blobs(
                self._store.read_chunk,
                self.trust,
                self.enrolment.credentials,
                lambda: self.pc.settings().contribute and self.pc.settings().share_shards,
                Limiter(lambda: self.pc.settings().upload_limit_mbit),
                listen_host(self.pc),
                settings.share_port,
            )
        except FleetError as exc:
            log.warning("shards are not shared: %s", exc.message)

    async def _start_hub(self) -> None:
        pc, settings = self.pc, self.pc.settings()
        state = StateFile(pc.paths.hub / STATE, pc.platform)
        if state.load() is None:
            raise StorageError(
                f"The coordinator's state {pc.paths.hub / STATE} is missing.",
                remedy=RESTORE,
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
        host = listen_host(self.pc)
        # Before anybody connects: a member that brings what it has kept loaded must find that the
        # model is wanted, or it is told to let go.
        await hub.start()
        try:
            self._control = await pc.servers.open_control(
                hub, self.trust, self.enrolment.credentials, host, settings.control_port
            )
            self.api = await pc.servers.open_api(hub, settings.api_host, settings.api_port)
        except FleetError:
            await hub.stop()
            if self._control is not None:
                await self._control.close()
            raise
        self.hub = hub

    async def _follow_addresses(self) -> None:
        """After a new lease, or in another network, others must learn where this PC is now.

        Connections over the old address end by themselves.
        """
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            hosts = hosts_of(self.pc)
            # With its cable out a PC has no address for a while; it will have one again.
            if set(hosts) != set(self._announced) and not hosts[0].startswith("127."):
                log.info("addresses of this PC: %s", ", ".join(hosts))
                self._announce()
                self.link.beat()

    def _announce(self) -> None:
        self._announced = hosts_of(self.pc)
        port = self._control.port if self._control is not None else 0
        self.pc.discovery.announce(
            device_id=self.pc.identity.device_id,
            fleet_id=self.fleet_id,
            role="coordinator" if self._control is not None else "member",
            port=port,
            addresses=self._announced,
        )

    def _announce_again(self) -> None:
        self.pc.discovery.refresh()
        self._announce()

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
        return self._telling.hello()

    async def _heartbeat(self, seq: int) -> Heartbeat:
        return await self._telling.heartbeat(seq)

    def _setup(self) -> RunnerSetup:
        return runner_setup(self.pc, self.enrolment.credentials, self.fleet_id)

    def _hub_device(self) -> str:
        """Of the coordinator that shards are fetched from; empty if that is not clear."""
        coordinators = self.trust.coordinators()
        return coordinators[0].device_id if len(coordinators) == 1 else ""

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
        if self._blobs is not None:
            self._blobs.renew()
        self._peers.renew()
        await self.stages.renew()

    # ------------------------------------------------------------------ messages

    async def _report(self, message: Outgoing) -> None:
        await self.link.send(message)

    async def _on_message(self, message: FromHub) -> None:
        if isinstance(message, Welcome | MembershipUpdate):
            if isinstance(message, MembershipUpdate) and message.hub_addresses:
                self.where.remember(message.hub_addresses)
            if message.membership is not None:
                await self._update_membership(message.membership)
        elif isinstance(message, MembershipDelta):
            await self._update_by(message)
        elif isinstance(message, Handover):
            self.on_office(message.bundle)
        elif isinstance(message, Assign | LinkStage) and (why := self.pc.guest.refusal()):
            await self._work.refuse(message, why)
        elif isinstance(message, Assign):
            await self.stages.assign(message)
        elif isinstance(message, LinkStage):
            self._tasks.append(asyncio.create_task(self.stages.link(message)))
            self._tasks = [t for t in self._tasks if not t.done()]
        elif isinstance(message, Release):
            await self.stages.release(message.assignment)
        elif isinstance(message, ToHead):
            self._heads.hear(message)

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

    async def _update_by(self, delta: MembershipDelta) -> None:
        """Raises what is wrong with it; the next connection then asks for whole lists."""
        try:
            await self._update_membership(self.trust.advanced(delta))
        except (Malformed, BadSignature):
            self._telling.wants_whole_lists = True
            raise

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
            # What is loaded the hello has named, for the hub to use or to release.
            await self.stages.release_unready()
            await self._tell_earlier()
            self._measuring.greeted()
        else:
            self._connected.clear()
            await self._heads.drop()
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
