"""The agent of one PC: identity, discovery, membership, and what tray and command line may ask.

Composition root below HTTP: it wires the parts and owns their lifetimes, and decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from importlib import metadata
from pathlib import Path

import aiohttp
import msgspec

from fleetapp import __version__
from fleetapp.agent import checks
from fleetapp.agent.admin import RemoteAdmin
from fleetapp.agent.autostart import Autostart
from fleetapp.agent.bell import Bell
from fleetapp.agent.belonging import Belonging
from fleetapp.agent.bundle import write_bundle
from fleetapp.agent.devices import Devices
from fleetapp.agent.guest import Guest, device_setting
from fleetapp.agent.hardware import hardware_view
from fleetapp.agent.hublink import removed
from fleetapp.agent.infleet import InFleet
from fleetapp.agent.joining import read_reply
from fleetapp.agent.librarian import Librarian
from fleetapp.agent.office import Office
from fleetapp.agent.pc import PC, Servers
from fleetapp.agent.preferences import Preferences
from fleetapp.agent.wake import WakeWatch
from fleetapp.engine import pipe, probe
from fleetapp.errors import (
    BadRequest,
    NoHub,
    NotAMember,
    PortTaken,
)
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.hub import watch
from fleetapp.hub.admin import Admin, HubAdmin
from fleetapp.hub.planner.plan import FleetPlan
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
DECIDE_SECONDS = 3.0
"""How long whoever has a model served waits to hear of the plan."""
WATCH_SECONDS = 5.0
"""Between two looks at the status if nobody tells of a change."""


class Agent:
    """One per state folder. Implements what ``api.local`` offers on loopback.

    Args:
        paths: the state folder.
        platform: the operating system.
        servers: opens the coordinator's HTTP fronts.
    """

    def __init__(self, paths: Paths, platform: Platform, servers: Servers) -> None:
        self.preferences = Preferences(SettingsStore(paths, platform), self._settings_changed)
        identity = Identity.load_or_create(paths, platform)
        self._discovery = Discovery(self._settings.interfaces())
        self._guest = Guest(
            paths,
            platform,
            lambda: self._settings,
            self._changed,
            Devices(lambda: self._settings.devices),
        )
        pc = PC(
            paths=paths,
            platform=platform,
            settings=lambda: self._settings,
            identity=identity,
            fleet_store=FleetStore(paths, identity, platform),
            discovery=self._discovery,
            servers=servers,
            guest=self._guest,
            name=self._name,
            runtime=lambda: f"OpenVINO {metadata.version('openvino')}",
        )
        self._wake: asyncio.Task[None] | None = None
        self._look_after_settings: asyncio.Task[None] | None = None
        self.finished = asyncio.Event()
        """Set when somebody asked the agent to quit."""
        self._bell = Bell()
        self._belonging = Belonging(pc, self._changed, self._entered)
        self.models = Librarian(
            pc=lambda: self._pc,
            hub=lambda: self._fleet.hub if self._fleet is not None else None,
            over=self.finished.is_set,
        )
        self.autostart = Autostart(platform, paths.home)
        self.has_a_code: Callable[[], bool] = lambda: False
        """Whether a code that this PC was deployed with is being tried."""

    async def start(self) -> None:
        """Come up; a fleet joined before is entered again."""
        self._discovery.on_change(self._discovered)
        await self._guest.start()
        await self.models.start()
        await asyncio.to_thread(self._discovery.start, DISCOVERY_DEADLINE)
        self._wake = asyncio.create_task(WakeWatch(self._woke).run())
        self._look_after_settings = asyncio.create_task(self.preferences.watch())
        with contextlib.suppress(PortTaken):  # the agent runs on, says so, and tries again
            await self._belonging.enter(may_be_copy=True)

    async def stop(self, reason: str = "shutting down") -> None:
        """Leave nothing running."""
        for task in (self._wake, self._look_after_settings):
            if task is not None:
                task.cancel()
        await self.models.stop()
        await self._belonging.stop(reason)
        await self._guest.stop()
        await asyncio.to_thread(self._discovery.stop)

    def _name(self) -> str:
        if self._settings.node_name:
            return self._settings.node_name
        if self._settings.allow_host_name:
            return socket.gethostname()
        return f"PC-{self._pc.identity.device_id[:6]}"

    @property
    def _pc(self) -> PC:
        return self._belonging.pc

    @property
    def _fleet(self) -> InFleet | None:
        return self._belonging.fleet

    @property
    def office(self) -> Office:
        """The coordinator's office of this PC."""
        return self._belonging.office

    def _entered(self, fleet: InFleet) -> None:
        self.preferences.read_by_fleet(coordinator=fleet.hub is not None)

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
        fleet, known = self._fleet, self._belonging.known
        member = known.member if known else None
        return LocalStatus(
            version=__version__,
            device_id=self._pc.identity.device_id,
            name=self._name(),
            state=state,  # type: ignore[arg-type]
            reason=reason,
            contribute=self._settings.contribute,
            fleet_id=known.fleet_id if known else "",
            fleet_name=known.name if known else "",
            role=member.role if member else "member",
            hub=fleet.link.address if fleet else "",
            api_url=f"http://{fleet.api.host}:{fleet.api.port}/v1" if fleet and fleet.api else "",
            assignments=fleet.stages.views() if fleet else (),
            warnings=(fleet.renewal.trouble,) if fleet and fleet.renewal.trouble else (),
            contribution=self._guest.view(),
            removed=fleet is not None and not fleet.connected and fleet.link.removed,
            joining=self._belonging.joining_for
            or ("looking" if fleet is None and self.has_a_code() else ""),
        )

    def _state(self) -> tuple[str, str]:
        fleet = self._fleet
        if self._belonging.trouble is not None:
            return "attention", str(self._belonging.trouble)
        if self._belonging.restarting:
            return "connecting", "This PC is changing its role in the fleet."
        if fleet is None:
            said = self._belonging.waiting_for or self._belonging.turned_away
            return "not_joined", said or "This PC belongs to no fleet yet."
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
        loading = next((v for v in views if v.phase != "ready"), None)
        if loading is not None:
            return "preparing", f"{loading.phase.capitalize()} {loading.model}."
        if views:
            held = views[0]
            return "ready", f"Holds layers {held.layers} of {held.model} ready for the fleet."
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
        """Make this PC the coordinator of a new fleet; see ``Belonging.create``."""
        return await self._belonging.create(name)

    async def join(self, code: str, hub_address: str = "") -> LocalStatus:
        """Join by code; see ``Belonging.join``."""
        await self._belonging.join(code, hub_address)
        return await self.status()

    async def stop_joining(self) -> None:
        """Call an attempt to join off, if there is one."""
        await self._belonging.stop_joining()

    async def leave(self) -> None:
        """Leave the fleet; see ``Belonging.leave``."""
        await self._belonging.leave()

    async def fleet_view(self) -> FleetView:
        """The fleet as the hub sees it, from any member."""
        fleet = self._belonging.require()
        if fleet.hub is not None:
            return fleet.hub.view()
        try:
            async with asyncio.timeout(10), fleet.link.request("GET", "/fleet") as response:
                return msgspec.json.decode(await read_reply(response), type=FleetView)
        except NotAMember as exc:
            raise removed() from exc
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            if fleet.link.removed:
                raise removed() from exc
            raise NoHub(f"The coordinator did not answer: {exc}.") from exc

    async def fleet_events(self) -> AsyncIterator[FleetView]:
        """The fleet now and after every change."""
        fleet = self._belonging.require()

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
        return await self._belonging.require().stages.counters()

    async def trace(self, model: str) -> pipe.TraceView:
        """The most recent steps of a model's chain; empty takes the one there is."""
        hub = self._belonging.coordinating()
        model = model or next((m.model_id for m in hub.router.served()), "")
        steps = await hub.router.trace(model)
        return pipe.TraceView(model, hub.models.view(model).nodes, steps)

    async def plan(self, changes: tuple[str, ...]) -> FleetPlan:
        """What the planner would do now, or after some changes; only on the coordinator."""
        return await self._belonging.coordinating().models.plan_view(
            changes, self._settings.precision
        )

    @property
    def admin(self) -> Admin:
        """What admins may ask; off the coordinator it is asked whether this PC is one.

        Raises:
            NotAMember: this PC belongs to no fleet.
        """
        fleet = self._belonging.require()
        return HubAdmin(fleet.hub, "local") if fleet.hub is not None else RemoteAdmin(fleet.link)

    async def start_model(
        self,
        model: str,
        precision: Precision | None = None,
        stages: int = 0,
        draft: str = "auto",
    ) -> ChainView:
        """Serve a model from now on."""
        hub = self._belonging.coordinating()
        if not 0 <= stages <= 1000:
            raise BadRequest("The number of stages is 0 (automatic) or more.")
        self.models.require_settled(model)
        hub.models.require_enough(model, stages)
        server = hub.models.serve(model, precision or self._settings.precision, stages, draft)
        await server.wait_decided(DECIDE_SECONDS)
        return server.views()[0]

    async def stop_model(self, model: str) -> None:
        """Stop serving a model."""
        await self._belonging.coordinating().models.unserve(model)

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

    def _changed(self) -> None:
        self._bell.ring()
