"""A label that gives way: what does not fit ends in dots and is told as a whole by the tooltip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

LEAST = 3
"""Wide letters that stay in sight."""


class ElidedLabel(QLabel):
    """Plain text on one line."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Some letters."""
        whole = super().minimumSizeHint()
        least = LEAST * self.fontMetrics().horizontalAdvance("M")
        return QSize(min(whole.width(), least), whole.height())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """The whole text."""
        return super().minimumSizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Tell the whole text where it is cut."""
        super().resizeEvent(event)
        self.setToolTip("" if self._shown() == self.text() else self.text())

    def paintEvent(self, _event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """As the style draws a label, but cut."""
        painter = QPainter(self)
        alignment = self.style().visualAlignment(self.layoutDirection(), self.alignment())
        self.style().drawItemText(
            painter,
            self.contentsRect(),
            int(alignment.value),
            self.palette(),
            self.isEnabled(),
            self._shown(),
            self.foregroundRole(),
        )
        painter.end()

    def _shown(self) -> str:
        metrics = self.fontMetrics()
        room = self.contentsRect().width()
        return metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, room)
