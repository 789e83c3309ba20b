"""A text that people carry elsewhere: read-only, with a button that copies it."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from ui import theme

CONFIRM_MS = 2000


class CopyField(QWidget):
    """Shows ``text`` in the fixed-width font; the button says that it has copied."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit(readOnly=True)
        self.field.setFont(theme.fixed_font())
        self.field.setAccessibleName(accessible_name)
        self.button = QPushButton(self.tr("Cop&y"))
        self.button.setAccessibleName(self.tr("Copy: {what}").format(what=accessible_name))
        self.button.setAutoDefault(False)
        self.button.setMinimumWidth(11 * theme.GRID)
        self.button.clicked.connect(self._copy)
        self._calm = QTimer(self, singleShot=True, interval=CONFIRM_MS)
        self._calm.timeout.connect(lambda: self.button.setText(self.tr("Cop&y")))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        row.addWidget(self.field, 1)
        row.addWidget(self.button)

    def set_text(self, text: str) -> None:
        """Show another text; the cursor of somebody who is reading it stays."""
        if text != self.field.text():
            self.field.setText(text)
            self.field.setCursorPosition(0)

    def _copy(self) -> None:
        theme.copy(self.field.text())
        self.button.setText(self.tr("Copied"))
        self._calm.start()
