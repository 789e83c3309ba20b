"""Fewer repaints than updates."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

INTERVAL_MS = 34
"""At most 30 a second; more only makes text flicker."""

_NOTHING = object()


class Coalescer(QObject):
    """Passes the newest of many values on: the first at once, then one per interval."""

    passed = Signal(object)

    def __init__(self, parent: QObject | None = None, interval_ms: int = INTERVAL_MS) -> None:
        super().__init__(parent)
        self._next: object = _NOTHING
        self._quiet = QTimer(self, interval=interval_ms)
        self._quiet.timeout.connect(self._tick)

    def submit(self, value: object) -> None:
        """Remember ``value``; whatever has not been passed yet is forgotten."""
        self._next = value
        if not self._quiet.isActive():
            self._tick()

    def _tick(self) -> None:
        if self._next is _NOTHING:
            self._quiet.stop()
            return
        value, self._next = self._next, _NOTHING
        self._quiet.start()
        self.passed.emit(value)
