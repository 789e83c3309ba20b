"""One thing that was looked at or done: a mark, a name, a sentence, and what to do about it."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from ui import theme
from ui.widgets.card import text_label

MarkState = Literal["ok", "warn", "fail", "none", "running"]
SIDE = 18


class Sign(QWidget):
    """A disc with a tick, a triangle, a cross, an empty ring, or a ring with dots."""

    def __init__(self, state: MarkState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.state: MarkState = state
        self.setFixedSize(SIDE, SIDE)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(SIDE, SIDE)

    def set_state(self, state: MarkState) -> None:
        """Another one."""
        if state != self.state:
            self.state = state
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self.width() / 18, self.height() / 18)
        ink = QPen(QColor("#ffffff"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
        match self.state:
            case "ok":
                _disc(painter, "#15913f")
                painter.setPen(ink)
                painter.drawPolyline(QPolygonF([QPointF(5, 9.5), QPointF(8, 12.5), QPointF(13, 6)]))
            case "fail":
                _disc(painter, "#b42318")
                painter.setPen(ink)
                painter.drawLine(QPointF(6, 6), QPointF(12, 12))
                painter.drawLine(QPointF(12, 6), QPointF(6, 12))
            case "warn":
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor("#f2a60d"))
                painter.drawPolygon(
                    QPolygonF([QPointF(9, 1), QPointF(17.5, 16.5), QPointF(0.5, 16.5)])
                )
                painter.setPen(
                    QPen(QColor("#1b1f24"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
                )
                painter.drawLine(QPointF(9, 6.5), QPointF(9, 10.5))
                painter.drawPoint(QPointF(9, 13.7))
            case "none" | "running":
                muted = self.palette().placeholderText().color()
                painter.setPen(QPen(muted, 1.6))
                painter.drawEllipse(QRectF(1.5, 1.5, 15, 15))
                if self.state == "running":
                    painter.setPen(Qt.PenStyle.NoPen)
                    painter.setBrush(self.palette().highlight())
                    painter.drawEllipse(QRectF(5, 5, 8, 8))
        painter.end()


def _disc(painter: QPainter, colour: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawEllipse(QRectF(0.5, 0.5, 17, 17))


class Mark(QWidget):
    """Its parts may change later; empty texts take no room."""

    def __init__(
        self,
        state: MarkState,
        title: str,
        detail: str = "",
        remedy: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.sign = Sign(state)
        self.title = QLabel(title, wordWrap=True)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.detail = text_label(muted=True)
        self.bar = QProgressBar(textVisible=False)
        self.bar.hide()
        self.remedy = text_label()
        texts = QVBoxLayout()
        texts.setSpacing(theme.GRID // 4)
        for widget in (self.title, self.bar, self.detail, self.remedy):
            texts.addWidget(widget)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID + theme.GRID // 2)
        row.addWidget(self.sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        self.show_texts(state, detail, remedy)

    def show_texts(self, state: MarkState, detail: str, remedy: str = "") -> None:
        """State and sentences; the state is said to screen readers as a word."""
        self.sign.set_state(state)
        self.sign.setAccessibleName(
            {
                "ok": self.tr("fine"),
                "warn": self.tr("look at this"),
                "fail": self.tr("does not work"),
                "none": self.tr("not yet"),
                "running": self.tr("under way"),
            }[state]
        )
        theme.mark_error(self.detail, on=state == "fail")
        for label, text in ((self.detail, detail), (self.remedy, remedy)):
            label.setText(text)
            label.setVisible(bool(text))

    def show_progress(self, done: int, total: int, *, on: bool) -> None:
        """A bar while something goes on; without a known end it only moves."""
        self.bar.setVisible(on)
        self.bar.setAccessibleName(self.title.text())
        if total > 0:
            self.bar.setRange(0, 1000)  # bytes may not fit the control's 32 bits
            self.bar.setValue(min(1000, 1000 * done // total))
        else:
            self.bar.setRange(0, 0)
