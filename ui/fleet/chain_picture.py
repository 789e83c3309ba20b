"""A chain drawn stage by stage: who holds which layers, how long it takes, what the links are."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPalette,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from fleetapp.types import AssignmentView, ChainView, HopView
from ui import theme
from ui import words as common
from ui.chat.safe_text import one_line
from ui.fleet import words
from ui.fleet.palette import colour, error_colour
from ui.fleet.values import PlannedChain
from ui.view import UNDER_WAY

translate = QCoreApplication.translate

GAP = 10 * theme.GRID
"""Between two stages, for the arrow and what is known of the link."""
BELOW = 5 * theme.GRID
PAD = theme.GRID
MIN_BOX = 19 * theme.GRID
ARROW = 5.0


@dataclass(frozen=True)
class Box:
    """One stage as it is drawn."""

    title: str
    lines: tuple[str, ...]
    share: float | None = None
    """How much of the work under way is done; None if none is."""
    bad: bool = False
    works: bool = False
    link: str = ""
    """What is known of the way to the next stage."""


def boxes_of(chain: ChainView) -> list[Box]:
    """A chain as it is."""
    stages = sorted(chain.assignments, key=lambda a: a.stage)
    times = chain.load.stages if chain.load is not None else ()
    hops = {h.from_device: h for h in chain.hops}
    return [
        _box(a, times[i] if i < len(times) else 0.0, hops.get(a.device_id))
        for i, a in enumerate(stages)
    ]


def _box(a: AssignmentView, seconds: float, hop: HopView | None) -> Box:
    state = common.phase_name(a.phase)
    share = None
    if a.phase in UNDER_WAY:
        share = min(1.0, a.done / a.total) if a.total > 0 else 0.0
        if a.total > 0:
            state = translate("Fleet", "{phase} {n}%").format(phase=state, n=round(100 * share))
    layers = translate("Fleet", "layers {layers}").format(layers=a.layers)
    return Box(
        one_line(a.node),
        (
            " · ".join(filter(None, (layers, a.device))),
            " · ".join(filter(None, (state, words.milliseconds(seconds) if seconds else ""))),
        ),
        share,
        bad=a.phase == "failed",
        works=a.phase == "linked",
        link="" if hop is None else _link(hop),
    )


def _link(hop: HopView) -> str:
    parts = []
    if hop.rtt > 0:
        parts.append(words.milliseconds(hop.rtt))
    if hop.bandwidth > 0:
        parts.append(translate("Fleet", "{size}/s").format(size=common.size(round(hop.bandwidth))))
    return "\n".join(parts)


def planned_boxes(chain: PlannedChain) -> list[Box]:
    """A chain as the planner would make it."""
    return [
        Box(
            one_line(s.name),
            (
                translate("Fleet", "layers {layers} · {device}").format(
                    layers=s.layers, device=s.device
                ),
                translate("Fleet", "{size} · {ms}").format(
                    size=common.size(s.weight_bytes + s.cache_bytes),
                    ms=words.milliseconds(s.seconds),
                ),
            ),
        )
        for s in chain.stages
    ]


def told(boxes: list[Box]) -> str:
    """The picture for those who do not see it."""
    lines = []
    for number, box in enumerate(boxes, 1):
        said = ", ".join(filter(None, (box.title, *box.lines)))
        lines.append(translate("Fleet", "Stage {n}: {said}.").format(n=number, said=said))
        if box.link:
            lines.append(
                translate("Fleet", "Link: {link}.").format(link=box.link.replace("\n", ", "))
            )
    return " ".join(lines)


class ChainPicture(QWidget):
    """Boxes from left to right, in as many rows as the width asks for."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: list[Box] = []
        self._pale = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_boxes(self, boxes: list[Box], name: str, *, pale: bool = False) -> None:
        """Draw these; ``name`` is said to screen readers, with the stages as its description."""
        self.setAccessibleName(name)
        self.setAccessibleDescription(told(boxes))
        if (boxes, pale) == (self.boxes, self._pale):
            return
        taller = len(boxes) != len(self.boxes) or self._wide(boxes) != self._wide(self.boxes)
        self.boxes, self._pale = boxes, pale
        self.setToolTip("\n".join(f"{b.title}: {', '.join(b.lines)}" for b in boxes))
        if taller:
            self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """More rows where it is narrow."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Of all rows."""
        places = self.places(width)
        return round(places[-1].bottom() + BELOW) if places else 0

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """As wide as there is room."""
        return QSize(MIN_BOX * 3, self.heightForWidth(MIN_BOX * 3))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """One box in a row is the least."""
        return QSize(MIN_BOX + GAP, round(self._tall()) + BELOW)

    def places(self, width: int) -> list[QRectF]:
        """Where each box is drawn."""
        wide, tall = self._wide(self.boxes), self._tall()
        in_a_row = max(1, int((width - 4) // (wide + GAP)))
        return [
            QRectF(
                2 + (i % in_a_row) * (wide + GAP), 2 + (i // in_a_row) * (tall + BELOW), wide, tall
            )
            for i in range(len(self.boxes))
        ]

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, ARG002 - Qt's name
        """Boxes, then arrows; the last one leads back to the first stage."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._pale:
            painter.setOpacity(0.5)
        places = self.places(self.width())
        for box, place in zip(self.boxes, places, strict=True):
            self._paint_box(painter, box, place)
        for i, (box, place) in enumerate(zip(self.boxes, places, strict=True)):
            last = i == len(places) - 1
            if len(places) > 1:
                self._paint_link(painter, box.link, place, None if last else places[i + 1])
        if self.hasFocus():
            painter.setOpacity(1.0)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour(QPalette.ColorRole.Highlight), 1, Qt.PenStyle.DashLine))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    # ------------------------------------------------------------------ parts

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _wide(self, boxes: list[Box]) -> float:
        plain, bold = QFontMetricsF(self.font()), QFontMetricsF(self._bold())
        widest = max(
            (
                max(bold.horizontalAdvance(b.title), *(plain.horizontalAdvance(t) for t in b.lines))
                for b in boxes
            ),
            default=0.0,
        )
        return min(2.0 * MIN_BOX, max(MIN_BOX, widest + 2 * PAD + 4))

    def _tall(self) -> float:
        return 3 * QFontMetricsF(self.font()).height() + 2 * PAD + 6

    def _paint_box(self, painter: QPainter, box: Box, place: QRectF) -> None:
        edge = colour(QPalette.ColorRole.Mid)
        if box.works:
            edge = colour(QPalette.ColorRole.Highlight)
        if box.bad:
            edge = error_colour()
        painter.setPen(QPen(edge, 2 if box.works or box.bad else 1))
        painter.setBrush(colour(QPalette.ColorRole.Base))
        painter.drawRoundedRect(place, 6, 6)
        inside = place.adjusted(PAD, PAD, -PAD, -PAD)
        line = QFontMetricsF(self.font()).height()
        bold = self._bold()
        painter.setFont(bold)
        painter.setPen(colour(QPalette.ColorRole.WindowText))
        self._text(painter, QFontMetricsF(bold), box.title, inside, 0.0)
        painter.setFont(self.font())
        metrics = QFontMetricsF(self.font())
        for i, text in enumerate(box.lines):
            last = i == len(box.lines) - 1
            painter.setPen(
                error_colour() if box.bad and last else colour(QPalette.ColorRole.PlaceholderText)
            )
            self._text(painter, metrics, text, inside, (i + 1) * (line + 1))
        if box.share is not None:
            bar = QRectF(place.left() + PAD, place.bottom() - 5, place.width() - 2 * PAD, 3)
            painter.fillRect(bar, colour(QPalette.ColorRole.Mid))
            bar.setWidth(bar.width() * box.share)
            painter.fillRect(bar, colour(QPalette.ColorRole.Highlight))

    def _text(
        self, painter: QPainter, metrics: QFontMetricsF, text: str, inside: QRectF, down: float
    ) -> None:
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(QPointF(inside.left(), inside.top() + down + metrics.ascent()), shown)

    def _paint_link(self, painter: QPainter, text: str, start: QRectF, end: QRectF | None) -> None:
        """``end`` None: back to the head, said by a bent arrow."""
        ink = colour(QPalette.ColorRole.PlaceholderText)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(ink, 1.5))
        y = start.center().y()
        begin = QPointF(start.right() + 4, y)
        if end is not None and end.top() == start.top():
            tip = QPointF(end.left() - 4, y)
            painter.drawLine(begin, tip)
            self._head(painter, ink, tip, down=False)
        else:
            # on to the next row, or back to the head: round the corner below the boxes
            turn = QPointF(start.right() + GAP - 4, y)
            foot = QPointF(turn.x(), start.bottom() + BELOW / 2)
            goal = end.center().x() if end is not None else start.center().x()
            path = QPainterPath(begin)
            path.lineTo(turn)
            path.lineTo(foot)
            path.lineTo(QPointF(goal, foot.y()))
            if end is not None:
                tip = QPointF(goal, end.top() - 3)
                path.lineTo(tip)
                painter.drawPath(path)
                self._head(painter, ink, tip, down=True)
            else:
                painter.drawPath(path)
                self._note(painter, ink, translate("Fleet", "back to the head"), path, goal)
        self._label(painter, ink, text, start)

    def _head(self, painter: QPainter, ink: QColor, tip: QPointF, *, down: bool) -> None:
        path = QPainterPath(tip)
        if down:
            path.lineTo(tip.x() - ARROW, tip.y() - ARROW)
            path.lineTo(tip.x() + ARROW, tip.y() - ARROW)
        else:
            path.lineTo(tip.x() - ARROW, tip.y() - ARROW)
            path.lineTo(tip.x() - ARROW, tip.y() + ARROW)
        painter.fillPath(path, ink)

    def _note(
        self, painter: QPainter, ink: QColor, text: str, path: QPainterPath, goal: float
    ) -> None:
        metrics = QFontMetricsF(self.font())
        foot = path.currentPosition().y()
        left = max(2.0, goal - metrics.horizontalAdvance(text) - 3 * ARROW)
        tip = QPointF(left + metrics.horizontalAdvance(text) + ARROW, foot)
        head = QPainterPath(tip)
        head.lineTo(tip.x() + ARROW, tip.y() - ARROW)
        head.lineTo(tip.x() + ARROW, tip.y() + ARROW)
        painter.fillPath(head, ink)
        painter.drawLine(tip, QPointF(goal, foot))
        painter.setPen(ink)
        painter.drawText(QPointF(left, foot + metrics.ascent() / 2 - 1), text)

    def _label(self, painter: QPainter, ink: QColor, text: str, start: QRectF) -> None:
        if not text:
            return
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.85)
        painter.setFont(font)
        painter.setPen(ink)
        metrics = QFontMetricsF(font)
        above, _, below = text.partition("\n")
        y = start.center().y()
        for said, place in ((above, y - 5), (below, y + metrics.ascent() + 3)):
            width = metrics.horizontalAdvance(said)
            painter.drawText(QPointF(start.right() + (GAP - width) / 2, place), said)
        painter.setFont(self.font())
