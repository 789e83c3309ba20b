"""The agent of one PC: identity, discovery, membership, and what tray and command line may ask.

Composition root below HTTP: it wires the parts and owns their lifetimes, and decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from importlib import metadata
from pathlib import Path
from typing import Literal

import aiohttp
import msgspec

from fleetapp import __version__
from fleetapp.agent import checks
from fleetapp.agent.admin import RemoteAdmin
from fleetapp.agent.autostart import Autostart
from fleetapp.agent.bell import Bell
from fleetapp.agent.bundle import write_bundle
from fleetapp.agent.cloned import CLONED, adopt, ask_for_identity
from fleetapp.agent.devices import Devices
from fleetapp.agent.guest import Guest, device_setting
from fleetapp.agent.hardware import hardware_view
from fleetapp.agent.infleet import InFleet
from fleetapp.agent.joining import APPROVAL, Address, Joined, join, read_reply, split_address
from fleetapp.agent.librarian import Librarian
from fleetapp.agent.office import Office
from fleetapp.agent.pc import PC, STATE, Servers, forget_hub
from fleetapp.agent.preferences import Preferences
from fleetapp.agent.wake import WakeWatch
from fleetapp.engine import pipe, probe
from fleetapp.errors import (
    AlreadyMember,
    BadRequest,
    Cancelled,
    ClonedIdentity,
    FleetError,
    NoHub,
    NotAMember,
    StorageError,
    UserError,
)
from fleetapp.fleet import joincode, keys
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.enrolment import FleetInfo, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import add, new, new_member, sign_membership
from fleetapp.hub import watch
from fleetapp.hub.admin import Admin, HubAdmin
from fleetapp.hub.hub import LEFT, Hub
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.hub.state import HubState, StateFile
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings, SettingsStore
from fleetapp.types import (
    BundleView,
    ChainView,
    Finding,
    FleetView,
    HardwareView,
    JoinCodeView,
    LocalStatus,
    Precision,
    SearchView,
)

log = logging.getLogger("fleetapp.agent")

DISCOVERY_DEADLINE = 10.0
FIND_HUB_DEADLINE = 15.0
JOIN_DEADLINE = 600.0
GREET_DEADLINE = 5.0
"""For the coordinator's greeting after joining; and before leaving, which it should hear of (s)."""
WATCH_SECONDS = 5.0
"""Between two looks at the status if nobody tells of a change."""
CODE_HOURS = 72.0
CODE_USES = 100


