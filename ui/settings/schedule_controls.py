"""Days as buttons and hours as clock fields; what is saved is what ``fleetapp settings`` takes."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QLocale, QSignalBlocker, Qt, QTime
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTimeEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.types import SettingView
from ui import theme
from ui.settings.controls import HEIGHT, Control

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MIDNIGHT = "24:00"


def days_of(text: str) -> frozenset[int]:
    """Weekdays, 0 is Monday, of a value that the agent has checked; none stands for all."""
    found: set[int] = set()
    for part in filter(None, (p.strip().lower() for p in text.split(","))):
        first, dash, last = (p.strip() for p in part.partition("-"))
        start = DAYS.index(first)
        span = (DAYS.index(last) - start) % 7 if dash else 0
        found |= {(start + i) % 7 for i in range(span + 1)}
    return frozenset(found) or frozenset(range(7))


def text_of_days(days: frozenset[int]) -> str:
    """The shortest way to write them: runs of three and more days as a range."""
    if len(days) in (0, 7):
        return ""
    parts = []
    left = sorted(days)
    while left:
        run = [left.pop(0)]
        while left and left[0] == run[-1] + 1:
            run.append(left.pop(0))
        names = [DAYS[d] for d in run]
        parts.append(f"{names[0]}-{names[-1]}" if len(run) > 2 else ",".join(names))
    return ",".join(parts)


def hours_of(text: str) -> list[tuple[str, str]]:
    """(from, to) of each range as ``hh:mm``."""
    parts = [p.strip() for p in text.split(",") if p.strip()]
    return [(a.strip(), b.strip()) for a, _, b in (p.partition("-") for p in parts)]


def normal_hours(text: str) -> str:
    """The same hours, written as the fields write them."""
    return ",".join(_range(_time(start), _time(stop)) for start, stop in hours_of(text))


def _time(text: str) -> QTime:
    """The end of a day is shown as the beginning of the next."""
    return QTime(0, 0) if text == _MIDNIGHT else QTime.fromString(text, "H:mm")


def _range(start: QTime, stop: QTime) -> str:
    """``18:00-08:00``; the end of the day is 24:00, or a whole day would be nothing at all."""
    until = _MIDNIGHT if stop == QTime(0, 0) else stop.toString("HH:mm")
    return f"{start.toString('HH:mm')}-{until}"


class DaysControl(Control):
    """Seven buttons in the order of the person's own week."""

    wide = True

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.line.setSpacing(theme.GRID // 2)
        locale = QLocale()
        first = locale.firstDayOfWeek().value - 1
        self.buttons: dict[int, QToolButton] = {}
        for day in ((first + i) % 7 for i in range(7)):
            button = QToolButton()
            button.setObjectName("day")
            button.setCheckable(True)
            button.setText(locale.dayName(day + 1, QLocale.FormatType.ShortFormat))
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setMinimumWidth(6 * theme.GRID)
            button.clicked.connect(self._clicked)
            self.buttons[day] = button
            self.add(button, name=locale.dayName(day + 1, QLocale.FormatType.LongFormat))
        self.line.addStretch(1)

    def show_value(self, value: bool | int | str) -> None:
        """Press those."""
        days = days_of(str(value))
        for day, button in self.buttons.items():
            button.setChecked(day in days)

    def _clicked(self) -> None:
        days = frozenset(day for day, button in self.buttons.items() if button.isChecked())
        text = text_of_days(days)
        if not days:
            self.show_value("")  # no day at all would be no schedule but a "no"
        self.chosen.emit(text)


class HoursControl(Control):
    """From and to, as many times as wanted; none is all day."""

    wide = True

    def __init__(self, view: SettingView, parent: QWidget | None = None) -> None:
        super().__init__(view, parent)
        self.column = QVBoxLayout()
        self.column.setSpacing(theme.GRID)
        self.line.addLayout(self.column, 1)
        self.nothing = theme.muted(QLabel(view.nothing[:1].upper() + view.nothing[1:]))
        self.column.addWidget(self.nothing)
        self.rows: list[HoursRow] = []
        self.more = QPushButton(self.tr("Add hours"))
        self.more.setAutoDefault(False)
        self.more.clicked.connect(self._add)
        self.more.setAccessibleName(self.tr("Add hours: {what}").format(what=view.label))
        self.setFocusProxy(self.more)
        self.column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self._shown = ""

    def show_value(self, value: bool | int | str) -> None:
        """Show the ranges; those that are there are kept, and with them the cursor."""
        self._shown = str(value)
        ranges = hours_of(self._shown)
        while len(self.rows) > len(ranges):
            row = self.rows.pop()
            self.column.removeWidget(row)
            row.hide()
            row.deleteLater()
        while len(self.rows) < len(ranges):
            row = HoursRow(self.view.label)
            row.start.editingFinished.connect(self.flush)
            row.stop.editingFinished.connect(self.flush)
            row.remove.clicked.connect(partial(self._remove, row))
            self.column.insertWidget(1 + len(self.rows), row)
            self.rows.append(row)
        for row, times in zip(self.rows, ranges, strict=True):
            row.show_times(*times)
        self.nothing.setVisible(not ranges)

    def flush(self) -> None:
        """Say what the fields say."""
        text = ",".join(row.text() for row in self.rows)
        if text != normal_hours(self._shown):
            self._shown = text
            self.chosen.emit(text)

    def _add(self) -> None:
        ranges = [row.text() for row in self.rows]
        self.chosen.emit(",".join([*ranges, "18:00-08:00"]))

    def _remove(self, row: HoursRow) -> None:
        self.chosen.emit(",".join(r.text() for r in self.rows if r is not row))


class HoursRow(QWidget):
    """One range."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.start, self.stop = QTimeEdit(), QTimeEdit()
        self._to_midnight = False
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        names = (self.tr("{what} from"), self.tr("{what} to"))
        for field, name in zip((self.start, self.stop), names, strict=True):
            field.setDisplayFormat("HH:mm")
            field.setKeyboardTracking(False)
            field.setMinimumSize(11 * theme.GRID, HEIGHT)
            field.setAccessibleName(name.format(what=label))
        self.remove = QToolButton()
        self.remove.setText(self.tr("Remove"))
        self.remove.setAccessibleName(self.tr("Remove these hours"))
        self.remove.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        row.addWidget(self.start)
        row.addWidget(QLabel(self.tr("to")))
        row.addWidget(self.stop)
        row.addWidget(self.remove)
        row.addStretch(1)

    def show_times(self, start: str, stop: str) -> None:
        """Show them, but not over what is being typed."""
        for field, text in ((self.start, start), (self.stop, stop)):
            if not field.hasFocus():
                with QSignalBlocker(field):
                    field.setTime(_time(text))

    def text(self) -> str:
        """As a setting has it."""
        return _range(self.start.time(), self.stop.time())
