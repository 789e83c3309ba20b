"""The table of PCs with its filter, and what an admin can do to them."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.types import NodeView
from ui import theme
from ui.chat.safe_text import one_line
from ui.fleet import asking
from ui.fleet.commands import BY_NAME, COMMANDS, Command, CommandName, named, possible
from ui.fleet.model import FleetModel
from ui.fleet.nodes_model import NodesModel
from ui.fleet.rows import COLUMNS
from ui.fleet.text_table import fit_column, plain
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

DIRECT: tuple[CommandName, ...] = ("drain", "undrain", "rename")
"""Commands with a button of their own; the others are in the menu."""
_OTHER: dict[CommandName, CommandName] = {"drain": "undrain", "undrain": "drain"}
"""Stands where the first stood when that has been done."""
SAMPLE = 200
"""PCs by which the widths of the columns are chosen."""
PAIRS: tuple[tuple[CommandName, CommandName], ...] = (
    ("drain", "undrain"),
    ("revoke", "reinstate"),
    ("admin", "member"),
)


class NodesPage(QWidget):
    """Follows a FleetModel."""

    def __init__(self, model: FleetModel, notice: Notice, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._fitted = False
        self._notice = notice
        self.question: QWidget | None = None
        self.rows = NodesModel(self)
        self.filter = QLineEdit(placeholderText=self.tr("Filter: name, state, model, version…"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName(self.tr("Filter the table of PCs"))
        self.filter.textChanged.connect(self._filter)
        self.count = text_label(muted=True)
        self.count.setWordWrap(False)
        self.actions_of = {command.name: self._action(command) for command in COMMANDS}
        self.menu = QMenu(self)
        for command in COMMANDS:
            if command.name in ("rename", "admin", "evict"):
                self.menu.addSeparator()
            self.menu.addAction(self.actions_of[command.name])
        self._build()
        model.changed.connect(self._changed)
        self._changed()

    def _build(self) -> None:
        self.table = QTableView()
        self.table.setAccessibleName(self.tr("PCs of the fleet"))
        self.table.setModel(self.rows)
        plain(self.table)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        for index, shown in enumerate(COLUMNS):
            fit_column(self.table, index, shown.width)
        head = self.table.horizontalHeader()
        head.setSectionsMovable(True)
        head.setSortIndicator(0, Qt.SortOrder.AscendingOrder)
        self.table.setSortingEnabled(True)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.customContextMenuRequested.connect(self._context)
        self.table.selectionModel().selectionChanged.connect(self._show_possible)
        self.empty = text_label(muted=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)

        self._buttons: dict[CommandName, QPushButton] = {}
        bar = QHBoxLayout()
        bar.setSpacing(theme.GRID)
        bar.addWidget(self.filter, 1)
        bar.addWidget(self.count)
        for name in DIRECT:
            button = QPushButton(BY_NAME[name].label())
            button.setAutoDefault(False)
            button.clicked.connect(partial(self.give, name))
            self._buttons[name] = button
            bar.addWidget(button)
        self.more = QToolButton()
        self.more.setText(self.tr("More ▾"))
        self.more.setAccessibleName(self.tr("More for the chosen PCs"))
        self.more.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(self.menu)
        bar.addWidget(self.more)
        self.export = QPushButton(self.tr("CS&V…"))
        self.export.setAccessibleName(self.tr("Save the table as CSV"))
        self.export.setToolTip(self.tr("Save what the table shows for a spreadsheet"))
        self.export.setAutoDefault(False)
        self.export.clicked.connect(self._save)
        bar.addWidget(self.export)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, 0)
        column.setSpacing(theme.GRID)
        column.addLayout(bar)
        column.addWidget(self.empty)
        column.addWidget(self.table, 1)

    def _action(self, command: Command) -> QAction:
        action = QAction(command.label(), self)
        action.triggered.connect(partial(self.give, command.name))
        if command.name == "rename":
            action.setShortcut(QKeySequence(Qt.Key.Key_F2))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            self.addAction(action)
        return action

    # ------------------------------------------------------------------ what is shown

    def chosen(self) -> list[NodeView]:
        """PCs that are selected."""
        return self.rows.nodes(self.table.selectionModel().selectedIndexes())

    def choose(self, device_id: str) -> bool:
        """Select one PC and bring it into sight; False if the filter hides it."""
        if self.rows.row_of(device_id) < 0:
            self.filter.clear()
        row = self.rows.row_of(device_id)
        if row < 0:
            return False
        self.table.selectRow(row)
        self.table.scrollTo(self.rows.index(row, 0))
        self.table.setFocus()
        return True

    def _changed(self) -> None:
        stale = self._model.freshness == "stale"
        self.rows.set_stale(stale)
        self.rows.update(self._model.rows, self._model.office)
        self._fit_columns()
        self._show_count()
        self._show_possible()

    def _fit_columns(self) -> None:
        """Once, when the first PCs are there: as wide as what they say, so that nothing is cut."""
        if self._fitted or not self.rows.rowCount():
            return
        self._fitted = True
        for index, column in enumerate(COLUMNS):
            texts = self.rows.texts(index, SAMPLE)
            longest = max(map(self.table.fontMetrics().horizontalAdvance, texts), default=0)
            fit_column(self.table, index, column.width, longest)

    def _filter(self, text: str) -> None:
        self.rows.filter(text)
        self._show_count()
        self._show_possible()

    def _show_count(self) -> None:
        shown, total = self.rows.rowCount(), self.rows.total
        self.count.setText(
            self.tr("{n} of {all}").format(n=shown, all=total) if shown != total else str(total)
        )
        if total and not shown:
            self.empty.setText(self.tr("No PC matches. Esc in the filter shows all again."))
        elif total == 1:
            self.empty.setText(
                self.tr(
                    "This PC is alone in its fleet. Make a join code (tab “Join codes”) and enter "
                    "it on the others."
                )
            )
        else:
            self.empty.setText(self.tr("Nothing is known of the fleet yet."))
        self.empty.setVisible(total <= 1 or not shown)

    def _show_possible(self) -> None:
        nodes = self.chosen()
        rights = self._model.rights
        live = self._model.freshness == "live"
        can = {c.name: live and possible(c, nodes, rights) for c in COMMANDS}
        for name, action in self.actions_of.items():
            action.setEnabled(can[name])
        # only one of a pair is of use; without a choice the first stands for both
        for one, other in PAIRS:
            self.actions_of[other].setVisible(can[other])
            self.actions_of[one].setVisible(not can[other])
        focused = next((n for n, b in self._buttons.items() if b.hasFocus()), None)
        self._buttons["undrain"].setVisible(can["undrain"])
        self._buttons["drain"].setVisible(not can["undrain"])
        if focused is not None and not can[focused]:
            # Qt would give it to whatever comes next; who has drained a PC may want it back
            beside = _OTHER.get(focused)
            if beside is not None and can[beside]:
                self._buttons[beside].setEnabled(True)
                self._buttons[beside].setFocus()
            else:
                self.table.setFocus()
        for name, button in self._buttons.items():
            button.setEnabled(can[name])
        self.more.setEnabled(any(can.values()))

    def _context(self, at: QPoint) -> None:
        if self.chosen():
            self.menu.popup(self.table.viewport().mapToGlobal(at))

    # ------------------------------------------------------------------ what is asked for

    def give(self, name: CommandName, *_: object) -> None:
        """Give a command for the chosen PCs, after a question if it does harm."""
        self.give_to(name, self.chosen())

    def give_to(self, name: CommandName, nodes: list[NodeView]) -> None:
        """The same for these."""
        command = BY_NAME[name]
        if not possible(command, nodes, self._model.rights):
            return
        self._notice.clear()
        if name == "rename":
            node = nodes[0]
            self.question = asking.ask_name(
                self,
                one_line(node.name),
                lambda text: self._model.carry_out(name, nodes, text.strip()),
            )
            return
        question = command.question()
        if not question:
            self._model.carry_out(name, nodes)
            return
        ids = ", ".join(n.device_id for n in nodes)
        self.question = asking.confirm(
            self,
            question.format(names=named(nodes)),
            command.consequence().format(ids=ids),
            command.yes(),
            lambda: self._model.carry_out(name, nodes),
        )

    def _save(self) -> None:
        self._notice.clear()
        self.question = asking.save_text(self, "fleet.csv", self.rows.csv, self._notice.show_text)
