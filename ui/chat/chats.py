"""The chat as a part of the desktop app: one model, any number of windows, opened on demand."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Qt, Signal

from ui import words
from ui.chat.model import ChatModel
from ui.chat.store import ConversationStore
from ui.chat.window import ChatWindow
from ui.client import AgentClient
from ui.view import AgentView

UNABLE = ("not_joined", "connecting")
"""States of a PC that reaches no fleet."""


class Chats(QObject):
    """Made when the chat is opened for the first time."""

    last_closed = Signal()
    """No chat window is left."""
    settings_asked = Signal()

    def __init__(
        self, client: AgentClient, home: Path, settings: QSettings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.model = ChatModel(client, ConversationStore(home), self)
        self.windows: list[ChatWindow] = []
        self._settings = settings
        self._said = ""

    def show_agent(self, view: AgentView) -> None:
        """Say in every window why nothing can be asked, and look for models when it can again."""
        answers = view.status is not None and view.status.state not in UNABLE
        said = "" if answers else words.reason(view)
        if self._said and not said:
            self.model.refresh_models()
        self._said = said
        for window in self.windows:
            window.show_agent(said)

    def window(self) -> ChatWindow:
        """The newest window, made if there is none."""
        return self.windows[-1] if self.windows else self.new_window()

    def new_window(self) -> ChatWindow:
        """One more; not shown yet."""
        window = ChatWindow(self.model, self._settings)
        window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        window.closed.connect(self._gone)
        window.window_asked.connect(self._show_new)
        window.settings_asked.connect(self.settings_asked)
        self.windows.append(window)
        window.show_agent(self._said)
        return window

    def _show_new(self) -> None:
        self.new_window().show()

    def stop(self) -> None:
        """The app ends: drafts and half answers are kept."""
        for window in list(self.windows):
            window.keep()
            window.close()
        self.model.shutdown()

    def _gone(self, window: ChatWindow) -> None:
        if window in self.windows:
            self.windows.remove(window)
            if not self.windows:
                self.last_closed.emit()
