"""The table of PCs: sorting, filtering, and telling Qt of nothing but what has changed.

Sorting and filtering are done here with keys, not by a QSortFilterProxyModel: that one asks Python
for both cells of every comparison, which takes seconds where this takes milliseconds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from enum import IntEnum

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QGuiApplication, QPalette

from fleetapp.types import NodeView
from ui.fleet.palette import error_colour
from ui.fleet.rows import COLUMNS, Office, Row, hint, matches, same

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


class Role(IntEnum):
    """Of our own."""

    DEVICE = Qt.ItemDataRole.UserRole + 1


class NodesModel(QAbstractTableModel):
    """Rows as they are shown: filtered and sorted."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: list[Row] = []
        self._rows: list[Row] = []
        self._place: dict[str, int] = {}
        self._office = Office()
        self._asked: list[str] = []
        self._column = 0
        self._descending = False
        self._stale = False

    # ------------------------------------------------------------------ what is shown

    def update(self, rows: Sequence[Row], office: Office) -> None:
        """Show the newest state; the order of rows that have not changed stays."""
        self._all, self._office = list(rows), office
        self._arrange()

    def filter(self, text: str) -> None:
        """Show only PCs with all of these words somewhere in their row."""
        asked = text.casefold().split()
        if asked != self._asked:
            self._asked = asked
            self._arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By a column; PCs that are equal there by their names."""
        wanted = (max(0, column), order == Qt.SortOrder.DescendingOrder)
        if wanted != (self._column, self._descending):
            self._column, self._descending = wanted
            self._arrange()

    def set_stale(self, stale: bool) -> None:
        """Grey: this is how it was."""
        if stale != self._stale:
            self._stale = stale
            self._all_changed()

    @property
    def total(self) -> int:
        """PCs of the fleet, whether they are shown or not."""
        return len(self._all)

    def nodes(self, indexes: Iterable[Index]) -> list[NodeView]:
        """PCs of these cells, each once, in the order of the rows."""
        rows = sorted({i.row() for i in indexes if 0 <= i.row() < len(self._rows)})
        return [self._rows[r].node for r in rows]

    def row_of(self, device_id: str) -> int:
        """Where a PC is shown, or -1."""
        return self._place.get(device_id, -1)

    def texts(self, column: int, most: int) -> list[str]:
        """What the first rows say in one column."""
        shown = COLUMNS[column]
        return [shown.text(row, self._office) for row in self._rows[:most]]

    def csv(self) -> str:
        """What is shown, as it is shown, for a spreadsheet."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(column.title() for column in COLUMNS)
        for row in self._rows:
            writer.writerow(_harmless(column.text(row, self._office)) for column in COLUMNS)
        return out.getvalue()

    # ------------------------------------------------------------------ for Qt

    def rowCount(self, parent: Index = ROOT) -> int:  # noqa: N802 - Qt's name
        """All rows are at the top."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = ROOT) -> int:  # noqa: N802 - Qt's name
        """Always the same."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Titles of the columns."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Worked out for what is on the screen only."""
        if not 0 <= index.row() < len(self._rows):
            return None
        row, column = self._rows[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.text(row, self._office)
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(index.column())
            case Qt.ItemDataRole.ForegroundRole:
                return self._brush(row, column.key)
            case Qt.ItemDataRole.ToolTipRole:
                return hint(row, self._office, column.key)
        return row.node.device_id if role == Role.DEVICE else None

    def _brush(self, row: Row, key: str) -> QBrush | None:
        bad = (
            (key in ("state", "progress") and (row.failed or row.node.state == "suspected"))
            or (key == "certificate" and self._office.certificate_soon(row.node))
            or (key == "version" and self._office.skewed(row.node))
        )
        if bad and not self._stale:
            return QBrush(error_colour())
        if self._stale or row.node.state in ("offline", "revoked"):
            muted = QGuiApplication.palette().color(QPalette.ColorRole.PlaceholderText)
            return QBrush(muted)
        return None

    # ------------------------------------------------------------------ changes

    def _arrange(self) -> None:
        """Work out which rows are shown in which order, and tell what is different."""
        office, order = self._office, COLUMNS[self._column].order
        shown = [r for r in self._all if matches(r, office, self._asked)]
        if self._column:
            shown.sort(key=lambda r: COLUMNS[0].order(r, office))
        shown.sort(key=lambda r: order(r, office), reverse=self._descending)
        before = self._rows
        place = {r.node.device_id: i for i, r in enumerate(shown)}
        if list(place) == list(self._place):
            self._rows = shown
            self._tell([i for i, row in enumerate(shown) if not same(before[i], row)])
        else:
            self.layoutAboutToBeChanged.emit()
            kept = self.persistentIndexList()
            devices = [before[i.row()].node.device_id for i in kept]
            self._rows, self._place = shown, place
            moved = [
                self.index(place[d], i.column()) if d in place else QModelIndex()
                for i, d in zip(kept, devices, strict=True)
            ]
            self.changePersistentIndexList(kept, moved)
            self.layoutChanged.emit()

    def _tell(self, changed: Sequence[int]) -> None:
        """Neighbours together: each signal costs the views more than the cells do."""
        last = len(COLUMNS) - 1
        start = previous = -2
        for row in (*changed, -2):
            if row == previous + 1:
                previous = row
                continue
            if start >= 0:
                self.dataChanged.emit(self.index(start, 0), self.index(previous, last))
            start = previous = row

    def _all_changed(self) -> None:
        if self._rows:
            last = self.index(len(self._rows) - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)


def _alignment(section: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if COLUMNS[section].right else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _harmless(text: str) -> str:
    """A name that begins like a formula is run by spreadsheets (CWE-1236)."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
