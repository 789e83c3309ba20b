"""Everything that exists only while this PC belongs to a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fleetapp import __version__
from fleetapp.agent.hublink import HubLink
from fleetapp.agent.joining import Address, ask_for_leaf, proof_of_key, split_address
from fleetapp.agent.profiling import Measuring, MeteredSource, ProfileFile
from fleetapp.agent.renewal import Renewal
from fleetapp.agent.stages import Outgoing, RunnerSetup, StageHost
from fleetapp.errors import BadSignature, FleetError, NotAMember, StorageError
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import (
    Assign,
    FromHub,
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
from fleetapp.fleet.keys import verify
from fleetapp.fleet.membership import Member
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.audit import AuditLog
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
from fleetapp.types import PROTOCOL_VERSION, FleetId, Hardware
from fleetapp.wire.meter import Meter

log = logging.getLogger("fleetapp.agent.infleet")

RELEASE_AFTER = 10.0
"""Runners are kept this long after the hub was lost, in case it comes back (s)."""
KV_SHARE = 0.25
KV_MAX = 2 * 2**30
KV_MIN = 64 * 2**20
STATE, CODES, KEYS = "state.json", "codes.json", "keys.json"
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
    for name in (STATE, CODES, KEYS):
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
        self.link = HubLink(
            credentials=enrolment.credentials,
            trust=self.trust,
            addresses=self._addresses,
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
        self._gate: Gatekeeper | None = None
        self._store = ShardStore(pc.paths.shards)
        self._meter = Meter()
        self.stages = StageHost(
            store=self._store,
            source=MeteredSource(self.link, self._meter, self._hub_device),
            setup=self._setup,
            made_here=lambda name: self.hub.shard_folder(name) if self.hub else None,
            verify=self._verify,
            trusted=self.trust.allows,
            report=self._report,
            changed=changed,
        )
        self._measuring = Measuring(
            remembered=ProfileFile(pc.paths.home / "profiles.json"),
            stages=self.stages.linked,
            downloads=self._meter.estimates,
            send=self.link.send,
            allowed=lambda: self.pc.settings().contribute and self.connected,
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
    def member(self) -> Member | None:
        """This PC in the signed membership; None if it is not in there any more."""
        membership = self.trust.membership
        return membership.members.get(self.pc.identity.device_id) if membership else None

    @property
    def fleet_id(self) -> FleetId:
        """Of the fleet."""
        return self.enrolment.info.fleet_id

    async def start(self) -> None:
        """Open servers (coordinator), announce, connect."""
        if self.is_coordinator:
            await self._start_hub()
        self._announce()
        self._tasks.append(asyncio.create_task(self.link.run()))
        self._tasks.append(asyncio.create_task(self._counters()))
        self._tasks.append(asyncio.create_task(self.renewal.run()))
        self._tasks.append(asyncio.create_task(self._measuring.run()))

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
        hub = Hub(
            identity=pc.identity,
            authority=authority,
            trust=self.trust,
            state=state,
            codes=CodeBook(pc.paths.hub / CODES, authority.spki, pc.platform),
            keys=KeyBook(pc.paths.hub / KEYS, pc.platform),
            audit=AuditLog(pc.paths.hub / "audit.jsonl"),
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

    async def _addresses(self) -> list[Address]:
        if self._control is not None:
            return [("127.0.0.1", self._control.port)]
        found: list[Address] = []
        configured = self.pc.settings().hub_address
        if configured:
            found.append(split_address(configured))
        for peer in self.pc.discovery.found():
            if peer.role == "coordinator" and peer.in_fleet(self.fleet_id):
                found += [(address, peer.port) for address in peer.addresses]
        found += [split_address(a) for a in self.enrolment.info.hub_addresses]
        return list(dict.fromkeys(found))

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

    def _hub_device(self) -> str:
        """Of the coordinator that shards are fetched from; empty if that is not clear."""
        coordinators = self.trust.coordinators()
        return coordinators[0].device_id if len(coordinators) == 1 else ""

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
            if signed is None:
                continue
            member = self.trust.require(signed.signer)
            if "coordinator" not in member.roles:
                raise BadSignature(
                    f"{member.name} signed the shard, but only a coordinator may.",
                    remedy="Ask the admin; nothing was loaded.",
                )
            verify(signed.payload, signed.signature, signed.signer, member.public_key)

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
            await self._addresses(),
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
            await self._update_membership(message.membership)
        elif isinstance(message, Assign):
            await self.stages.assign(message)
        elif isinstance(message, LinkStage):
            self._tasks.append(asyncio.create_task(self.stages.link(message)))
            self._tasks = [t for t in self._tasks if not t.done()]
        elif isinstance(message, Release):
            await self.stages.release(message.assignment)

    async def _update_membership(self, signed: Signed) -> None:
        if self.trust.update(signed):
            self._keep_membership(signed)
        if not self.trust.allows(self.pc.identity.spki):
            await self.stages.release_all()
        self.trust.require(self.pc.identity.spki)
        await self.stages.leave_strangers()

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
            self._measuring.greeted()
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
