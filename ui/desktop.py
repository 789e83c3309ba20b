"""Brings session, tray, windows and actions together; what a click means is decided here."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, Qt, Signal
from PySide6.QtWidgets import QDialog, QMessageBox, QWidget

from fleetapp.errors import FleetError
from ui.about import third_party
from ui.actions import Actions
from ui.fleet_dialogs import CreateDialog, FleetDialog, InviteDialog, JoinDialog
from ui.icons import app_icon
from ui.session import AgentSession
from ui.this_pc import ThisPcWindow
from ui.tray import Tray
from ui.view import AgentView

if TYPE_CHECKING:
    from ui.chat.chats import Chats

NOTICE_SHOWN = "window/closed_to_tray_notice"


class Desktop(QObject):
    """The whole desktop app but for the process around it."""

    ended = Signal()
    """The app may leave its event loop."""

    def __init__(self, session: AgentSession, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.actions = Actions(self)
        self.tray = Tray(self.actions, self)
        self.window = ThisPcWindow(self.actions)
        self.dialog: FleetDialog | None = None
        self.question: QMessageBox | None = None
        self.chats: Chats | None = None
        """None until the chat is opened for the first time."""
        self._home = home
        self._quitting = False
        self._settings = QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)

        for follower in (self.actions.show_view, self.tray.show_view, self.window.show_view):
            session.changed.connect(follower)
        session.agent_ended.connect(self._agent_ended)
        self.tray.opened.connect(self.show_window)
        self.tray.absent.connect(self.show_window)
        # without a tray nothing would be left to bring it back with
        self.window.may_hide = lambda: self.tray.available
        self.window.closed.connect(self._window_closed)
        self.actions.status.triggered.connect(self.show_window)
        self.actions.chat.triggered.connect(self.show_chat)
        self.actions.this_pc.triggered.connect(self.show_window)
        self.actions.contribute.triggered.connect(self._contribute)
        self.actions.start_agent.triggered.connect(session.start_agent)
        self.actions.join.triggered.connect(lambda: self._open(JoinDialog))
        self.actions.create.triggered.connect(lambda: self._open(CreateDialog))
        self.actions.invite.triggered.connect(lambda: self._open(InviteDialog))
        self.actions.about.triggered.connect(self._about)
        self.actions.quit.triggered.connect(self.quit)

    def start(self) -> None:
        """Show the tray icon (or, without a panel, the window) and look for the agent."""
        self.tray.start()
        self.session.start()

    def stop(self) -> None:
        """Take everything off the screen; the agent goes on."""
        self.session.stop()
        self.tray.stop()
        self.window.hide()
        self._stop_chats()

    def _stop_chats(self) -> None:
        if self.chats is not None:
            self.chats.stop()
            self.chats = None

    def show_window(self) -> None:
        """This PC, in front of other windows."""
        _raise(self.window)

    def show_chat(self) -> None:
        """The chat, in front of other windows."""
        if self.chats is None:
            # SQLite, Markdown and the rest are loaded by those who chat, not at every login
            from ui.chat.chats import Chats  # noqa: PLC0415

            self.chats = Chats(self.session.client, self._home, self._settings, self)
            self.chats.last_closed.connect(self._chat_closed)
        _raise(self.chats.window())

    def quit(self) -> None:
        """End app and agent, after asking if others would notice."""
        if self._quitting:
            return
        writing = self.chats is not None and self.chats.model.busy
        if self.session.view.at_work:
            models = sorted({a.model for a in self.session.view.assignments})
            self._ask_before_quitting(
                self.tr("This PC is working for the fleet ({models}).").format(
                    models=", ".join(models)
                ),
                self.tr(
                    "If you quit now, answers that are being written may break off, and other PCs "
                    "have to take over."
                ),
            )
        elif writing:
            self._ask_before_quitting(
                self.tr("An answer to you is being written."),
                self.tr("If you quit now it ends here; what has come of it is kept."),
            )
        else:
            self._quit_now()

    def quit_unasked(self) -> None:
        """End app and agent at once: an installer asks, and has let answers end."""
        if not self._quitting:
            self._quit_now()

    def _ask_before_quitting(self, why: str, consequence: str) -> None:
        question = QMessageBox(QMessageBox.Icon.Question, self.tr("Quit fleetapp?"), why)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setInformativeText(consequence)
        leave = question.addButton(self.tr("&Quit now"), QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton(self.tr("&Keep running"), QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.setEscapeButton(stay)
        leave.clicked.connect(self._quit_now)
        self._ask(question)

    def _quit_now(self) -> None:
        self._quitting = True
        self.actions.menu.setEnabled(False)
        # before the agent: its end must not look like a failure of the answer
        self._stop_chats()
        self.session.quit_agent()

    def _agent_ended(self, gone: bool) -> None:
        if gone:
            self.ended.emit()
            return
        warning = QMessageBox(
            QMessageBox.Icon.Warning,
            self.tr("The agent is still running"),
            self.tr("The agent was asked to end and has not (process {pid}).").format(
                pid=self.session.ending_pid
            ),
            QMessageBox.StandardButton.Close,
        )
        warning.setInformativeText(self.tr("It can be ended in the task manager."))
        warning.finished.connect(self.ended)
        self._ask(warning)

    def _contribute(self, on: bool) -> None:
        # what is shown is what the agent says, not what was clicked
        self._show_agents_word(self.session.view)
        self.window.show_error(None)
        self.session.set_contribute(on).then(lambda _: None, self._refused)

    def _show_agents_word(self, view: AgentView) -> None:
        self.actions.show_view(view)
        self.window.show_view(view)

    def _refused(self, error: FleetError) -> None:
        self.window.show_error(error)
        if not self.window.isVisible():
            self.tray.say(self.tr("That did not work"), str(error))

    def _open(self, kind: type[JoinDialog] | type[CreateDialog] | type[InviteDialog]) -> None:
        if self.dialog is not None and not isinstance(self.dialog, kind):
            self.dialog.reject()
        if self.dialog is None:
            self.dialog = kind(self.session)
            self.dialog.finished.connect(self._dialog_finished)
        _raise(self.dialog)

    def _dialog_finished(self) -> None:
        self.dialog = None

    def _about(self) -> None:
        status = self.session.view.status
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
        if status is not None:
            lines.insert(1, self.tr("Agent {version}").format(version=status.version))
        about.setInformativeText("\n".join(lines))
        about.setDetailedText(third_party())
        self._ask(about)

    def _ask(self, box: QMessageBox) -> None:
        """Show a box without a nested event loop; the one before it is closed."""
        if self.question is not None:
            self.question.close()
        box.setWindowIcon(app_icon())
        self.question = box
        box.open()
        _raise(box)

    def _window_closed(self) -> None:
        if not self.tray.available:
            self.quit()
        else:
            self._say_it_goes_on()

    def _chat_closed(self) -> None:
        # without a tray the other window stands in for it and is still there
        if self.tray.available and not self._quitting:
            self._say_it_goes_on()

    def _say_it_goes_on(self) -> None:
        if not self._settings.value(NOTICE_SHOWN, False, type=bool):
            self._settings.setValue(NOTICE_SHOWN, True)
            self.tray.say(
                self.tr("fleetapp is still running"),
                self.tr("Its icon stays here; Quit in its menu ends it."),
            )


def _raise(window: QWidget | QDialog) -> None:
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
