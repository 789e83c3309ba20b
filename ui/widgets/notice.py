"""One line of what went wrong and what to do, inside the window it belongs to."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from fleetapp.errors import FleetError
from ui import theme
from ui.icons import state_icon


class Notice(QWidget):
    """Invisible until something is to be said; screen readers are told at once."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark = QLabel()
        mark.setPixmap(state_icon("attention").pixmap(16, 16))
        self.label = QLabel(wordWrap=True)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setProperty("error", True)
        self.label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.label, 1)
        self.hide()

    def show_error(self, error: FleetError) -> None:
        """Say what happened and the remedy."""
        self.show_text(str(error))

    def show_text(self, text: str) -> None:
        """Say this."""
        self.label.setText(text)
        self.label.setAccessibleName(text)
        self.show()
        QAccessible.updateAccessibility(QAccessibleEvent(self.label, QAccessible.Event.Alert))

    def clear(self) -> None:
        """Nothing is wrong any more."""
        self.label.clear()
        self.hide()
