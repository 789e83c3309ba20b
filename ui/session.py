"""The desktop app's one connection to the agent: status in, wishes out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QLocale, QObject, QTimer, Signal

from fleetapp.errors import AgentNotRunning, FleetError
from fleetapp.types import (
    ChainView,
    Finding,
    FleetView,
    HardwareView,
    JoinCodeView,
    LocalStatus,
    ModelJob,
    ModelsView,
    SettingsView,
)
from ui.client import AgentClient, Call
from ui.coalesce import Coalescer
from ui.endpoint import process_alive, read_endpoint
from ui.keeper import DELAYS, AgentKeeper
from ui.stream import StatusStream
from ui.view import AgentView

JOIN_DEADLINE = 660.0
"""Seconds; the agent itself gives an admin's approval ten minutes."""
CREATE_DEADLINE = 60.0
HARDWARE_DEADLINE = 90.0
LIBRARY_DEADLINE = 30.0
START_DEADLINE = 60.0
QUIT_DEADLINE = 20.0
"""Seconds an agent has to finish what it holds; see ``quit_agent``."""


class CreatedFleet(msgspec.Struct, frozen=True):
    """Answer of ``/local/v1/fleet/create``."""

    fleet_id: str
    code: str


class AgentSession(QObject):
    """Keeps an AgentView up to date and carries out what a person asks for."""

    changed = Signal(object)
    """The new AgentView, at most 30 times a second."""
    agent_ended = Signal(bool)
    """After ``quit_agent``: whether the agent is gone."""

    def __init__(
        self,
        home: Path,
        agent_command: Sequence[str],
        parent: QObject | None = None,
        *,
        delays: Sequence[float] = DELAYS,
    ) -> None:
        super().__init__(parent)
        self.view = AgentView()
        self.client = AgentClient(home, self)
        self.keeper = AgentKeeper(home, agent_command, self, delays=delays)
        self._coalescer = Coalescer(self)
        self._coalescer.passed.connect(self.changed)
        self._stream = StatusStream(self.client, self)
        self._stream.received.connect(self._received)
        self._stream.lost.connect(self._lost)
        self.keeper.starting.connect(self._starting)
        self.keeper.gave_up.connect(self._gave_up)
        self._given_up: AgentNotRunning | None = None
        self._ending_pid = 0
        self._end_deadline = 0.0
        self._end_watch = QTimer(self, interval=100)
        self._end_watch.timeout.connect(self._look_whether_ended)

    def start(self) -> None:
        """Look for the agent; start one if there is none."""
        self._stream.connect_now()

    def stop(self) -> None:
        """Leave the agent alone and close the stream."""
        self._stream.stop()
        self._end_watch.stop()

    def start_agent(self) -> None:
        """A person asks for another try after the keeper gave up."""
        self._given_up = None
        self.keeper.start_anew()

    def restart_agent(self) -> Call:
        """The agent ends what it holds; the keeper misses it and starts it anew."""
        return self.client.post("/local/v1/quit", {}, None)

    def set_contribute(self, on: bool) -> Call:
        """Ask the agent to contribute or not; the next status tells the outcome."""
        return self.client.post("/local/v1/contribute", {"on": on}, None)

    def leave_fleet(self) -> Call:
        """Belong to the fleet no longer; coming back takes a new code."""
        return self.client.post("/local/v1/fleet/leave", {}, None, CREATE_DEADLINE)

    def join_fleet(self, code: str, hub_address: str = "") -> Call:
        """Succeeds when the fleet has accepted this PC, or noted it for approval."""
        body = {"code": code} | ({"hub_address": hub_address} if hub_address else {})
        return self.client.post("/local/v1/fleet/join", body, None, JOIN_DEADLINE)

    def stop_joining(self) -> Call:
        """Call an attempt to join off; the join then fails with Cancelled."""
        return self.client.post("/local/v1/fleet/join/stop", {}, None)

    def pause(self, length: str, *, finish_first: bool = False) -> Call:
        """Pause for ``30m``, ``1h``, ``4h``, until ``tomorrow``, or ``forever``."""
        body = {"length": length, "finish_first": finish_first}
        return self.client.post("/local/v1/pause", body, None)

    def resume(self) -> Call:
        """End the pause."""
        return self.client.post("/local/v1/resume", {}, None)

    def lend(self, device: str, on: bool) -> Call:
        """Lend a class of devices, or not."""
        return self.client.post("/local/v1/lend", {"device": device, "on": on}, None)

    def settings(self) -> Call:
        """Succeeds with a SettingsView in the language of this app."""
        language = QLocale().name().partition("_")[0]
        return self.client.get(f"/local/v1/settings?language={language}", SettingsView)

    def set_setting(self, name: str, value: bool | int | str) -> Call:
        """Succeeds when it is kept; ManagedByPolicy if it is not the user's to say."""
        return self.client.post("/local/v1/settings", {"name": name, "value": value}, None)

    def models(self) -> Call:
        """Succeeds with a ModelsView: library, catalogue and what is under way."""
        return self.client.get("/local/v1/models", ModelsView, LIBRARY_DEADLINE)

    def get_model(self, model: str) -> Call:
        """Succeeds with a ModelJob that has begun."""
        return self.client.post("/local/v1/models/get", {"model": model}, ModelJob)

    def import_model(self, path: str) -> Call:
        """The same for a file or folder of this PC."""
        body = {"path": path}
        return self.client.post("/local/v1/models/import", body, ModelJob, LIBRARY_DEADLINE)

    def cancel_job(self, job: str) -> Call:
        """End work on a model; what is there of a download is kept."""
        return self.client.post("/local/v1/models/cancel", {"job": job}, None)

    def start_model(self, model: str) -> Call:
        """Succeeds with a ChainView when there is a plan; only on the coordinator."""
        body = {"model": model}
        return self.client.post("/local/v1/models/start", body, ChainView, START_DEADLINE)

    def fleet_view(self) -> Call:
        """Succeeds with a FleetView."""
        return self.client.get("/local/v1/fleet", FleetView, 15.0)

    def hardware(self) -> Call:
        """Succeeds with a HardwareView; the first time a driver may need long."""
        return self.client.get("/local/v1/hardware", HardwareView, HARDWARE_DEADLINE)

    def checks(self, only: Sequence[str] = ()) -> Call:
        """Succeeds with a list of Finding."""
        path = f"/local/v1/checks?only={','.join(only)}" if only else "/local/v1/checks"
        return self.client.get(path, list[Finding], HARDWARE_DEADLINE)

    def create_fleet(self, name: str) -> Call:
        """Succeeds with CreatedFleet; this PC is the coordinator from then on."""
        return self.client.post(
            "/local/v1/fleet/create", {"name": name}, CreatedFleet, CREATE_DEADLINE
        )

    def make_code(self, hours: float, uses: int, *, approve: bool) -> Call:
        """Succeeds with a JoinCodeView that carries the code, this once."""
        body = {"hours": hours, "uses": uses, "approve": approve}
        return self.client.post("/local/v1/fleet/codes", body, JoinCodeView)

    def quit_agent(self) -> None:
        """End the agent; ``agent_ended`` follows within about QUIT_DEADLINE seconds."""
        self.keeper.abandon()
        try:
            self._ending_pid = read_endpoint(self.client.home).pid
        except AgentNotRunning:
            QTimer.singleShot(0, self, lambda: self.agent_ended.emit(True))
            return
        self._end_deadline = time.monotonic() + QUIT_DEADLINE
        # a refusal and a broken connection look the same from here: the process tells
        self.client.post("/local/v1/quit", {}, None)
        # a server that ends properly waits for whoever still listens
        self._stream.stop()
        self._end_watch.start()

    @property
    def ending_pid(self) -> int:
        """The agent process that ``quit_agent`` asked to end."""
        return self._ending_pid

    def _look_whether_ended(self) -> None:
        alive = process_alive(self._ending_pid)
        if not alive or time.monotonic() > self._end_deadline:
            self._end_watch.stop()
            self.agent_ended.emit(not alive)

    def _received(self, status: LocalStatus) -> None:
        self._given_up = None
        self.keeper.agent_seen()
        self._show(AgentView("connected", status))

    def _lost(self, error: FleetError) -> None:
        if not isinstance(error, AgentNotRunning):
            # something answers; a second agent would only fight it for the lock
            self._show(AgentView("refused", problem=error))
            return
        self.keeper.agent_missing()
        if self._given_up is not None:
            self._show(AgentView("stopped", problem=self._given_up))

    def _starting(self) -> None:
        self._show(AgentView("starting"))

    def _gave_up(self, why: str) -> None:
        self._given_up = AgentNotRunning(why, remedy=self.tr("Try again from the menu."))
        self._show(AgentView("stopped", problem=self._given_up))

    def _show(self, view: AgentView) -> None:
        if view != self.view:
            self.view = view
            self._coalescer.submit(view)
