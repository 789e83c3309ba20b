"""Message boxes of the desktop app: one at a time, and never a nested event loop."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import QDialog, QMessageBox, QWidget

from ui import theme
from ui.about import third_party
from ui.icons import app_icon
from ui.view import AgentView

FRAME = QSize(2 * theme.GRID, 5 * theme.GRID)
"""Room for a window's frame, which is not known before it is shown."""


class Boxes(QObject):
    """Shows a box; the one before it is closed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.current: QMessageBox | None = None

    def show(self, box: QMessageBox) -> None:
        """In front of other windows."""
        if self.current is not None:
            self.current.close()
        box.setWindowIcon(app_icon())
        self.current = box
        box.open()
        bring_up(box)

    def ask_to_quit(self, why: str, consequence: str, leave: Callable[[], object]) -> None:
        """Ask before others are let down; staying is the default."""
        question = QMessageBox(QMessageBox.Icon.Question, self.tr("Quit fleetapp?"), why)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setInformativeText(consequence)
        go = question.addButton(self.tr("&Quit now"), QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton(self.tr("&Keep running"), QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.setEscapeButton(stay)
        go.clicked.connect(leave)
        self.show(question)

    def ask_to_leave(self, fleet: str, leave: Callable[[], object]) -> None:
        """Ask before the fleet is left; staying is the default."""
        question = QMessageBox(
            QMessageBox.Icon.Question,
            self.tr("Leave the fleet?"),
            self.tr("This PC will belong to the fleet “{fleet}” no longer.").format(fleet=fleet),
        )
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setInformativeText(
            self.tr("It ends its work for the fleet. Coming back takes a new join code.")
        )
        go = question.addButton(self.tr("&Leave"), QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton(self.tr("&Stay"), QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.setEscapeButton(stay)
        go.clicked.connect(leave)
        self.show(question)

    def still_running(self, pid: int, then: Callable[[], object]) -> None:
        """The agent did not end when it was asked to."""
        warning = QMessageBox(
            QMessageBox.Icon.Warning,
            self.tr("The agent is still running"),
            self.tr("The agent was asked to end and has not (process {pid}).").format(pid=pid),
            QMessageBox.StandardButton.Close,
        )
        warning.setInformativeText(self.tr("It can be ended in the task manager."))
        warning.finished.connect(then)
        self.show(warning)

    def about(self, view: AgentView) -> None:
        """Versions and licence."""
        about = QMessageBox(
            QMessageBox.Icon.NoIcon,
            self.tr("About fleetapp"),
            self.tr("fleetapp {version}").format(version=version("fleetapp")),
            QMessageBox.StandardButton.Close,
        )
        about.setIconPixmap(app_icon().pixmap(48, 48))
        lines = [
            self.tr("An office's own laptops serving large language models together."),
            self.tr("Apache-2.0 licence. Made with Qt and PySide6 (LGPL 3)."),
        ]
        if view.status is not None:
            lines.insert(1, self.tr("Agent {version}").format(version=view.status.version))
        about.setInformativeText("\n".join(lines))
        about.setDetailedText(third_party())
        self.show(about)


def bring_up(window: QWidget | QDialog) -> None:
    """Show a window in front of the others."""
    if not window.isVisible():
        fit_to_screen(window)
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()


def fit_to_screen(window: QWidget) -> None:
    """Not larger than the screen: small ones, and those on which everything is drawn large.

    Not every window manager sees to that, and none makes a window smaller than its minimum.
    """
    room = window.screen().availableSize() - FRAME
    window.setMinimumSize(window.minimumSize().boundedTo(room))
    window.resize(window.size().boundedTo(room))
