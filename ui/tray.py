"""The icon in the notification area: state at a glance, everything else one click away."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QSystemTrayIcon

from ui import words
from ui.actions import Actions
from ui.icons import app_icon, state_icon
from ui.view import AgentView

LOOK_MS = 2000
PATIENCE = 3
"""Looks; at login the app may be quicker than the panel."""


class Tray(QObject):
    """Shows an AgentView as icon and tooltip. Without a panel it says so and keeps looking."""

    opened = Signal()
    """A click asks for the window."""
    absent = Signal()
    """There is no notification area, or none yet; once."""
    appeared = Signal()
    """The icon is in a notification area now."""

    def __init__(self, actions: Actions, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(actions.menu)
        self.icon.activated.connect(self._activated)
        self._looks = 0
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._look_for_panel)
        self.show_view(AgentView())

    @property
    def available(self) -> bool:
        return self.icon.isVisible() and QSystemTrayIcon.isSystemTrayAvailable()

    def start(self) -> None:
        """Show the icon as soon as there is a place for it."""
        self._look_for_panel()

    def stop(self) -> None:
        """Take the icon away."""
        self._look.stop()
        self.icon.hide()

    def show_view(self, view: AgentView) -> None:
        """Say the state and the reason in words, and show the state's shape."""
        self.icon.setIcon(state_icon(view.icon, view.percent))
        self.icon.setToolTip(words.status_line(view, words.TOOLTIP_LENGTH))

    def say(self, title: str, text: str) -> None:
        """A message beside the icon, where the system shows such."""
        if self.available and QSystemTrayIcon.supportsMessages():
            self.icon.showMessage(title, text, app_icon())

    def _look_for_panel(self) -> None:
        if QSystemTrayIcon.isSystemTrayAvailable():
            self._look.stop()
            self.icon.show()  # from here on Qt follows a panel that restarts
            self.appeared.emit()
            return
        self._looks += 1
        if self._looks == PATIENCE:
            self.absent.emit()
        if not self._look.isActive():
            self._look.start()

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (
            QSystemTrayIcon.ActivationReason.Trigger,
            QSystemTrayIcon.ActivationReason.DoubleClick,
        ):
            self.opened.emit()
