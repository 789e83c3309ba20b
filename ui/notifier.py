"""What is worth a message beside the tray icon. Sparing: nobody asked to be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QSettings, Signal

from ui import words
from ui.preferences import notifications_wanted
from ui.view import AgentView

CLOSED_TO_TRAY = "window/closed_to_tray_notice"
"""Set once the notice has been given."""
QUIET = 600.0
"""Seconds in which the same thing is not said again."""


class Notifier(QObject):
    """Says when this PC needs somebody, was let into a fleet or not, or has lost its agent.

    Args:
        settings: the app's own.
        clock: monotonic seconds.
    """

    said = Signal(str, str)
    """Title and text."""

    def __init__(
        self,
        settings: QSettings,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._clock = clock
        self._before = AgentView()
        self._waited = False
        self._last: dict[str, float] = {}

    @property
    def on(self) -> bool:
        return notifications_wanted(self._settings)

    def show_view(self, view: AgentView) -> None:
        """Say what has changed for somebody."""
        before, self._before = self._before, view
        if view.status is not None and view.status.joining == "approval":
            self._waited = True
        if view.icon == "attention" and before.icon != "attention":
            self._say(self.tr("This PC needs attention"), words.reason(view))
        elif view.link == "stopped" and before.link != "stopped":
            self._say(self.tr("The agent has ended"), words.reason(view))
        elif self._waited and view.joined and view.status is not None:
            self._waited = False
            self._say(
                self.tr("This PC was let in"),
                self.tr("It is now part of “{name}”.").format(
                    name=view.status.fleet_name or view.status.fleet_id
                ),
            )

    def declined(self, why: str) -> None:
        """A PC that waited for an administrator's yes got a no."""
        if self._waited:
            self._waited = False
            self._say(self.tr("This PC was not let in"), why)

    def set_up(self) -> None:
        """The first run has come to its end while nobody was looking."""
        self._say(self.tr("fleetapp is set up"), self.tr("Open the chat from its icon."))

    def closed_to_tray(self) -> None:
        """The first window that was closed: where it has gone; once for good."""
        if not self._settings.value(CLOSED_TO_TRAY, False, type=bool):
            self._settings.setValue(CLOSED_TO_TRAY, True)
            self._say(
                self.tr("fleetapp is still running"),
                self.tr("Its icon stays here; Quit in its menu ends it."),
            )

    def _say(self, title: str, text: str) -> None:
        now = self._clock()
        if not self.on or now - self._last.get(title + text, -QUIET) < QUIET:
            return
        self._last[title + text] = now
        self.said.emit(title, text)
