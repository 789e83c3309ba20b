"""What is shown where no question has been asked yet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui import theme
from ui.widgets.card import text_label


class EmptyPage(QWidget):
    """An invitation, and who sees what."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        head = theme.heading(text_label(self.tr("What would you like to know?")))
        note = text_label(
            self.tr(
                "The PCs of the fleet compute the answer together. "
                "The history of your chats is stored on this PC only."
            ),
            muted=True,
        )
        for label in (head, note):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column.addStretch(1)
        column.addWidget(head)
        column.addWidget(note)
        column.addStretch(2)
