"""A figure and how it went in the last minutes, painted by ourselves: Qt's charts are GPL."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from ui import theme
from ui.fleet.palette import colour
from ui.fleet.pulse import SPAN, Series
from ui.widgets.card import text_label

HEIGHT = 4 * theme.GRID
FILL = 40
"""Alpha of the ground below the line."""


class Line(QWidget):
    """Only the line; gaps where nothing was measured."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._series = Series()
        self._now = 0.0
        self._top: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("")

    def show_series(self, series: Series, now: float, top: float | None = None) -> None:
        """Draw this up to ``now``; ``top`` fixes what full height means."""
        self._series, self._now, self._top = series, now, top
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As high as all of them."""
        return QSize(14 * theme.GRID, HEIGHT)

    def segments(self) -> list[list[QPointF]]:
        """Where the line runs, in pixels: one list for each stretch without a gap."""
        known = [v for _, v in self._series.points if v is not None]
        top = self._top if self._top is not None else max(known, default=0.0)
        area = QRectF(self.rect()).adjusted(1, 2, -1, -2)
        found: list[list[QPointF]] = [[]]
        for at, value in self._series.points:
            if value is None:
                if found[-1]:
                    found.append([])
                continue
            share = min(1.0, value / top) if top > 0 else 0.0
            x = area.right() - (self._now - at) / SPAN * area.width()
            found[-1].append(QPointF(x, area.bottom() - share * area.height()))
        return [segment for segment in found if segment]

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name
        """A base line always, so that an empty chart does not look broken."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bottom = self.height() - 1.5
        painter.setPen(QPen(colour(QPalette.ColorRole.Mid), 1))
        painter.drawLine(QPointF(0, bottom), QPointF(self.width(), bottom))
        line = colour(QPalette.ColorRole.Highlight)
        ground = QColor(line)
        ground.setAlpha(FILL)
        for segment in self.segments():
            if len(segment) == 1:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(line)
                painter.drawEllipse(segment[0], 1.5, 1.5)
                continue
            path = QPainterPath(segment[0])
            for point in segment[1:]:
                path.lineTo(point)
            filled = QPainterPath(path)
            filled.lineTo(segment[-1].x(), bottom)
            filled.lineTo(segment[0].x(), bottom)
            painter.fillPath(filled, ground)
            painter.setPen(QPen(line, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(path)
        painter.end()


class Chart(QWidget):
    """Title, newest value, line."""

    def __init__(
        self, title: str, say: Callable[[float | None], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._title = title
        self._say = say
        self.caption = text_label(title, muted=True)
        self.caption.setWordWrap(False)
        self.line = Line()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.GRID // 2)
        column.addWidget(self.caption)
        column.addWidget(self.line)
        self.setMinimumWidth(16 * theme.GRID)

    def show_series(
        self, series: Series, present: float | None, now: float, top: float | None = None
    ) -> None:
        """Show how it went and what it is."""
        said = self._say(present)
        self.caption.setText(f"{self._title} · {said}")
        self.line.show_series(series, now, top)
        name = self.tr("{title} of the last five minutes, now {value}").format(
            title=self._title, value=said
        )
        self.setAccessibleName(name)
        self.line.setAccessibleName(name)
