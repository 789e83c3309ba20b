"""A LocalAgent without a fleet behind it: it remembers what it was asked and says what it is told.

Same protocol, same errors as the real one, so the loopback API and the command line can be tested
over real sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import msgspec

from fleetapp.agent.preferences import READ_ONCE
from fleetapp.engine.pipe import RunnerStats, StepRecord, TraceView
from fleetapp.errors import BadJoinCode, FleetError, NotAMember, NotAModel, NotFound
from fleetapp.hub.keys import ApiKeyView
from fleetapp.hub.planner.fleet import plan_fleet
from fleetapp.hub.planner.inputs import Demand, Device, Model, Node, Wish
from fleetapp.hub.planner.plan import FleetPlan
from fleetapp.settings import Settings
from fleetapp.settings.store import known
from fleetapp.settings.view import setting_view, settings_view
from fleetapp.types import (
    AssignmentView,
    AuditCheck,
    AuditEntry,
    AutostartView,
    BundleView,
    ChainView,
    ContributionView,
    Decision,
    DeviceId,
    Finding,
    FleetView,
    Hardware,
    HardwareView,
    JoinCodeView,
    LayerRange,
    LocalStatus,
    ModelJob,
    ModelsView,
    NodeView,
    Precision,
    SearchView,
    SettingsView,
    SettingView,
)
from fleetapp.wire.frames import StageTiming
from tests.support.fake_models import model_job, recorded

CODE = "FLEET-ABCD-EFGH"


def fleet_view() -> FleetView:
    return FleetView(
        fleet_id="fleet1",
        name="Büro",
        nodes=(
            NodeView("dev1", "DESK-1", "coordinator", "online", True, "0.1.0",
                     Hardware(8, 16 * 2**30, 6 * 2**30, 10**11, devices=("CPU", "GPU")), 0.4),
            NodeView("dev2", "José 測試", "member", "offline", False, "0.1.0", None, 300.0),
            NodeView("new34", "DESK-9", "member", "pending", False),
            NodeView("new35", "DESK-9", "member", "pending", False),
            NodeView("dev9", "DESK-9", "member", "revoked", False, "0.1.0"),
        ),
        chains=(
            ChainView("c1", "tiny", "fast", 3, "live", "All stages are linked.",
                      plan="Fits on DESK-1 alone.", assignments=(
                AssignmentView("dev1", "DESK-1", "tiny", 0, 1, LayerRange(0, 30), "linked"),
            )),
        ),
    )  # fmt: skip


class FakePreferences:
    """Keeps nothing but what it was told last."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self.settings = Settings()

    async def view(self, language: str) -> SettingsView:
        self._note("settings", language)
        return settings_view(self.settings, (), language)

    async def change(self, name: str, value: bool | int | str, language: str = "en") -> SettingView:
        self._note("set", name, value, language)
        self.settings = replace(self.settings, **{name: known(name).accept(value)})
        return setting_view(self.settings, name, READ_ONCE, language)

    async def reset(self, name: str, language: str = "en") -> SettingView:
        self._note("reset", name, language)
        return setting_view(Settings(), name, (), language)


class FakeAutostart:
    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self.on = False

    async def view(self) -> AutostartView:
        self._note("autostart")
        return AutostartView(self.on, "somewhere")

    async def set(self, on: bool) -> AutostartView:
        self._note("set_autostart", on)
        self.on = on
        return AutostartView(on, "somewhere")