class Agent:
    """One per state folder. Implements what ``api.local`` offers on loopback.

    Args:
        paths: the state folder.
        platform: the operating system.
        servers: opens the coordinator's HTTP fronts.
    """

    def __init__(self, paths: Paths, platform: Platform, servers: Servers) -> None:
        self.preferences = Preferences(SettingsStore(paths, platform), self._settings_changed)
        self._identity = Identity.load_or_create(paths, platform)
        self._fleet_store = FleetStore(paths, self._identity, platform)
        self._discovery = Discovery(self._settings.interfaces())
        self._guest = Guest(
            paths,
            platform,
            lambda: self._settings,
            self._changed,
            Devices(lambda: self._settings.devices),
        )
        self._pc = PC(
            paths=paths,
            platform=platform,
            settings=lambda: self._settings,
            identity=self._identity,
            fleet_store=self._fleet_store,
            discovery=self._discovery,
            servers=servers,
            guest=self._guest,
            name=self._name,
            runtime=lambda: f"OpenVINO {metadata.version('openvino')}",
        )
        self._fleet: InFleet | None = None
        self._trouble: FleetError | None = None
        """Why this PC cannot act as the member that it is; leaving clears it."""
        self._busy = asyncio.Lock()
        self._wake: asyncio.Task[None] | None = None
        self._look_after_settings: asyncio.Task[None] | None = None
        self._becoming: asyncio.Task[None] | None = None
        self._fresh: Identity | None = None
        self._restarting = False
        self._waiting_for = ""
        self._joining: asyncio.Task[Joined] | None = None
        self._called_off: asyncio.Task[Joined] | None = None
        self.finished = asyncio.Event()
        """Set when somebody asked the agent to quit."""
        self._bell = Bell()
        self.models = Librarian(
            pc=lambda: self._pc,
            hub=lambda: self._fleet.hub if self._fleet is not None else None,
            over=self.finished.is_set,
        )
        self.office = Office(
            pc=lambda: self._pc,
            current=lambda: self._fleet,
            busy=self._busy,
            restart=self._restart,
        )
        self.autostart = Autostart(platform, paths.home)

    async def start(self) -> None:
        """Come up; a fleet joined before is entered again."""
        self._discovery.on_change(self._discovered)
        await self._guest.start()
        await self.models.start()
        await asyncio.to_thread(self._discovery.start, DISCOVERY_DEADLINE)
        self._wake = asyncio.create_task(WakeWatch(self._woke).run())
        self._look_after_settings = asyncio.create_task(self.preferences.watch())
        await self._enter()

    async def stop(self, reason: str = "shutting down") -> None:
        """Leave nothing running."""
        for task in (self._wake, self._becoming, self._look_after_settings):
            if task is not None:
                task.cancel()
        self.office.stop()
        await self.models.stop()
        if self._fleet is not None:
            await self._fleet.stop(reason)
            self._fleet = None
        await self._guest.stop()
        await asyncio.to_thread(self._discovery.stop)

    async def _enter(self, *, may_be_copy: bool = True) -> None:
        try:
            enrolment = await asyncio.to_thread(self._fleet_store.load)
        except StorageError as exc:
            # The agent must run all the same, or nobody could tell it to leave.
            log.error("%s", exc)  # noqa: TRY400 - the cause is in the sentence
            self._trouble = exc
            return
        if enrolment is None:
            return
        fleet = InFleet(self._pc, enrolment, self._changed)
        fleet.on_office = lambda bundle: self.office.offered(fleet, bundle)
        fleet.link.on_refusal = lambda why: self._refused(fleet, why)
        fleet.on_role = lambda: self.office.changed(fleet)
        await fleet.start(may_be_copy=may_be_copy)
        self.preferences.read_by_fleet(coordinator=fleet.hub is not None)
        self._fleet = fleet
        self._changed()

    def _refused(self, fleet: InFleet, why: FleetError) -> None:
        if isinstance(why, ClonedIdentity) and (self._becoming is None or self._becoming.done()):
            self._becoming = asyncio.create_task(self._become_another(fleet))

    async def _become_another(self, fleet: InFleet) -> None:
        """This PC's state is a copy of another one's (trap T18)."""
        async with self._busy:
            if self._fleet is not fleet:
                return
            # the same at each attempt: it may have been admitted, and the answer got lost
            fresh = self._fresh = self._fresh or Identity.fresh(self._pc.paths)
            try:
                reply = await ask_for_identity(fleet, fresh, await fleet.addresses())
            except FleetError as exc:
                log.warning("no identity of its own for this copy yet: %s", exc)
                return  # turned away again, it asks again

            def work() -> None:
                self._pc = adopt(self._pc, fleet, fresh, reply)
                self._identity, self._fleet_store = fresh, self._pc.fleet_store
                self._fresh = None

            await self._restart(CLONED, work)

    async def _restart(self, reason: str, between: Callable[[], object]) -> None:
        """End the membership, do blocking work, and enter again: in another role, say.

        Raises:
            FleetError: the work's; it is as before. Or the entering's; the status says so too.
        """
        fleet, self._fleet = self._fleet, None
        self._restarting = fleet is not None
        self._changed()
        try:
            if fleet is not None:
                await fleet.stop(reason)
            try:
                await asyncio.to_thread(between)
            finally:
                await self._enter_or_say()
        finally:
            self._restarting = False

    async def _enter_or_say(self) -> None:
        try:
            await self._enter(may_be_copy=False)
        except FleetError as exc:
            self._trouble = exc
            self._changed()
            raise

    def _name(self) -> str:
        if self._settings.node_name:
            return self._settings.node_name
        if self._settings.allow_host_name:
            return socket.gethostname()
        return f"PC-{self._identity.device_id[:6]}"

    def _discovered(self) -> None:
        """Called from discovery's thread."""
        fleet = self._fleet
        if fleet is not None and not fleet.connected:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(fleet.link.kick)

    def _woke(self) -> None:
        self._discovery.refresh()
        if self._fleet is not None:
            self._fleet.link.woke()

    @property
    def _settings(self) -> Settings:
        return self.preferences.now

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self._event_loop

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the loop that runs this agent, before ``start``."""
        self._event_loop = loop

    # ------------------------------------------------------------------ LocalAgent

    async def status(self) -> LocalStatus:
        """This PC in words."""
        state, reason = self._state()
        fleet = self._fleet
        member = fleet.member if fleet else None
        return LocalStatus(
            version=__version__,
            device_id=self._identity.device_id,
            name=self._name(),
            state=state,  # type: ignore[arg-type]
            reason=reason,
            contribute=self._settings.contribute,
            fleet_id=fleet.fleet_id if fleet else "",
            fleet_name=fleet.enrolment.info.name if fleet else "",
            role=member.role if member else "member",
            hub=fleet.link.address if fleet else "",
            api_url=f"http://{fleet.api.host}:{fleet.api.port}/v1" if fleet and fleet.api else "",
            assignments=fleet.stages.views() if fleet else (),
            warnings=(fleet.renewal.trouble,) if fleet and fleet.renewal.trouble else (),
            contribution=self._guest.view(),
            joining=self._joining_for(),
        )

    def _joining_for(self) -> Literal["", "looking", "approval"]:
        if self._joining is None:
            return ""
        return "approval" if self._waiting_for.startswith(APPROVAL) else "looking"

    def _state(self) -> tuple[str, str]:
        fleet = self._fleet
        if self._trouble is not None:
            return "attention", str(self._trouble)
        if self._restarting:
            return "connecting", "This PC is changing its role in the fleet."
        if fleet is None:
            return "not_joined", self._waiting_for or "This PC belongs to no fleet yet."
        if not fleet.connected:
            return "connecting", fleet.reason
        return self._state_of_work(fleet)

    def _state_of_work(self, fleet: InFleet) -> tuple[str, str]:
        views = fleet.stages.views()
        failed = next((v for v in views if v.phase == "failed"), None)
        if failed is not None:
            return "attention", failed.message
        decision = self._guest.decision
        if not decision.contribute or decision.draining:
            return ("contributing" if decision.draining else "ready"), decision.sentence
        if any(v.phase == "linked" for v in views):
            return "contributing", f"Holds layers {views[0].layers} of {views[0].model}."
        if views:
            return "preparing", f"{views[0].phase.capitalize()} {views[0].model}."
        return "ready", "Connected; waiting for work."

    async def search(self) -> SearchView:
        """What the search on the local network finds, and why not more."""
        found = self._discovery.found()
        why = await asyncio.to_thread(self._discovery.diagnose)
        return SearchView(
            peers=len(found),
            coordinators=sum(p.role == "coordinator" for p in found),
            why=why,
        )

    async def hardware(self) -> HardwareView:
        """What this PC has to compute with."""
        return await hardware_view(self._pc, self._guest.devices)

    async def checks(self, only: tuple[str, ...]) -> tuple[Finding, ...]:
        """What ``fleetapp doctor`` says, or what the checks of these names do."""
        status, search = await self.status(), await self.search()
        loop = asyncio.get_running_loop()

        def devices() -> probe.Probe:
            return asyncio.run_coroutine_threadsafe(self._guest.devices.report(), loop).result(
                probe.DEADLINE
            )

        subject = checks.Subject(
            self._pc.paths,
            self._settings,
            checks.KnownAgent(status, search),
            self._pc.platform,
            devices,
        )
        return await asyncio.to_thread(lambda: tuple(checks.examine(subject, only)))

    async def support_bundle(self, path: str) -> BundleView:
        """Write what somebody who helps needs to a zip file.

        Raises:
            BadRequest, StorageError: it cannot be written there.
        """
        facts = {
            "status": await self.status(),
            "hardware": await self.hardware(),
            "doctor": await self.checks(()),
        }
        return await asyncio.to_thread(
            write_bundle, Path(path), self._pc.paths, self._pc.platform, facts
        )

    async def events(self) -> AsyncIterator[LocalStatus]:
        """The status now and after every change."""
        async for _ in self._bell.ticks(self.finished.is_set, WATCH_SECONDS):
            yield await self.status()

    async def create_fleet(self, name: str) -> JoinCodeView:
        """Make this PC the coordinator of a new fleet.

        Raises:
            AlreadyMember: it belongs to one.
        """
        name = name.strip()
        if not name or len(name) > 64 or not name.isprintable():
            raise BadRequest("A fleet's name has 1 to 64 printable characters.")
        async with self._busy:
            self._refuse_if_member()
            try:
                await asyncio.to_thread(self._make_fleet, name)
                await self._enter(may_be_copy=False)
            except BaseException:
                # A port is taken, say: what cannot be run is not kept.
                await asyncio.to_thread(self._fleet_store.remove)
                await asyncio.to_thread(forget_hub, self._pc)
                raise
            self._hub().audit.write("local", "fleet_created", name=name)
            return await self.admin.make_code(CODE_HOURS, CODE_USES, approve=False)

    def _make_fleet(self, name: str) -> None:
        paths, identity = self._pc.paths, self._identity
        forget_hub(self._pc)  # what an earlier fleet left behind
        authority = Authority.create(paths, self._pc.platform)
        me = new_member(
            identity.public_key, self._name(), time.time(), ("coordinator", "admin", "member")
        )
        signed = sign_membership(add(new(authority.fleet_id, name), me), authority)
        StateFile(paths.hub / STATE, self._pc.platform).save(
            HubState(fleet_id=authority.fleet_id, name=name, created=time.time())
        )
        self._fleet_store.save(
            FleetInfo(authority.fleet_id, name, identity.device_id),
            authority.issue(identity.csr()),
            authority.certificate_pem,
            signed,
        )

    async def join(self, code: str, hub_address: str = "") -> LocalStatus:
        """Join by code; finds the coordinator by mDNS unless an address is given.

        Raises:
            AlreadyMember, BadJoinCode and its kinds, NoHub, WrongFleet.
        """
        parsed = joincode.decode(code)
        async with self._busy:
            self._refuse_if_member()
            self._joining = asyncio.create_task(self._ask_to_join(parsed, hub_address))
            try:
                joined = await self._joining
            except asyncio.CancelledError as exc:
                if self._called_off is self._joining:
                    raise Cancelled("Joining was called off.") from exc
                self._joining.cancel()
                raise
            finally:
                self._joining = self._called_off = None
                self._wait_note("")
            await asyncio.to_thread(
                self._fleet_store.save,
                joined.info,
                joined.leaf,
                joined.authority,
                joined.membership,
            )
            await self._enter()
            if self._fleet is not None:
                await self._fleet.wait_connected(GREET_DEADLINE)
        return await self.status()

    async def _ask_to_join(self, code: joincode.JoinCode, hub_address: str) -> Joined:
        try:
            addresses = await self._find(code, hub_address)
            return await join(
                self._identity, code, addresses, self._name(), self._wait_note, JOIN_DEADLINE
            )
        except TimeoutError as exc:
            raise NoHub(
                "Joining took too long.", remedy="Try again, or ask the admin to approve."
            ) from exc

    async def stop_joining(self) -> None:
        """Call an attempt to join off, if there is one. An admin's list may show this PC on."""
        if self._joining is not None:
            self._called_off = self._joining
            self._joining.cancel()

    async def _find(self, code: joincode.JoinCode, hub_address: str) -> list[Address]:
        configured = hub_address or self._settings.hub_address
        if configured:
            return [split_address(configured)]
        self._wait_note("Looking for the fleet on this network.")

        wanted = keys.fleet_id_of(code.spki_prefix.hex())

        def hubs() -> list[Address]:
            return [
                (address, peer.port)
                for peer in self._discovery.found()
                if peer.role == "coordinator" and peer.in_fleet(wanted)
                for address in peer.addresses
            ]

        await self._discovery.wait_for(lambda _: bool(hubs()), FIND_HUB_DEADLINE)
        found = hubs()
        if not found:
            others = any(p.role == "coordinator" for p in self._discovery.found())
            why = " ".join(self._discovery.diagnose())
            raise NoHub(
                "No coordinator of that fleet was found on this network"
                + (", only ones of other fleets. " if others else ". ")
                + why,
                remedy="Give its address: fleetapp fleet join CODE --hub HOST:PORT.",
            )
        return found

    async def leave(self) -> None:
        """Leave the fleet; a coordinator can only when nobody else is in it.

        Raises:
            NotAMember: this PC is in none.
            UserError: it coordinates others.
        """
        async with self._busy:
            if self._trouble is not None:
                await asyncio.to_thread(self._fleet_store.remove)
                self._trouble = None
                self._changed()
                return
            fleet = self._require()
            if fleet.hub is not None:
                membership = fleet.trust.membership
                members = membership.members.values() if membership else ()
                others = [
                    m
                    for m in members
                    if m.state == "active" and m.device_id != self._identity.device_id
                ]
                if others:
                    raise UserError(
                        f"This PC coordinates {len(others)} other PCs.",
                        remedy="Let them leave first (fleetapp fleet leave on each).",
                    )
            if not await fleet.wait_connected(GREET_DEADLINE):
                log.warning("left a fleet whose coordinator cannot hear it; it lists this PC on")
            await fleet.stop(LEFT)
            self._fleet = None
            await asyncio.to_thread(self._fleet_store.remove)
            if fleet.hub is not None:
                await asyncio.to_thread(forget_hub, self._pc)
        self._changed()

    async def fleet_view(self) -> FleetView:
        """The fleet as the hub sees it, from any member."""
        fleet = self._require()
        if fleet.hub is not None:
            return fleet.hub.view()
        try:
            async with asyncio.timeout(10), fleet.link.request("GET", "/fleet") as response:
                return msgspec.json.decode(await read_reply(response), type=FleetView)
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise NoHub(f"The coordinator did not answer: {exc}.") from exc

    async def fleet_events(self) -> AsyncIterator[FleetView]:
        """The fleet now and after every change."""
        fleet = self._require()

        def over() -> bool:
            return self._fleet is not fleet or self.finished.is_set()

        if fleet.hub is not None:
            async for view in watch.views(fleet.hub, over):
                yield view
            return
        async for seen in fleet.link.fleet_views():
            if over():
                return
            if seen is not None:
                yield seen

    async def runners(self) -> list[pipe.RunnerStats]:
        """Counters of this PC's runners, asked now."""
        return await self._require().stages.counters()

    async def trace(self, model: str) -> pipe.TraceView:
        """The most recent steps of a model's chain; empty takes the one there is."""
        hub = self._hub()
        model = model or next((m.model_id for m in hub.router.served()), "")
        steps = await hub.router.trace(model)
        return pipe.TraceView(model, hub.models.view(model).nodes, steps)

    async def plan(self, changes: tuple[str, ...]) -> FleetPlan:
        """What the planner would do now, or after some changes; only on the coordinator."""
        return await self._hub().models.plan_view(changes, self._settings.precision)

    @property
    def admin(self) -> Admin:
        """What admins may ask; off the coordinator it is asked whether this PC is one.

        Raises:
            NotAMember: this PC belongs to no fleet.
        """
        fleet = self._require()
        return HubAdmin(fleet.hub, "local") if fleet.hub is not None else RemoteAdmin(fleet.link)

    async def start_model(
        self,
        model: str,
        precision: Precision | None = None,
        stages: int = 0,
        draft: str = "auto",
    ) -> ChainView:
        """Serve a model from now on."""
        hub = self._hub()
        if not 0 <= stages <= 1000:
            raise BadRequest("The number of stages is 0 (automatic) or more.")
        self.models.require_settled(model)
        server = hub.models.serve(model, precision or self._settings.precision, stages, draft)
        return server.views()[0]

    async def stop_model(self, model: str) -> None:
        """Stop serving a model."""
        await self._hub().models.unserve(model)

    async def set_contribute(self, on: bool) -> None:
        """Give or take back the employee's consent; takes effect at once."""
        await self.preferences.change("contribute", on)

    async def lend(self, device: str, on: bool) -> None:
        """Lend a class of devices (CPU, GPU, NPU), or not; takes effect at once."""
        await self.preferences.change(device_setting(device), on)

    async def _settings_changed(self) -> None:
        """Act on settings that are not asked for at each use."""
        if self._fleet is not None and not self._fleet.connected:
            self._fleet.link.kick()  # there may be another address to try
        await self._guest.settings_changed()

    async def pause(self, length: str, finish_first: bool) -> None:
        """Pause for 30m, 1h, 4h, until tomorrow or for ever; see ``Guest.pause``."""
        await self._guest.pause(length, finish_first=finish_first)

    async def resume(self) -> None:
        """End the pause."""
        await self._guest.resume()

    async def quit(self) -> None:
        """Ask the process to end."""
        self.finish()

    def finish(self) -> None:
        """End soon; open event streams end first, so that nothing holds the process back."""
        self.finished.set()
        self._changed()
        self.models.ring()

    # ------------------------------------------------------------------ helpers

    @property
    def hub_link(self) -> InFleet | None:
        """The current membership, for the API proxy of this PC."""
        return self._fleet

    def _wait_note(self, sentence: str) -> None:
        self._waiting_for = sentence
        self._changed()

    def _refuse_if_member(self) -> None:
        if self._trouble is not None:
            raise self._trouble
        if self._fleet is not None:
            raise AlreadyMember(
                f"This PC already belongs to the fleet '{self._fleet.enrolment.info.name}'.",
                remedy="Leave it first with 'fleetapp fleet leave'.",
            )

    def _require(self) -> InFleet:
        if self._trouble is not None:
            raise self._trouble
        if self._fleet is None:
            raise NotAMember("This PC belongs to no fleet.")
        return self._fleet

    def _hub(self) -> Hub:
        hub = self._require().hub
        if hub is None:
            raise UserError(
                "This PC is not the coordinator of its fleet.",
                remedy="Do this on the coordinator.",
            )
        return hub

    def _changed(self) -> None:
        self._bell.ring()
