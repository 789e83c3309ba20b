"""The desktop app exactly as people start it, with an ear for whoever tests it.

::

    python -m tests.support.driven_app

Each line on standard input is a Python expression about ``desktop``; the answer is one line of
JSON, ``{"value": …}`` or ``{"error": "…"}``. It only tells where things are and what they say:
mouse and keyboard are the test's own (see ``person.py``).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from PySide6.QtCore import QModelIndex, QPoint, QSocketNotifier
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractItemView, QApplication, QMenu, QMessageBox, QWidget

from ui import app
from ui.desktop import Desktop
from ui.keeper import agent_command


def spot(widget: QWidget, at: QPoint | None = None) -> tuple[int, int]:
    """Where on the screen a click reaches ``widget``.

    Raises:
        LookupError: a person could not click on it now.
    """
    name = type(widget).__name__
    if not widget.isVisible():
        raise LookupError(f"{name} is not visible")
    if not widget.isEnabled():
        raise LookupError(f"{name} is not enabled")
    place = widget.mapToGlobal(widget.rect().center() if at is None else at)
    there = QApplication.widgetAt(place)
    if there is not widget and not (there is not None and widget.isAncestorOf(there)):
        raise LookupError(f"{name} is hidden by {there}")
    return place.x(), place.y()


def spot_of_row(view: QAbstractItemView, index: QModelIndex) -> tuple[int, int]:
    """Where a row of a table can be clicked."""
    if not index.isValid():
        raise LookupError("no such row")
    return spot(view.viewport(), view.visualRect(index).center())


def spot_of_action(menu: QMenu, action: QAction) -> tuple[int, int]:
    """Where an entry of an open menu is."""
    if not (action.isVisible() and action.isEnabled()):
        raise LookupError(f"{action.text()} cannot be chosen")
    return spot(menu, menu.actionGeometry(action).center())


def spot_of_yes(question: object) -> tuple[int, int]:
    """The button of a question that does it."""
    if not isinstance(question, QMessageBox):
        raise LookupError("nothing is asked")  # noqa: TRY004 - not there yet
    role = QMessageBox.ButtonRole.DestructiveRole
    return spot(next(b for b in question.buttons() if question.buttonRole(b) == role))


def listen(desktop: Desktop) -> QSocketNotifier:
    """Answer lines from standard input between other events."""
    known: dict[str, Any] = {
        "desktop": desktop,
        **{f.__name__: f for f in (spot, spot_of_row, spot_of_action, spot_of_yes)},
    }
    rest = b""

    def heard() -> None:
        nonlocal rest
        read = os.read(0, 65536)
        if not read:
            ear.setEnabled(False)
            return
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            try:
                answer = {"value": eval(line.decode(), dict(known))}
                said = json.dumps(answer)
            except Exception as problem:
                said = json.dumps({"error": f"{type(problem).__name__}: {problem}"})
            print(said, flush=True)

    ear = QSocketNotifier(0, QSocketNotifier.Type.Read, desktop)
    ear.activated.connect(heard)
    return ear


def main() -> None:
    """As ``ui.app.main``."""
    start = Desktop.start

    def heard_start(desktop: Desktop) -> None:
        listen(desktop)
        start(desktop)

    Desktop.start = heard_start  # type: ignore[method-assign]
    sys.exit(app.run(sys.argv, agent_command()))


if __name__ == "__main__":
    main()
