"""What a person can ask for: one set of actions for the menus of tray and window."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from ui import words
from ui.icons import state_icon
from ui.view import AgentView


class Actions(QObject):
    """Only what can be done now is visible."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.status = QAction(self)
        self.contribute = QAction(self.tr("&Contribute idle AI time"), self, checkable=True)
        self.start_agent = QAction(self.tr("&Start the agent"), self)
        self.chat = QAction(self.tr("Open c&hat"), self)
        self.this_pc = QAction(self.tr("This &PC"), self)
        self.join = QAction(self.tr("&Join a fleet…"), self)
        self.create = QAction(self.tr("Create a &fleet…"), self)
        self.invite = QAction(self.tr("New join c&ode…"), self)
        self.about = QAction(self.tr("&About fleetapp"), self)
        self.quit = QAction(self.tr("&Quit"), self)
        self.menu = QMenu()
        self.menu.setAccessibleName(self.tr("fleetapp"))
        for group in (
            (self.status,),
            (self.contribute, self.start_agent),
            (self.chat, self.this_pc, self.join, self.create, self.invite),
            (self.about, self.quit),
        ):
            self.menu.addActions(list(group))
            self.menu.addSeparator()
        self.show_view(AgentView())

    def show_view(self, view: AgentView) -> None:
        """Say the state and offer what fits it."""
        connected = view.link == "connected"
        coordinator = view.status is not None and view.status.role != "member"
        self.status.setText(words.status_line(view).replace("&", "&&"))
        self.status.setIcon(state_icon(view.icon, view.percent))
        self.contribute.setVisible(connected and view.joined)
        self.contribute.setChecked(view.status is not None and view.status.contribute)
        self.start_agent.setVisible(view.link == "stopped")
        self.join.setVisible(connected and not view.joined)
        self.create.setVisible(connected and not view.joined)
        self.invite.setVisible(connected and view.joined and coordinator)
