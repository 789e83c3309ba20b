"""The first run without its window: which page, what is known, what may come next."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, QSettings, Signal

from fleetapp.errors import FleetError
from fleetapp.types import (
    Finding,
    HardwareView,
    ModelsView,
    SettingsView,
    SettingView,
    code_problem,
)
from ui import agent_words
from ui.firstrun.choices import (
    PAGES,
    STATE,
    Page,
    Way,
    forget,
    keep,
    load,
)
from ui.firstrun.work import Work
from ui.session import AgentSession
from ui.view import AgentView

LIMITS = ("contribute", "contribute_when", "on_battery", "cpu_limit", "memory_limit_mb",
          "disk_limit_mb")  # fmt: skip
"""Settings on the page of limits, in this order."""
ALONE: dict[str, bool | int | str] = {
    "contribute": True,
    "contribute_when": "always",
    "on_battery": True,
    "cpu_limit": 100,
}
"""For a PC on its own: it has to answer whenever its user asks, so also while it is in use."""
CHECKS = ("discovery", "inbound", "clock", "vpn")


class FirstRun(QObject):
    """Nothing is done before the last page; leaving before that changes nothing."""

    changed = Signal()
    finished = Signal()
    """All is done."""
    declined = Signal(str)
    """An administrator has said no; the sentence."""

    def __init__(
        self, session: AgentSession, settings: QSettings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.session = session
        self.choices = load(settings)
        self.hardware: HardwareView | None = None
        self.findings: tuple[Finding, ...] | None = None
        self.limits: tuple[SettingView, ...] = ()
        self.models: ModelsView | None = None
        self.hardware_problem: FleetError | None = None
        self.checks_problem: FleetError | None = None
        self.work: Work | None = None
        self.code_problem = ""
        """What is wrong with the join code as it was typed, once somebody wants to go on."""
        self._kept = settings
        self._left = False
        settings.setValue(STATE, "open")
        session.changed.connect(self._view_changed)
        self.look()

    # ------------------------------------------------------------------ where we are

    @property
    def page(self) -> Page:
        return self.choices.page

    @property
    def number(self) -> int:
        """Of the page, from one."""
        return PAGES.index(self.page) + 1

    @property
    def may_go_on(self) -> bool:
        """Whether enough has been said on this page."""
        if self.page != "way":
            # without the settings nobody knows what would have to be changed
            known = bool(self.limits) or self.page != "limits"
            return known and self.session.view.link == "connected"
        match self.choices.way:
            case "join":
                return bool(self.choices.code.strip())
            case "create":
                return bool(self.choices.name.strip())
            case "alone":
                return True

    @property
    def may_go_back(self) -> bool:
        """Not past what has been done."""
        if self.page == "welcome":
            return False
        return self.work is None or (self.work.running is None and not self.work.over)

    def go_on(self) -> None:
        """The next page; from the last but one the work begins."""
        if not self.may_go_on or self.page == "work":
            return
        if self.page == "way" and self.choices.way == "join":
            self.code_problem = agent_words.said(code_problem(self.choices.code))
            if self.code_problem:
                self.changed.emit()
                return
        after = PAGES[PAGES.index(self.page) + 1]
        self._change(page=after)
        if after == "pc":
            self.look_at_connection()
        elif after == "work":
            self._begin_work()

    def go_back(self) -> None:
        """The page before."""
        if self.may_go_back:
            self._drop_work()
            self._change(page=PAGES[PAGES.index(self.page) - 1])

    # ------------------------------------------------------------------ what is said

    def choose(self, way: Way) -> None:
        """What this PC is for."""
        if way != self.choices.way:
            self.code_problem = ""
            self._change(way=way, values={})

    def say(self, **texts: str) -> None:
        """Name, code, address or file."""
        if "code" in texts:
            self.code_problem = ""
        self._change(**texts)

    def set_limit(self, name: str, value: bool | int | str) -> None:
        """Another value of one of the settings; kept when the work begins."""
        self._change(values=self.choices.values | {name: value})

    def value(self, setting: SettingView) -> bool | int | str:
        """What a setting will be."""
        if setting.locked:
            return setting.value
        proposed = ALONE.get(setting.name, setting.value) if self.alone else setting.value
        return self.choices.values.get(setting.name, proposed)

    @property
    def alone(self) -> bool:
        return self.choices.way == "alone"

    @property
    def wishes(self) -> dict[str, bool | int | str]:
        """Settings that have to be changed for it."""
        return {s.name: self.value(s) for s in self.limits if self.value(s) != s.value}

    @property
    def hindrance(self) -> SettingView | None:
        """What this PC alone could not answer with: contributing, if it is off."""
        if not self.alone:
            return None
        consent = next((s for s in self.limits if s.name == "contribute"), None)
        return consent if consent is not None and not self.value(consent) else None

    # ------------------------------------------------------------------ what is known

    def look(self) -> None:
        """Ask the agent for everything the pages show."""
        if self.session.view.link != "connected":
            return
        self.session.settings().then(self._settings_seen, lambda _: None)
        self.session.models().then(self._models_seen, lambda _: None)
        self.hardware_problem = None
        self.session.hardware().then(self._hardware_seen, self._no_hardware)
        if self.page == "pc":
            self.look_at_connection()

    def look_at_connection(self) -> None:
        """Check the way to other PCs, again if it was checked before."""
        self.findings, self.checks_problem = None, None
        self.changed.emit()
        self.session.checks(CHECKS).then(self._checked, self._not_checked)

    @property
    def begun(self) -> bool:
        """Whether something has been done that is not finished: it is gone on with later."""
        return self.work is not None and not self.work.over

    def leave(self) -> None:
        """Somebody closes the window; it comes back by itself only if it is half done."""
        if self._left:
            return
        self._left = True
        begun = self.begun
        self.session.changed.disconnect(self._view_changed)  # what is left does nothing more
        self._drop_work()
        if self._kept.value(STATE) != "done" and not begun:
            keep(self._kept, self.choices)
            self._kept.setValue(STATE, "done")

    # ------------------------------------------------------------------ within

    def _change(self, **changes: object) -> None:
        self.choices = msgspec.structs.replace(self.choices, **changes)
        self._keep()
        self.changed.emit()

    def _keep(self) -> None:
        # the code survives a restart only where an administrator has to say yes as well
        waits = self.work is not None and self.work.awaits_approval
        keep(self._kept, self.choices, code=waits)

    def _begin_work(self) -> None:
        if self.choices.way == "join" and not self.choices.code:
            self._change(page="way")
            return
        if self.session.view.link != "connected" or not self.limits:
            return  # begun when the agent has answered
        choices = msgspec.structs.replace(self.choices, values=self.wishes)
        self.work = Work(self.session, choices, self)
        self.work.changed.connect(self._work_changed)
        self.work.finished.connect(self._finished)
        self.work.declined.connect(self.declined)
        self.work.begin()
        self.changed.emit()

    def _drop_work(self) -> None:
        if self.work is not None:
            self.work.cancel()
            self.work.deleteLater()
            self.work = None

    def _work_changed(self) -> None:
        if self.work is not None and self.work.choices.file != self.choices.file:
            self.choices = msgspec.structs.replace(self.choices, file=self.work.choices.file)
        self._keep()
        self.changed.emit()

    def _finished(self) -> None:
        forget(self._kept)
        self.finished.emit()
        self.changed.emit()

    def _view_changed(self, view: AgentView) -> None:
        if view.link == "connected" and not self.limits:
            self.look()
        self.changed.emit()

    def _settings_seen(self, found: SettingsView) -> None:
        by_name = {s.name: s for s in found.settings}
        self.limits = tuple(by_name[n] for n in LIMITS if n in by_name)
        address = by_name.get("hub_address")
        if address is not None and address.value and not self.choices.address:
            self.choices = msgspec.structs.replace(self.choices, address=str(address.value))
        if self.page == "work" and self.work is None:
            self._begin_work()
        self.changed.emit()

    def _models_seen(self, found: ModelsView) -> None:
        self.models = found
        self.changed.emit()

    def _hardware_seen(self, found: HardwareView) -> None:
        self.hardware = found
        self.changed.emit()

    def _no_hardware(self, error: FleetError) -> None:
        self.hardware_problem = error
        self.changed.emit()

    def _checked(self, found: list[Finding]) -> None:
        self.findings = tuple(found)
        self.changed.emit()

    def _not_checked(self, error: FleetError) -> None:
        self.checks_problem = error
        self.changed.emit()
