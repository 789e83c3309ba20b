"""What a person can ask for: one set of actions for the menus of tray and window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from ui import words
from ui.icons import state_icon
from ui.view import AgentView
from ui.widgets.steady_menu import SteadyMenu

FINISH_FIRST = "forever"
"""How long a pause lasts that begins when running answers have ended."""


class Actions(QObject):
    """Only what can be done now is visible; what a policy forbids is shown and says so."""

    pause_asked = Signal(str)
    """For how long, as the agent takes it."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._may_set_up = self._under_way = False
        self.status = QAction(self)
        self.contribute = QAction(self, checkable=True)
        self.pause_menu = QMenu()
        self.pause = self.pause_menu.menuAction()
        self.pauses = self._pauses()
        self.resume = QAction(self.tr("&Resume"), self)
        self.finish = QAction(self.tr("&Finish, then pause"), self)
        self.start_agent = QAction(self.tr("&Start the agent"), self)
        self.chat = QAction(self.tr("Open c&hat"), self)
        self.this_pc = QAction(self.tr("&This PC"), self)
        self.fleet = QAction(self.tr("F&leet"), self)
        self.set_up = QAction(self.tr("Set &up again…"), self)
        self.join = QAction(self.tr("&Join a fleet…"), self)
        self.create = QAction(self.tr("Create a fl&eet…"), self)
        self.invite = QAction(self.tr("New join c&ode…"), self)
        self.leave = QAction(self.tr("Lea&ve the fleet…"), self)
        self.settings = QAction(self.tr("Settin&gs…"), self)
        self.settings.setShortcut(QKeySequence("Ctrl+,"))
        # the shortcut belongs to the windows; a menu of the tray has no keyboard of its own
        self.settings.setShortcutVisibleInContextMenu(False)
        self.export = QAction(self.tr("E&xport diagnostics…"), self)
        self.about = QAction(self.tr("&About fleetapp"), self)
        self.quit = QAction(self.tr("&Quit"), self)
        self.menu = SteadyMenu()
        self.menu.setAccessibleName(self.tr("fleetapp"))
        for group in (
            (self.status,),
            (self.contribute, self.pause, self.resume, self.finish, self.start_agent),
            (self.chat, self.this_pc, self.fleet),
            (self.set_up, self.join, self.create, self.invite, self.leave),
            (self.settings, self.export, self.about),
            (self.quit,),
        ):
            self.menu.addActions(list(group))
            self.menu.addSeparator()
        self.show_view(AgentView())

    def show_view(self, view: AgentView) -> None:
        """Say the state and offer what fits it."""
        connected = view.link == "connected"
        self.status.setText(words.status_line(view).replace("&", "&&"))
        self.status.setIcon(state_icon(view.icon, view.percent))
        self._show_contribution(view)
        self.start_agent.setVisible(view.link == "stopped")
        self.fleet.setVisible(connected and view.admin)
        self._may_set_up = connected and not view.joined
        for action in (self.join, self.create):
            action.setVisible(self._may_set_up)
        self.show_set_up(under_way=self._under_way)
        self.invite.setVisible(connected and view.admin)
        self.leave.setVisible(connected and view.joined and not view.coordinates)
        self.export.setVisible(view.link != "starting")

    def show_set_up(self, *, under_way: bool) -> None:
        """Whether the first run is open, and so can be brought back."""
        self._under_way = under_way
        self.set_up.setVisible(self._may_set_up or under_way)

    def _show_contribution(self, view: AgentView) -> None:
        contribution = view.contribution
        member = view.link == "connected" and view.joined
        self.contribute.setVisible(member)
        self.contribute.setChecked(view.status is not None and view.status.contribute)
        self.contribute.setEnabled(not contribution.contribute_by)
        self.contribute.setText(
            _managed(self.tr("&Contribute idle AI time"), contribution.contribute_by)
        )
        consents = member and view.status is not None and view.status.contribute
        may = contribution.may_pause
        self.pause.setVisible(consents and not contribution.paused)
        self.pause.setEnabled(may)
        self.pause_menu.setTitle(
            _managed(
                self.tr("&Pause"), "" if may else contribution.pause_by or words.your_settings()
            )
        )
        self.resume.setVisible(member and contribution.paused)
        self.finish.setVisible(consents and not contribution.paused and may)

    def _pauses(self) -> dict[str, QAction]:
        choices = {
            "30m": self.tr("For &30 minutes"),
            "1h": self.tr("For &1 hour"),
            "4h": self.tr("For &4 hours"),
            "tomorrow": self.tr("Until &tomorrow"),
            "forever": self.tr("Until I &resume"),
        }
        made = {}
        for length, text in choices.items():
            action = QAction(text, self)
            action.triggered.connect(lambda _=False, length=length: self.pause_asked.emit(length))
            self.pause_menu.addAction(action)
            made[length] = action
        return made


def _managed(text: str, by: str) -> str:
    return words.managed(text, by.replace("&", "&&")) if by else text
