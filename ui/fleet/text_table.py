"""A small read-only table of texts: join codes, API keys, the audit log, alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QPalette
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from ui import theme
from ui.fleet.palette import colour

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()
LEAST_ROWS = 3
"""Less of a table is no help."""
ROW_HEIGHT = 4 * theme.GRID


@dataclass(frozen=True)
class Entry:
    """One row."""

    id: str
    cells: tuple[str, ...]
    muted: bool = False
    """Of no use any more."""
    hint: str = ""


class TextModel(QAbstractTableModel):
    """All entries; replaced as a whole, they are few."""

    def __init__(
        self, titles: Sequence[str], right: Sequence[int] = (), *, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._titles = tuple(titles)
        self._right = frozenset(right)
        self.entries: tuple[Entry, ...] = ()

    def show(self, entries: Sequence[Entry]) -> None:
        """Show these; nothing happens if they are shown already."""
        fresh = tuple(entries)
        if fresh == self.entries:
            return
        if [e.id for e in fresh] == [e.id for e in self.entries]:
            self.entries = fresh
            last = self.index(len(fresh) - 1, len(self._titles) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self.entries = fresh
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:  # noqa: N802 - Qt's name
        """All rows are at the top."""
        return 0 if parent.isValid() else len(self.entries)

    def columnCount(self, parent: Index = ROOT) -> int:  # noqa: N802 - Qt's name
        """Always the same."""
        return 0 if parent.isValid() else len(self._titles)

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Titles of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._titles[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Texts as they are: nothing is taken for markup."""
        entry = self.entries[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.cells[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return entry.hint or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        if role == Qt.ItemDataRole.ForegroundRole and entry.muted:
            return QBrush(colour(QPalette.ColorRole.PlaceholderText))
        return None

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        right = column in self._right
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


class TextTable(QTableView):
    """Whole rows are chosen; Tab leaves it."""

    def __init__(
        self,
        name: str,
        titles: Sequence[str],
        widths: Sequence[int],
        right: Sequence[int] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.entries = TextModel(titles, right, parent=self)
        self.setModel(self.entries)
        self.setAccessibleName(name)
        plain(self)
        for column, width in enumerate(widths):
            fit_column(self, column, width)
        self.horizontalHeader().setStretchLastSection(True)

    def chosen(self) -> Entry | None:
        """The entry that is selected."""
        rows = self.selectionModel().selectedRows()
        return self.entries.entries[rows[0].row()] if rows else None

    def choose(self, entry_id: str) -> bool:
        """Select an entry; False if there is none of that id."""
        for row, entry in enumerate(self.entries.entries):
            if entry.id == entry_id:
                self.selectRow(row)
                return True
        return False


def fit_column(table: QTableView, column: int, letters: int, longest: int = 0) -> None:
    """Room for so many letters, and in any language for the column's title.

    Args:
        table: whose model must be set.
        column: which.
        letters: how many fit; with ``longest`` how many fit at most twice over.
        longest: width of the widest text that is there, in pixels; 0 if that is not known.
    """
    wanted = letters * table.fontMetrics().averageCharWidth()
    if longest:
        wanted = min(longest + theme.GRID, 2 * wanted)
    wanted += 2 * theme.GRID
    title = str(table.model().headerData(column, Qt.Orientation.Horizontal))
    # around it: its margins, and the arrow that shows how the table is sorted
    room = table.horizontalHeader().fontMetrics().horizontalAdvance(title) + 5 * theme.GRID
    table.setColumnWidth(column, max(wanted, room))


def plain(table: QTableView) -> None:
    """What all tables have in common."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setAlternatingRowColors(True)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setCornerButtonEnabled(False)
    rows = table.verticalHeader()
    rows.hide()
    # all rows alike: Qt then needs not ask for each how high it would like to be
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setDefaultSectionSize(max(ROW_HEIGHT, table.fontMetrics().height() + theme.GRID))
    head = table.horizontalHeader()
    table.setMinimumHeight(LEAST_ROWS * rows.defaultSectionSize() + head.sizeHint().height())
    head.setHighlightSections(False)
    head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
