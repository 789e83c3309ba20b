"""Where scenes are set up: everything real, but for an agent that never says anything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEventLoop, QLocale, QObject, QThread
from PySide6.QtWidgets import QApplication, QWidget

from ui.desktop import Desktop
from ui.firstrun.choices import STATE
from ui.gallery.agent import StillClient, recorded
from ui.preferences import preferences_of
from ui.session import AgentSession

ROUNDS = 12
"""Looks at the event loop; timers of the windows wait for at most a few milliseconds."""


class Stage(QObject):
    """Keeps what a scene is made of until its picture is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="fleetapp-gallery-"))
        self.session = AgentSession(self.home, [])
        self.client = self.session.client = StillClient(self.home, self.session)
        self.client.answers = {
            "GET /local/v1/hardware": recorded("hardware"),
            "GET /local/v1/checks": recorded("checks"),
            "GET /local/v1/settings": recorded(f"settings_{_language()}"),
            "GET /local/v1/autostart": {"on": True, "where": "fleetapp.desktop"},
            "GET /local/v1/models": recorded("models_empty"),
            "GET /local/v1/fleet/codes": recorded("codes"),
            "GET /local/v1/fleet/audit": recorded("audit"),
            "POST /local/v1/fleet/plan": recorded("plan"),
            "GET /local/v1/keys": [],
        }
        self.client.events = {
            "/local/v1/fleet/events": recorded("fleet"),
            "/local/v1/models/events": recorded("models"),
        }
        preferences_of(self.home).setValue(STATE, "done")
        self.desktop = Desktop(self.session, self.home, self)
        self._ends: list[Callable[[], object]] = []
        self._closings: list[Callable[[], object]] = []
        self._kept: list[QWidget] = []

    def at_the_end(self, act: Callable[[], object]) -> None:
        """Do this when the picture has been taken."""
        self._ends.append(act)

    def keep(self, window: QWidget, close: Callable[[], object] = lambda: None) -> None:
        """Hold a window; ``close`` gives back what it uses when all pictures have been taken."""
        self._kept.append(window)
        self._closings.append(close)

    def settle(self, ms: int = 2) -> None:
        """Let what was begun with short timers come to its end."""
        for _ in range(ROUNDS):
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents)
            QThread.msleep(ms)

    def clear(self) -> None:
        """Take everything off the screen. It lives on until the process ends: Qt and Python do not
        agree on who deletes a whole desktop app, for in earnest nobody ever does.
        """
        for act in reversed(self._ends):
            act()
        desktop = self.desktop
        for window in (
            desktop.dialog,
            desktop.question,
            desktop.window,
            desktop.fleet,
            desktop.preferences,
            desktop.first_run,
        ):
            if window is not None:
                window.hide()

    def close(self) -> None:
        """Give the files back."""
        for act in self._closings:
            act()
        shutil.rmtree(self.home, ignore_errors=True)


def _language() -> str:
    return "de" if QLocale().language() == QLocale.Language.German else "en"


@dataclass(frozen=True)
class Scene:
    """One screen in one state."""

    name: str
    """Also the picture's; the part before the first dash is its group."""
    show: Callable[[Stage], QWidget]
    """Bring it onto the screen; returns the window to be drawn."""
