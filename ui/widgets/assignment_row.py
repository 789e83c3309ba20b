"""One shard on this PC: what it is, which phase it is in, how far."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QVBoxLayout, QWidget

from fleetapp.types import AssignmentView
from ui import theme, words
from ui.view import UNDER_WAY
from ui.widgets.card import text_label


class AssignmentRow(QWidget):
    """Updated in place, so that nothing flickers while bytes come in."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pace = words.Pace()
        self.name = QLabel()
        self.name.setTextFormat(Qt.TextFormat.PlainText)
        self.progress = text_label(muted=True)
        self.bar = QProgressBar(textVisible=False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID // 2, 0, 0)
        column.setSpacing(theme.GRID // 2)
        column.addWidget(self.name)
        column.addWidget(self.bar)
        column.addWidget(self.progress)

    def update_from(self, assignment: AssignmentView) -> None:
        """Show the newest state of the same shard."""
        shard = words.shard_name(assignment)
        self.name.setText(f"{assignment.model} · {shard}")
        left = self.pace.seconds_left(assignment, time.monotonic())
        self.progress.setText(words.progress_line(assignment, left))
        theme.mark_error(self.progress, on=assignment.phase == "failed")
        self.bar.setVisible(assignment.phase in UNDER_WAY)
        self.bar.setAccessibleName(self.tr("Progress of {shard}").format(shard=shard))
        if assignment.total > 0:
            # thousandths: bytes may not fit the control's 32 bits
            self.bar.setRange(0, 1000)
            self.bar.setValue(min(1000, 1000 * assignment.done // assignment.total))
        else:
            self.bar.setRange(0, 0)
