"""Where scenes are set up: everything real, but for an agent that never says anything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEventLoop, QObject, QThread
from PySide6.QtWidgets import QApplication, QWidget

from fleetapp.errors import FleetError, from_code
from ui import agent_words
from ui.client import AgentClient, Call
from ui.desktop import Desktop
from ui.session import AgentSession

ROUNDS = 12
"""Looks at the event loop; timers of the windows wait for at most a few milliseconds."""


class StillClient(AgentClient):
    """Requests that are under way until the scene says how they end."""

    def __init__(self, home: Path, parent: QObject) -> None:
        super().__init__(home, parent)
        self._newest: Call | None = None

    def grant(self, value: object) -> None:
        """The newest request succeeds."""
        assert self._newest is not None
        self._newest.succeeded.emit(value)

    def refuse(self, error: FleetError) -> None:
        """The newest request fails, in the words of an agent."""
        assert self._newest is not None
        said = from_code(error.code, *map(agent_words.said, (error.message, error.remedy)))
        self._newest.failed.emit(said)

    def _call(
        self,
        path: str,  # noqa: ARG002 - nothing is asked
        body: bytes | None,  # noqa: ARG002
        result: type[Any] | None,
        deadline: float,
    ) -> Call:
        self._newest = Call(result, deadline, self)
        return self._newest


class Stage(QObject):
    """Keeps what a scene is made of until its picture is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="fleetapp-gallery-"))
        self.session = AgentSession(self.home, [])
        self.client = self.session.client = StillClient(self.home, self.session)
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
        for window in (self.desktop.dialog, self.desktop.question, self.desktop.window):
            if window is not None:
                window.hide()

    def close(self) -> None:
        """Give the files back."""
        for act in self._closings:
            act()
        shutil.rmtree(self.home, ignore_errors=True)


@dataclass(frozen=True)
class Scene:
    """One screen in one state."""

    name: str
    """Also the picture's; the part before the first dash is its group."""
    show: Callable[[Stage], QWidget]
    """Bring it onto the screen; returns the window to be drawn."""
