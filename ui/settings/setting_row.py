"""One setting: its words, its control, its default, and who else has a say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QEvent, QLocale, Qt, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from fleetapp.types import SettingKind, SettingView
from ui import theme
from ui.icons import symbol
from ui.settings.controls import (
    ChoiceControl,
    Control,
    DevicesControl,
    FolderControl,
    NumberControl,
    SwitchControl,
    TextControl,
)
from ui.settings.model import Row
from ui.settings.schedule_controls import DaysControl, HoursControl, days_of, text_of_days
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

CONTROLS: Final[Mapping[SettingKind, type[Control]]] = {
    "switch": SwitchControl,
    "number": NumberControl,
    "choice": ChoiceControl,
    "text": TextControl,
    "host_port": TextControl,
    "addresses": TextControl,
    "programs": TextControl,
    "folder": FolderControl,
    "devices": DevicesControl,
    "days": DaysControl,
    "hours": HoursControl,
}


class SettingRow(QFrame):
    """Shows a Row; asks for changes and resets by signals."""

    chosen = Signal(str, object)
    """Name and value that the person wants."""
    reset_asked = Signal(str)

    def __init__(self, row: Row, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        view = row.view
        self.name = view.name
        self.control = CONTROLS[view.kind](view)
        self.control.chosen.connect(lambda value: self.chosen.emit(self.name, value))
        self.label = QLabel(view.label)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setWordWrap(True)
        font = self.label.font()
        font.setWeight(font.Weight.DemiBold)
        self.label.setFont(font)
        self.label.setBuddy(self.control)
        self.help = text_label(muted=True)
        self.lock = QLabel()
        self.manager = text_label(muted=True)
        self.managed = QWidget()
        managed = QHBoxLayout(self.managed)
        managed.setContentsMargins(0, 0, 0, 0)
        managed.setSpacing(theme.GRID)
        managed.addWidget(self.lock, 0, Qt.AlignmentFlag.AlignTop)
        managed.addWidget(self.manager, 1)
        self.note = text_label(muted=True)
        self.notice = Notice()
        self.reset = QPushButton(self.tr("Reset"))
        self.reset.setAutoDefault(False)
        self.reset.setAccessibleName(self.tr("Reset: {what}").format(what=view.label))
        self.reset.clicked.connect(lambda: self.reset_asked.emit(self.name))
        # its place is kept while it is hidden, so that nothing jumps
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(policy)

        words = QVBoxLayout()
        words.setSpacing(theme.GRID // 2)
        words.addWidget(self.label)
        words.addWidget(self.help)
        top = QHBoxLayout()
        top.setSpacing(2 * theme.GRID)
        top.addLayout(words, 1)
        if not self.control.wide:
            top.addWidget(self.control, 0, Qt.AlignmentFlag.AlignTop)
        top.addWidget(self.reset, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, theme.GRID)
        column.setSpacing(theme.GRID)
        column.addLayout(top)
        if self.control.wide:
            column.addWidget(self.control)
        for widget in (self.notice, self.managed, self.note):
            column.addWidget(widget)
        self.setFocusProxy(self.control)
        self.show_row(row)

    def show_row(self, row: Row) -> None:
        """Show how it stands now; what was refused stays in its control."""
        view = row.view
        default = default_text(view, self.tr("on"), self.tr("off"))
        self.help.setText(" ".join((view.help, self.tr("Default: {value}.").format(value=default))))
        if not row.saving and not row.error:
            self.control.show_value(view.value)
        self.control.setEnabled(row.changeable)
        self.reset.setVisible(row.resettable)
        self.reset.setToolTip(self.tr("Back to: {value}").format(value=default))
        self._show_manager(row)
        self._show_note(row)
        if row.error:
            self.notice.show_text(row.error)
        else:
            self.notice.clear()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """The lock follows the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.managed.isVisibleTo(self):
            self._draw_lock()

    def _show_manager(self, row: Row) -> None:
        self.managed.setVisible(not row.changeable)
        if row.from_environment:
            self.manager.setText(
                self.tr("Set by the environment variable {name}.").format(
                    name=f"FLEETAPP_{self.name.upper()}"
                )
            )
        elif row.locked_by:
            self.manager.setText(self.tr("Managed by {whom}.").format(whom=row.locked_by))
        if not row.changeable:
            self._draw_lock()

    def _draw_lock(self) -> None:
        colour = self.palette().color(QPalette.ColorRole.WindowText).name()
        self.lock.setPixmap(symbol("lock", colour, 16, self.devicePixelRatioF()))

    def _show_note(self, row: Row) -> None:
        if row.view.pending:
            text = self.tr("The agent takes this over at its next start.")
        elif row.view.applies == "next load" and row.view.source == "user":
            text = self.tr("Holds for models that are loaded from now on.")
        else:
            text = ""
        self.note.setText(text)
        self.note.setVisible(bool(text))


def default_text(view: SettingView, on: str, off: str) -> str:
    """The default as people read it."""
    value = view.default
    if isinstance(value, bool):
        return on if value else off
    if view.kind == "choice":
        return next((o.label for o in view.options if o.value == value), str(value))
    if value in (0, "") and view.nothing:
        return view.nothing
    if view.kind == "days":
        return text_of_days(days_of(str(value)))
    if view.unit:
        return f"{QLocale().toString(int(value))}\N{NO-BREAK SPACE}{view.unit}"
    return str(value)
