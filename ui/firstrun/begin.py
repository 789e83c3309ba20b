"""Whether the first run is wanted at this start."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSettings, Signal

from fleetapp.errors import FleetError
from fleetapp.types import SettingsView
from ui.firstrun.choices import STATE, load
from ui.session import AgentSession
from ui.view import AgentView


class Begin(QObject):
    """Asks once. A PC that is in a fleet needs none; nor does one whose policy says so.

    One that is joining by itself, with a code that whoever deployed it has left, is not asked what
    it is for before that has ended without a fleet.
    """

    wanted = Signal()

    def __init__(self, session: AgentSession, settings: QSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        state = str(settings.value(STATE, ""))
        if state == "done":
            return
        half_done = state == "open" and load(settings).page == "work"
        if session.view.joined and not half_done:
            settings.setValue(STATE, "done")
        elif not state and _joining(session.view):
            session.changed.connect(self._wait)
        else:
            self._ask()

    def _wait(self, view: AgentView) -> None:
        if view.link != "connected" or _joining(view):
            return
        self._session.changed.disconnect(self._wait)
        if view.joined:
            self._settings.setValue(STATE, "done")
        else:
            self._ask()

    def _ask(self) -> None:
        self._session.settings().then(self._look, self._cannot)

    def _look(self, view: SettingsView) -> None:
        if any(s.name == "first_run" and s.value is False for s in view.settings):
            self._settings.setValue(STATE, "done")
        else:
            self.wanted.emit()

    def _cannot(self, _error: FleetError) -> None:
        self.wanted.emit()


def _joining(view: AgentView) -> bool:
    return view.status is not None and not view.joined and bool(view.status.joining)