class FakeAgent:
    """Implements ``fleetapp.api.local.LocalAgent``."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.refuse: FleetError | None = None
        self.listeners = 0
        self.models_folder = ""
        self.found = SearchView(3, 1)
        self.hardware_found = HardwareView("A processor", 8, 2**34, 2**33, 2**33, 2**30, 2**36, 11)
        self.closed = asyncio.Event()
        self.changed = asyncio.Event()
        self.state = LocalStatus(
            version="0.1.0",
            device_id=DeviceId("dev1"),
            name="DESK-1",
            state="ready",
            reason="Ready; nothing to do.",
            contribute=False,
            fleet_id="fleet1",
            fleet_name="Büro",
            role="coordinator",
        )
        self._keys: dict[str, ApiKeyView] = {}
        self._preferences = FakePreferences(self._note)
        self._autostart = FakeAutostart(self._note)

    def _note(self, *what: Any) -> None:
        self.asked.append(what)
        if self.refuse is not None:
            raise self.refuse

    async def status(self) -> LocalStatus:
        self._note("status")
        return self.state

    async def search(self) -> SearchView:
        self._note("search")
        return self.found

    async def hardware(self) -> HardwareView:
        self._note("hardware")
        return self.hardware_found

    async def checks(self, only: tuple[str, ...]) -> tuple[Finding, ...]:
        self._note("checks", only)
        return (Finding("Clock", "ok", "2026-11-30 08:00 UTC.", key="clock"),)

    async def events(self) -> AsyncIterator[LocalStatus]:
        self._note("events")
        self.listeners += 1
        try:
            while True:
                yield self.state
                await self.changed.wait()
                self.changed.clear()
        finally:
            self.listeners -= 1
            self.closed.set()

    async def set_contribute(self, on: bool) -> None:
        self._note("contribute", on)
        self.state = msgspec.structs.replace(self.state, contribute=on)
        self.changed.set()

    async def lend(self, device: str, on: bool) -> None:
        self._note("lend", device, on)

    async def pause(self, length: str, finish_first: bool) -> None:
        self._note("pause", length, finish_first)
        self._say(ContributionView(reason="paused", sentence="Paused until 14:30.", paused=True))

    async def resume(self) -> None:
        self._note("resume")
        self._say(ContributionView(on=True, reason="contributing", sentence="Works again."))

    def _say(self, contribution: ContributionView) -> None:
        self.state = msgspec.structs.replace(self.state, contribution=contribution)
        self.changed.set()

    async def create_fleet(self, name: str) -> JoinCodeView:
        self._note("create", name)
        return JoinCodeView("id1", 1.7e9, 1.8e9, 10, approve=False, revoked=False, code=CODE)

    async def join(self, code: str, hub_address: str) -> LocalStatus:
        self._note("join", code, hub_address)
        if code.replace("-", "").replace(" ", "").upper() != CODE.replace("-", ""):
            raise BadJoinCode("This is not a join code.")
        return self.state

    async def stop_joining(self) -> None:
        self._note("stop_joining")

    async def leave(self) -> None:
        self._note("leave")

    async def fleet_view(self) -> FleetView:
        self._note("fleet")
        return fleet_view()

    async def fleet_events(self) -> AsyncIterator[FleetView]:
        self._note("fleet_events")
        yield fleet_view()
        raise NotAMember("This PC has left the fleet.")

    async def runners(self) -> list[RunnerStats]:
        self._note("runners")
        return []

    async def trace(self, model: str) -> TraceView:
        self._note("trace", model)
        stages = (StageTiming(120, 0, 300, 5), StageTiming(500, 20, 250, 9))
        step = StepRecord(1, 1, 100, 900, 3, ("r",), (4,), stages)
        return TraceView("tiny", ("anna", "ben"), (step,))

    @property
    def admin(self) -> FakeAgent:
        """Whoever asks this one is an admin."""
        return self

    @property
    def office(self) -> FakeAgent:
        return self

    @property
    def preferences(self) -> FakePreferences:
        return self._preferences

    @property
    def autostart(self) -> FakeAutostart:
        return self._autostart

    async def support_bundle(self, path: str) -> BundleView:
        self._note("bundle", path)
        return BundleView(path, 4711, ("README.txt",))

    async def export_recovery(self, passphrase: str) -> str:
        self._note("export", passphrase)
        return "fleetapp recovery file 1\n"

    async def use_recovery(self, text: str, passphrase: str, revoke_old: bool) -> None:
        self._note("use", text, passphrase, revoke_old)

    async def move_coordinator(self, device_id: str) -> None:
        self._note("move", device_id)

    async def set_role(self, device_id: str, role: str) -> None:
        self._note("role", device_id, role)

    async def rename_fleet(self, name: str) -> None:
        self._note("rename_fleet", name)

    async def rename(self, device_id: str, name: str) -> None:
        self._note("rename", device_id, name)

    async def audit(self, count: int) -> list[AuditEntry]:
        self._note("audit", count)
        return [AuditEntry(7, 1.7e9, "local", "revoked", {"name": "DESK-9\x1b[2J"})]

    async def verify_audit(self, noted: str) -> AuditCheck:
        self._note("verify_audit", noted)
        problems = ("Line 3 of audit.jsonl does not follow.",) if noted == "bad" else ()
        return AuditCheck(7, 1, 7, "ab" * 32, problems)

    async def plan(self, changes: tuple[str, ...]) -> FleetPlan:
        self._note("plan", *changes)
        nodes = (
            Node(DeviceId("dev1"), "DESK-1", (Device("CPU", 4 << 30),), coordinator=True),
            Node(DeviceId("dev2"), "José 測試", (Device("CPU", 4 << 30),)),
        )
        model = Model("tiny", (1 << 28,) * 20, 1 << 20, 1 << 20, 4096, 1024)
        return plan_fleet(nodes, [], [Wish(model, Demand(users=3, context=512))])

    async def decide(self, decision: Decision, device_id: str) -> None:
        self._note(decision, device_id)

    async def codes(self) -> list[JoinCodeView]:
        self._note("codes")
        return [JoinCodeView("id1", 1.7e9, 1.8e9, 10, approve=False, revoked=True)]

    async def make_code(self, hours: float, uses: int, approve: bool) -> JoinCodeView:
        self._note("make_code", hours, uses, approve)
        return JoinCodeView("id2", 1.7e9, 1.8e9, uses, approve=approve, revoked=False, code=CODE)

    async def revoke_code(self, code_id: str) -> None:
        self._note("revoke_code", code_id)
        if code_id != "id1":
            raise NotFound(f"There is no join code '{code_id}'.")

    async def keys(self) -> list[ApiKeyView]:
        self._note("keys")
        return list(self._keys.values())

    async def make_key(self, name: str, parallel: int, per_minute: int) -> ApiKeyView:
        self._note("make_key", name, parallel, per_minute)
        self._keys["k1"] = ApiKeyView("k1", name, 1.7e9)
        return ApiKeyView("k1", name, 1.7e9, "fleet-secret")

    async def revoke_key(self, key_id: str) -> None:
        self._note("revoke_key", key_id)
        del self._keys[key_id]

    @property
    def models(self) -> FakeModelCalls:
        return FakeModelCalls(self)

    async def start_model(
        self, model: str, precision: Precision | None, stages: int, draft: str
    ) -> ChainView:
        self._note("start", model, precision, stages, draft)
        return fleet_view().chains[0]

    async def stop_model(self, model: str) -> None:
        self._note("stop", model)

    async def quit(self) -> None:
        self._note("quit")


class FakeModelCalls:
    """Implements ``fleetapp.agent.modelcalls.ModelCalls``."""

    def __init__(self, agent: FakeAgent) -> None:
        self._agent, self._note = agent, agent._note

    async def view(self) -> ModelsView:
        self._note("models")
        view = recorded()["downloading"]
        return msgspec.structs.replace(view, folder=self._agent.models_folder or view.folder)

    async def events(self) -> AsyncIterator[ModelsView]:
        self._note("model_events")
        yield recorded()["downloading"]
        raise NotAModel("It is no model.")

    async def get(self, model: str, name: str, accept_licence: bool) -> ModelJob:
        self._note("get_model", model, name, accept_licence)
        return model_job()

    async def import_path(self, path: str, name: str) -> ModelJob:
        self._note("import", path, name)
        return model_job(kind="import")

    async def verify(self, model: str) -> ModelJob:
        self._note("verify_model", model)
        return model_job(kind="verify")

    async def cancel(self, job: str) -> ModelJob:
        self._note("cancel", job)
        return model_job(state="cancelled")

    async def remove(self, model: str) -> None:
        self._note("remove_model", model)
