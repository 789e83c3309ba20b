"""A menu whose entries change while it is open, as a tray's do: it stays on the screen."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QMenu, QWidget


class SteadyMenu(QMenu):
    """Qt gives an open menu the size of its new entries and leaves its corner where it was, off
    the screen if need be. This one keeps to the edge that it was opened at: above a panel it grows
    upwards.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._room = QRect()
        self._right = self._bottom = False
        """Whether it was opened at that edge."""

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Note where it was put."""
        super().showEvent(event)
        place = self.geometry()
        # a panel may keep its own strip of the screen, and its menu reach into it
        self._room = self.screen().availableGeometry().united(place & self.screen().geometry())
        self._right = place.right() >= self._room.right()
        self._bottom = place.bottom() >= self._room.bottom()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Its entries have changed."""
        super().resizeEvent(event)
        if self.isVisible() and self._room.isValid():
            self._keep_to_the_screen()

    def _keep_to_the_screen(self) -> None:
        place, room = self.geometry(), self._room
        if self._right or place.right() > room.right():
            place.moveRight(room.right())
        if self._bottom or place.bottom() > room.bottom():
            place.moveBottom(room.bottom())
        place.moveLeft(max(place.left(), room.left()))
        place.moveTop(max(place.top(), room.top()))
        if place.topLeft() != self.geometry().topLeft():
            self.move(place.topLeft())
