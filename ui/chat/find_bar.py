"""Finding words in the conversation that is shown."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from ui import theme
from ui.chat.values import Message


def messages_with(messages: Sequence[Message], words: str) -> list[int]:
    """Indices of the messages that contain ``words``, capitals aside. Pure."""
    wanted = words.casefold()
    return [i for i, m in enumerate(messages) if wanted in m.text.casefold()] if wanted else []


class FindBar(QWidget):
    """A field, how many messages have it, and the way to the next."""

    moved = Signal(int, str)
    """Index of the message to show, and the words."""
    marked = Signal(str)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._messages: Sequence[Message] = ()
        self._found: list[int] = []
        self._at = 0
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Find in this chat"))
        self.field.setAccessibleName(self.tr("Find in this chat"))
        self.field.textChanged.connect(self._search)
        self.field.returnPressed.connect(lambda: self.step(1))
        self.count = theme.muted(QLabel())
        self.previous = self._button("↑", self.tr("Previous message with these words"))
        self.previous.clicked.connect(lambda: self.step(-1))
        self.next = self._button("↓", self.tr("Next message with these words"))
        self.next.clicked.connect(lambda: self.step(1))
        self.close_button = self._button("✕", self.tr("Close the search"))
        self.close_button.clicked.connect(self.leave)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        row.addWidget(self.field, 1)
        row.addWidget(self.count)
        for button in (self.previous, self.next, self.close_button):
            row.addWidget(button)
        self.hide()

    def start(self, messages: Sequence[Message]) -> None:
        """Open it for these messages."""
        self._messages = messages
        self.show()
        self.field.setFocus()
        self.field.selectAll()
        self._search()

    def follow(self, messages: Sequence[Message]) -> None:
        """The messages have changed."""
        self._messages = messages
        if not self.isHidden():
            self._found = messages_with(messages, self.field.text().strip())
            self._at = min(self._at, max(0, len(self._found) - 1))
            self._say()

    def leave(self) -> None:
        """Close it and take the marks away."""
        self.hide()
        self.marked.emit("")
        self.left.emit()

    def step(self, by: int) -> None:
        """To the next message that has the words, around the end."""
        if self._found:
            self._at = (self._at + by) % len(self._found)
            self.moved.emit(self._found[self._at], self.field.text().strip())
            self._say()

    def _search(self) -> None:
        words = self.field.text().strip()
        self._found = messages_with(self._messages, words)
        # the newest is what somebody most likely looks for
        self._at = max(0, len(self._found) - 1)
        self.marked.emit(words)
        if self._found:
            self.moved.emit(self._found[self._at], words)
        self._say()

    def _say(self) -> None:
        if not self.field.text().strip():
            self.count.setText("")
        elif not self._found:
            self.count.setText(self.tr("Not found"))
        else:
            self.count.setText(
                self.tr("Message {n} of {all}").format(n=self._at + 1, all=len(self._found))
            )

    def _button(self, sign: str, name: str) -> QToolButton:
        button = QToolButton()
        button.setText(sign)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button
