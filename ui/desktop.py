"""Brings session, tray, windows and actions together; what a click means is decided here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from fleetapp.errors import FleetError
from ui.actions import FINISH_FIRST, Actions
from ui.boxes import Boxes, bring_up
from ui.client import Call
from ui.fleet_dialogs import CreateDialog, FleetDialog, InviteDialog, JoinDialog
from ui.notifier import Notifier
from ui.preferences import preferences_of
from ui.session import AgentSession
from ui.this_pc import ThisPcWindow
from ui.tray import Tray
from ui.view import AgentView

if TYPE_CHECKING:
    from ui.chat.chats import Chats
    from ui.firstrun.window import FirstRunWindow
    from ui.fleet.window import FleetWindow
    from ui.settings.window import SettingsWindow


class Desktop(QObject):
    """The whole desktop app but for the process around it."""

    ended = Signal()
    """The app may leave its event loop."""

    def __init__(self, session: AgentSession, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.actions = Actions(self)
        self.tray = Tray(self.actions, self)
        self.window = ThisPcWindow(self.actions, session)
        self.boxes = Boxes(self)
        self.dialog: FleetDialog | None = None
        self.chats: Chats | None = None
        """None until the chat is opened for the first time; so with the windows that follow."""
        self.fleet: FleetWindow | None = None
        self.preferences: SettingsWindow | None = None
        self.first_run: FirstRunWindow | None = None
        self._home = home
        self._quitting = False
        self._first_looked = False
        self._settings = preferences_of(home)
        self.notifier = Notifier(self._settings, self)
        self.notifier.said.connect(self.tray.say)

        for follower in (
            self.actions.show_view,
            self.tray.show_view,
            self.window.show_view,
            self.notifier.show_view,
            self._tell_chats,
            self._look_whether_first,
        ):
            session.changed.connect(follower)
        session.agent_ended.connect(self._agent_ended)
        self.tray.opened.connect(self.show_window)
        self.tray.absent.connect(self.show_window)
        # without a tray nothing would be left to bring it back with
        self.window.may_hide = lambda: self.tray.available
        self.window.closed.connect(self._window_closed)
        self._connect_actions()

    def _connect_actions(self) -> None:
        actions, session = self.actions, self.session
        actions.status.triggered.connect(self.show_window)
        actions.chat.triggered.connect(self.show_chat)
        actions.this_pc.triggered.connect(self.show_window)
        actions.fleet.triggered.connect(self.show_fleet)
        actions.settings.triggered.connect(self.show_settings)
        actions.export.triggered.connect(self.export_diagnostics)
        actions.set_up.triggered.connect(self.show_first_run)
        actions.contribute.triggered.connect(
            lambda on: self._wish(lambda: session.set_contribute(on))
        )
        actions.pause_asked.connect(lambda length: self._wish(lambda: session.pause(length)))
        actions.finish.triggered.connect(
            lambda: self._wish(lambda: session.pause(FINISH_FIRST, finish_first=True))
        )
        actions.resume.triggered.connect(lambda: self._wish(session.resume))
        self.window.lend_asked.connect(
            lambda device, on: self._wish(lambda: session.lend(device, on))
        )
        actions.start_agent.triggered.connect(session.start_agent)
        actions.join.triggered.connect(lambda: self._open(JoinDialog))
        actions.create.triggered.connect(lambda: self._open(CreateDialog))
        actions.leave.triggered.connect(self._leave)
        actions.invite.triggered.connect(lambda: self._open(InviteDialog))
        actions.about.triggered.connect(lambda: self.boxes.about(session.view))
        actions.quit.triggered.connect(self.quit)

    @property
    def question(self) -> QMessageBox | None:
        """The message box on the screen, or the last one."""
        return self.boxes.current

    def start(self) -> None:
        """Show the tray icon (or, without a panel, the window) and look for the agent."""
        self.tray.start()
        self.session.start()

    def stop(self) -> None:
        """Take everything off the screen; the agent goes on."""
        self.session.stop()
        self.tray.stop()
        self.window.hide()
        for window in (self.fleet, self.preferences):
            if window is not None:
                window.close()
        if self.first_run is not None:
            self.first_run.end()
        self._stop_chats()

    def _stop_chats(self) -> None:
        if self.chats is not None:
            self.chats.stop()
            self.chats = None

    # ------------------------------------------------------------------ windows
    # What a window needs is loaded when it is opened, not at every login.

    def come_forward(self) -> None:
        """For a second start: what the person has to do first, or this PC."""
        if self.first_run is not None:
            bring_up(self.first_run)
        else:
            self.show_window()

    def show_window(self) -> None:
        """This PC, in front of other windows."""
        bring_up(self.window)

    def show_chat(self) -> None:
        """The chat, in front of other windows."""
        if self.chats is None:
            from ui.chat.chats import Chats  # noqa: PLC0415

            self.chats = Chats(self.session.client, self._home, self._settings, self)
            self.chats.last_closed.connect(self._chat_closed)
            self.chats.settings_asked.connect(self.show_settings)
            self.chats.show_agent(self.session.view)
        bring_up(self.chats.window())

    def _tell_chats(self, view: AgentView) -> None:
        if self.chats is not None:
            self.chats.show_agent(view)

    def show_fleet(self) -> None:
        """The fleet, for those who run it."""
        if self.fleet is None:
            from ui.fleet.window import FleetWindow  # noqa: PLC0415

            self.fleet = FleetWindow(self.session)
            self.fleet.closed.connect(self._fleet_closed)
        bring_up(self.fleet)

    def show_settings(self) -> None:
        """The settings of this PC."""
        if self.preferences is None:
            from ui.settings.window import SettingsWindow  # noqa: PLC0415

            self.preferences = SettingsWindow(self.session, self._home)
            self.preferences.closed.connect(self._settings_closed)
        bring_up(self.preferences)

    def export_diagnostics(self) -> None:
        """Write a file for whoever helps."""
        from ui.diagnostics import export_diagnostics  # noqa: PLC0415

        self.show_window()
        export_diagnostics(self.session, self.window)

    def show_first_run(self) -> None:
        """What a new PC is asked."""
        if self.first_run is None:
            from ui.firstrun.window import FirstRunWindow  # noqa: PLC0415

            self.first_run = FirstRunWindow(self.session, self._settings)
            self.first_run.closed.connect(self._first_run_closed)
            self.first_run.chat_asked.connect(self.show_chat)
            self.first_run.declined.connect(self.notifier.declined)
            self.first_run.hidden.connect(self._chat_closed)
            self.first_run.done_unseen.connect(self.notifier.set_up)
            self.actions.show_set_up(under_way=True)
        bring_up(self.first_run)

    def _look_whether_first(self, view: AgentView) -> None:
        if self._first_looked or view.link != "connected" or self._quitting:
            return
        self._first_looked = True
        from ui.firstrun.begin import Begin  # noqa: PLC0415

        Begin(self.session, self._settings, self).wanted.connect(self.show_first_run)

    def _fleet_closed(self) -> None:
        _forget(self.fleet)
        self.fleet = None

    def _settings_closed(self) -> None:
        _forget(self.preferences)
        self.preferences = None

    def _first_run_closed(self) -> None:
        _forget(self.first_run)
        self.actions.show_set_up(under_way=False)
        self.first_run = None

    def _open(self, kind: type[JoinDialog] | type[CreateDialog] | type[InviteDialog]) -> None:
        if self.dialog is not None and not isinstance(self.dialog, kind):
            self.dialog.reject()
        if self.dialog is None:
            self.dialog = kind(self.session)
            self.dialog.finished.connect(self._dialog_finished)
        bring_up(self.dialog)

    def _dialog_finished(self) -> None:
        self.dialog = None

    def _window_closed(self) -> None:
        if not self.tray.available:
            self.quit()
        else:
            self.notifier.closed_to_tray()

    def _chat_closed(self) -> None:
        # without a tray the other window stands in for it and is still there
        if self.tray.available and not self._quitting:
            self.notifier.closed_to_tray()

    # ------------------------------------------------------------------ wishes

    def _wish(self, ask: Callable[[], Call]) -> None:
        # what is shown is what the agent says, not what was clicked
        self.actions.show_view(self.session.view)
        self.window.show_view(self.session.view)
        self.window.show_error(None)
        ask().then(lambda _: None, self._refused)

    def _leave(self) -> None:
        status = self.session.view.status
        if status is None:
            return
        self.boxes.ask_to_leave(
            status.fleet_name,
            lambda: self.session.leave_fleet().then(lambda _: None, self._refused),
        )

    def _refused(self, error: FleetError) -> None:
        self.window.show_error(error)
        if not self.window.isVisible():
            # an answer to a click is no notification that somebody could have switched off
            self.tray.say(self.tr("That did not work"), str(error))

    # ------------------------------------------------------------------ the end

    def quit(self) -> None:
        """End app and agent, after asking if others would notice."""
        if self._quitting:
            return
        writing = self.chats is not None and self.chats.model.busy
        if self.session.view.at_work:
            models = sorted({a.model for a in self.session.view.assignments})
            self.boxes.ask_to_quit(
                self.tr("This PC is working for the fleet ({models}).").format(
                    models=", ".join(models)
                ),
                self.tr(
                    "This PC coordinates the fleet: answers that are being written break off, and "
                    "nobody gets any until fleetapp is started here again."
                )
                if self.session.view.coordinates
                else self.tr(
                    "If you quit now, answers that are being written may break off, and other PCs "
                    "have to take over."
                ),
                self._quit_now,
            )
        elif writing:
            self.boxes.ask_to_quit(
                self.tr("An answer to you is being written."),
                self.tr("If you quit now it ends here; what has come of it is kept."),
                self._quit_now,
            )
        else:
            self._quit_now()

    def quit_unasked(self) -> None:
        """End app and agent at once: an installer asks, and has let answers end."""
        if not self._quitting:
            self._quit_now()

    def _quit_now(self) -> None:
        self._quitting = True
        self.actions.menu.setEnabled(False)
        # before the agent: its end must not look like a failure of the answer
        self._stop_chats()
        self.session.quit_agent()

    def _agent_ended(self, gone: bool) -> None:
        if gone:
            self.ended.emit()
        else:
            self.boxes.still_running(self.session.ending_pid, self.ended.emit)


def _forget(window: QWidget | None) -> None:
    """A window that was closed is made anew when it is asked for again."""
    if window is not None:
        window.deleteLater()
