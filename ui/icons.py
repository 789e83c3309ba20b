"""Our own SVG icons at every size a panel asks for.

A state is told by the outline as well as by the colour: broken ring, diamond with dots, disc with a
tick, hexagon, ring that fills, two bars, triangle, shield, square.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ui.view import IconName

SIZES = (16, 20, 22, 24, 32, 44, 48, 64, 96, 128)
STEP = 5
"""Percent; a finer ring cannot be told apart at 16 pixels."""


def app_icon() -> QIcon:
    """The icon of windows and of the program itself."""
    return _icon("fleetapp", None)


def state_icon(name: IconName, percent: int | None = None) -> QIcon:
    """Icon of a state; ``percent`` fills the ring of ``preparing``."""
    step = None if percent is None or name != "preparing" else percent - percent % STEP
    return _icon(f"state-{name}", step)


@lru_cache(maxsize=64)
def _icon(name: str, percent: int | None) -> QIcon:
    renderer = QSvgRenderer(QByteArray((files("resources") / "icons" / f"{name}.svg").read_bytes()))
    icon = QIcon()
    for side in SIZES:
        pixmap = QPixmap(side, side)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        renderer.render(painter)
        if percent:
            painter.scale(side / 32, side / 32)
            pen = QPen(QColor("#0b7285"), 4.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap)
            painter.setPen(pen)
            # Qt counts sixteenths of a degree, counter-clockwise, from three o'clock
            painter.drawArc(QRectF(3.5, 3.5, 25, 25), 90 * 16, round(-percent * 3.6 * 16))
        painter.end()
        icon.addPixmap(pixmap)
    return icon


@lru_cache(maxsize=16)
def symbol(name: str, colour: str, side: int = 16, ratio: float = 1.0) -> QPixmap:
    """A small picture in one colour, that of the text beside it, for a screen's ratio of pixels."""
    drawing = (files("resources") / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(drawing.replace("currentColor", colour).encode()))
    pixmap = QPixmap(round(side * ratio), round(side * ratio))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap
