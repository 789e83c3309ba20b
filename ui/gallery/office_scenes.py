"""The fleet window, the settings and the first run in their states."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QWidget

from fleetapp.errors import DiskFull, NoHub
from fleetapp.types import LocalStatus
from ui.diagnostics import export_diagnostics
from ui.firstrun.window import FirstRunWindow
from ui.fleet.window import FleetWindow
from ui.gallery.agent import recorded
from ui.gallery.desk_scenes import tell
from ui.gallery.stage import Scene, Stage
from ui.gallery.states import CODE, connected, lonely, member, pc_states
from ui.session import CreatedFleet
from ui.settings.window import SettingsWindow

FLEET = "fleetfleetfleet"
SPAN = 290
"""Seconds in the charts."""
SECTIONS = (
    "app",
    "contributing",
    "power",
    "schedule",
    "limits",
    "devices",
    "fleet",
    "network",
    "coordinator",
    "computing",
)
TABS = ("pcs", "models", "plan", "codes", "keys", "audit")


def scenes() -> list[Scene]:
    """In the order of the contact sheet."""
    return [
        *(Scene(f"fleet-{name}", _tab(number)) for number, name in enumerate(TABS)),
        Scene("fleet-member", _member),
        Scene("fleet-stale", _stale),
        Scene("fleet-none", _no_fleet),
        Scene("fleet-waiting", _waiting),
        Scene("fleet-new-code", _new_code),
        Scene("dialog-evict", _evict),
        *(Scene(f"settings-{name}", _section(name)) for name in SECTIONS),
        Scene("settings-search", _search_settings("memory Speicher")),
        Scene("settings-nothing", _search_settings("xyzzy")),
        Scene("settings-diagnostics", _diagnostics),
        Scene("first-welcome", _page()),
        Scene("first-alone", _page("way")),
        Scene("first-join", _join),
        Scene("first-create", _create),
        Scene("first-pc", _pc),
        Scene("first-pc-trouble", _pc_trouble),
        Scene("first-limits", _page("way", "pc", "limits")),
        Scene("first-work", _work),
        Scene("first-failed", _failed),
        Scene("first-done", _done),
    ]


# the fleet


def _coordinator() -> LocalStatus:
    return member(name="DESK-01", role="coordinator", fleet_id=FLEET, state="contributing")


def _fleet(stage: Stage, status: LocalStatus) -> FleetWindow:
    tell(stage.desktop, connected(status))
    stage.desktop.show_fleet()
    window = stage.desktop.fleet
    assert window is not None
    stage.settle()
    _fill_charts(window)
    return window


def _fill_charts(window: FleetWindow) -> None:
    """Five minutes of work that swells and ebbs."""
    model = window.model
    if model.view is None:
        return
    for second in range(-SPAN, 1, 2):
        wave = math.sin(second / 23) * math.sin(second / 7)
        then = replace(
            model.pulse,
            tokens=model.pulse.tokens * (1 + 0.3 * wave),
            step=(model.pulse.step or 0.0) * (1 - 0.2 * wave),
            acceptance=0.6 + 0.1 * wave,
        )
        model.history.add(model.clock() + second, then)
    model.ticked.emit()


def _tab(number: int) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        window = _fleet(stage, _coordinator())
        window.tabs.setCurrentIndex(number)
        stage.settle()
        window.models.library.selectRow(0)
        return window

    return show


def _member(stage: Stage) -> QWidget:
    return _fleet(stage, member(fleet_id=FLEET))


def _stale(stage: Stage) -> QWidget:
    window = _fleet(stage, _coordinator())
    window.model._lost(NoHub("The coordinator is not reachable now."))
    return window


def _no_fleet(stage: Stage) -> QWidget:
    return _fleet(stage, lonely())


def _waiting(stage: Stage) -> QWidget:
    del stage.client.events["/local/v1/fleet/events"]
    return _fleet(stage, _coordinator())


def _new_code(stage: Stage) -> QWidget:
    window = _fleet(stage, _coordinator())
    window.tabs.setCurrentWidget(window.codes)
    stage.settle()
    made = recorded("codes")[1] | {"code": CODE}
    stage.client.answers["POST /local/v1/fleet/codes"] = made
    window.codes.button.click()
    return window


def _evict(stage: Stage) -> QWidget:
    window = _fleet(stage, _coordinator())
    nodes = [n for n in window.model.view.nodes if n.name == "DESK-02"]  # type: ignore[union-attr]
    window.nodes.give_to("evict", nodes)
    return next(w for w in window.findChildren(QWidget) if w.isWindow() and w.isVisible())


# the settings


def _settings(stage: Stage) -> SettingsWindow:
    tell(stage.desktop, pc_states()["ready"])
    stage.desktop.show_settings()
    window = stage.desktop.preferences
    assert window is not None
    stage.settle()
    return window


def _section(name: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        window = _settings(stage)
        window.show_section(name)
        return window

    return show


def _search_settings(words: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        window = _settings(stage)
        english, _, german = words.partition(" ")
        found = german if german and QLocale().language() == QLocale.Language.German else english
        window.search.setText(found)
        stage.settle(ms=20)
        return window

    return show


def _diagnostics(stage: Stage) -> QWidget:
    tell(stage.desktop, pc_states()["ready"])
    return export_diagnostics(stage.session, stage.desktop.window)


# the first run


def _first(stage: Stage) -> FirstRunWindow:
    tell(stage.desktop, connected(lonely()))
    stage.desktop.show_first_run()
    window = stage.desktop.first_run
    assert window is not None
    stage.settle()
    return window


def _page(*after: str) -> Callable[[Stage], FirstRunWindow]:
    """So many pages on."""

    def show(stage: Stage) -> FirstRunWindow:
        window = _first(stage)
        for _ in after:
            window.model.go_on()
            stage.settle()
        return window

    return show


def _join(stage: Stage) -> QWidget:
    window = _page("way")(stage)
    window.model.choose("join")
    window.model.say(code=CODE)
    return window


def _create(stage: Stage) -> QWidget:
    window = _page("way")(stage)
    window.model.choose("create")
    window.model.say(name="Office Lisbon")
    return window


def _pc(stage: Stage) -> QWidget:
    window = _page("way")(stage)
    window.model.choose("join")
    window.model.say(code=CODE)
    window.model.go_on()
    return window


def _pc_trouble(stage: Stage) -> QWidget:
    stage.client.answers["GET /local/v1/checks"] = recorded("checks_bad")
    return _pc(stage)


def _working(stage: Stage) -> FirstRunWindow:
    window = _page("way")(stage)
    window.model.choose("create")
    window.model.say(name="Office Lisbon")
    for _ in range(3):
        window.model.go_on()
        stage.settle()
    return window


def _work(stage: Stage) -> QWidget:
    return _working(stage)


def _failed(stage: Stage) -> QWidget:
    window = _working(stage)
    stage.client.refuse(DiskFull("There is no room left to write hub/state.json."))
    return window


def _done(stage: Stage) -> QWidget:
    window = _working(stage)
    tell(stage.desktop, connected(member(role="coordinator")))
    stage.client.grant(CreatedFleet(FLEET, CODE))
    return window
