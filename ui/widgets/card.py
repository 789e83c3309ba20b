"""A titled group of rows on its own ground."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from ui import theme


class Card(QFrame):
    """Add rows to ``rows``; without a title there is no line for it."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.setAccessibleName(title)
        self.rows = QVBoxLayout(self)
        self.rows.setContentsMargins(*(2 * theme.GRID,) * 4)
        self.rows.setSpacing(theme.GRID)
        self.title = theme.heading(QLabel(title), 1.0)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.rows.addWidget(self.title)
        # never shown by hand here: a widget without a parent would be a window of its own
        if not title:
            self.title.hide()

    def set_title(self, title: str) -> None:
        """Another title, which is the card's name for screen readers too."""
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.setAccessibleName(title)


def text_label(text: str = "", *, muted: bool = False) -> QLabel:
    """Plain wrapping text: what an agent or another PC says is never taken for markup."""
    label = QLabel(text, wordWrap=True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return theme.muted(label) if muted else label
