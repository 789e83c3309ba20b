"""Whether the first run is wanted at this start."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSettings, Signal

from fleetapp.errors import FleetError
from fleetapp.types import SettingsView
from ui.firstrun.choices import STATE, load
from ui.session import AgentSession


class Begin(QObject):
    """Asks once. A PC that is in a fleet needs none; nor does one whose policy says so."""

    wanted = Signal()

    def __init__(self, session: AgentSession, settings: QSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        state = str(settings.value(STATE, ""))
        if state == "done":
            return
        half_done = state == "open" and load(settings).page == "work"
        if session.view.joined and not half_done:
            settings.setValue(STATE, "done")
            return
        session.settings().then(self._look, self._cannot)

    def _look(self, view: SettingsView) -> None:
        if any(s.name == "first_run" and s.value is False for s in view.settings):
            self._settings.setValue(STATE, "done")
        else:
            self.wanted.emit()

    def _cannot(self, _error: FleetError) -> None:
        self.wanted.emit()
