"""Where a question is typed, sent and stopped."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from ui import theme
from ui.chat.safe_text import cut_long_lines
from ui.widgets.card import text_label

MOST_LINES = 8


class Composer(QWidget):
    """Return sends, with Shift it begins a new line."""

    sent = Signal(str)
    stopped = Signal()
    edit_left = Signal()
    """The person gave up editing an earlier question."""
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._busy = False
        self.banner = QWidget()
        self._warning = text_label()
        self.leave_edit = QPushButton(self.tr("Keep it as it is"))
        self.leave_edit.setAutoDefault(False)
        self.leave_edit.clicked.connect(self.edit_left)
        banner = QHBoxLayout(self.banner)
        banner.setContentsMargins(0, 0, 0, 0)
        banner.addWidget(self._warning, 1)
        banner.addWidget(self.leave_edit)
        self.banner.hide()
        self.text = _Question()
        self.text.setAccessibleName(self.tr("Your question"))
        keys = self.tr("Enter sends, Shift+Enter breaks the line.")
        self.text.setToolTip(keys)
        self.text.setAccessibleDescription(keys)
        ask = self.tr("Ask the fleet.")
        self.text.set_hints(f"{ask} {keys}", self.tr("Ask the fleet…"))
        self.text.submitted.connect(self.submit)
        self.text.textChanged.connect(self._text_changed)
        self.note = text_label(
            self.tr("Very long lines of the pasted text were broken."), muted=True
        )
        self.note.hide()
        self.text.broken.connect(self.note.show)
        self.send = QPushButton(self.tr("&Send"))
        self.send.setDefault(True)
        self.send.clicked.connect(self.submit)
        self.stop = QPushButton(self.tr("S&top"))
        self.stop.setToolTip(self.tr("Stop this answer (Esc)"))
        self.stop.setAutoDefault(False)
        self.stop.clicked.connect(self.stopped)
        row = QHBoxLayout()
        row.setSpacing(theme.GRID)
        row.addWidget(self.text, 1)
        row.addWidget(self.send, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.GRID)
        column.addWidget(self.banner)
        column.addWidget(self.note)
        column.addLayout(row)
        self.set_busy(False)

    def set_busy(self, busy: bool) -> None:
        """Whether an answer is under way here: then it can be stopped, and nothing sent."""
        self._busy = busy
        had_focus = self.send.hasFocus() or self.stop.hasFocus()
        self.stop.setVisible(busy)
        self.send.setVisible(not busy)
        if had_focus:
            (self.stop if busy else self.text).setFocus()
        self._text_changed()

    def set_text(self, text: str) -> None:
        """Put another text there, the cursor at its end."""
        self.text.setPlainText(cut_long_lines(text))
        self.text.moveCursor(self.text.textCursor().MoveOperation.End)

    def current_text(self) -> str:
        return self.text.toPlainText()

    def warn(self, warning: str) -> None:
        """Say what sending removes; the empty text ends editing."""
        self._warning.setText(warning)
        self.banner.setVisible(bool(warning))

    def submit(self) -> None:
        """Send what is there, if anything is and nothing is under way."""
        text = self.current_text().strip()
        if text and not self._busy:
            self.sent.emit(text)

    def _text_changed(self) -> None:
        text = self.current_text().strip()
        self.send.setEnabled(bool(text))
        if not text:
            self.note.hide()
        self.text.fit()
        self.changed.emit()


class _Question(QPlainTextEdit):
    submitted = Signal()
    broken = Signal()
    """Lines of what was pasted were too long."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("question-input")
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(theme.GRID // 2)
        self._hints: tuple[str, ...] = ()
        self.fit()

    def set_hints(self, *hints: str) -> None:
        """What the empty field says: the first that fits into its one line, else the last."""
        self._hints = hints
        self._choose_hint()

    def _choose_hint(self) -> None:
        if not self._hints:
            return
        room = self.viewport().width() - 2 * self.document().documentMargin()
        said = next(
            (h for h in self._hints if self.fontMetrics().horizontalAdvance(h) <= room),
            self._hints[-1],
        )
        if said != self.placeholderText():
            self.setPlaceholderText(said)

    def fit(self) -> None:
        """As high as its lines, within limits."""
        # more than this is taller than MOST_LINES anyway and would only be laid out for nothing
        lines = MOST_LINES
        if self.document().characterCount() < 5000:
            lines = int(self.document().size().height())
        rows = max(1, min(MOST_LINES, lines))
        height = rows * self.fontMetrics().lineSpacing() + 3 * theme.GRID
        if height != self.height():
            self.setFixedHeight(height)

    def resizeEvent(self, event) -> None:  # type: ignore[no-untyped-def]  # noqa: N802
        super().resizeEvent(event)
        self.fit()
        self._choose_hint()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.fit()
            self._choose_hint()

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802 - Qt's name
        """Paste text only, with endless lines broken: a megabyte of one takes Qt minutes."""
        if not source.hasText():
            return
        text = source.text()
        broken = cut_long_lines(text)
        self.textCursor().insertText(broken)
        if broken != text:
            self.broken.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
        else:
            super().keyPressEvent(event)
