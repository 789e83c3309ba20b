"""Who did what in the fleet, and whether the log is whole."""

from __future__ import annotations

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from fleetapp.errors import FleetError
from fleetapp.types import AuditCheck, AuditEntry
from ui import theme
from ui.chat.safe_text import one_line
from ui.fleet import words
from ui.fleet.model import FleetModel
from ui.fleet.text_table import Entry, TextTable
from ui.widgets.card import text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.notice import Notice

PAGE = 200
MOST = 10_000
"""Entries that the coordinator hands out at once; the command line has the rest."""
CHECK_DEADLINE = 120.0


class AuditPage(QWidget):
    """Newest first."""

    def __init__(self, model: FleetModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._count = PAGE
        self._entries: tuple[AuditEntry, ...] = ()
        self.notice = Notice()
        self.filter = QLineEdit(placeholderText=self.tr("Filter: who, what, which PC…"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName(self.tr("Filter the audit log"))
        self.filter.textChanged.connect(self._show)
        self.state = text_label(muted=True)
        self.older = QPushButton(self.tr("&Older"))
        self.older.setToolTip(self.tr("Load older entries too"))
        self.older.clicked.connect(self._load_older)
        self.again = QPushButton(self.tr("&Reload"))
        self.again.clicked.connect(self.reload)
        self.table = TextTable(
            self.tr("Audit log"),
            (
                self.tr("No."), self.tr("Time"), self.tr("Who"), self.tr("What"),
                self.tr("Details"),
            ),
            (7, 20, 24, 20, 60),
            right=(0,),
        )  # fmt: skip
        self.check = QPushButton(self.tr("C&heck the log"))
        self.check.setToolTip(self.tr("Follow the chain of hashes from the first line on"))
        self.check.clicked.connect(self._check)
        self.noted = QLineEdit(placeholderText=self.tr("hash noted earlier (optional)"))
        self.noted.setFont(theme.fixed_font())
        self.noted.setMaxLength(64)
        self.noted.setAccessibleName(self.tr("Hash noted earlier"))
        self.noted.returnPressed.connect(self._check)
        self.verdict = text_label()
        self.head = CopyField(self.tr("Hash of the newest line"))
        self.verdict.hide()
        self.head.hide()
        top, bottom = QHBoxLayout(), QHBoxLayout()
        for row in (top, bottom):
            row.setSpacing(theme.GRID)
        top.addWidget(self.filter, 1)
        for button in (self.older, self.again):
            button.setAutoDefault(False)
            top.addWidget(button)
        self.check.setAutoDefault(False)
        bottom.addWidget(self.check)
        bottom.addWidget(self.noted, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, 0)
        column.setSpacing(theme.GRID)
        column.addLayout(top)
        column.addWidget(self.notice)
        column.addWidget(self.state)
        column.addWidget(self.table, 1)
        column.addLayout(bottom)
        column.addWidget(self.verdict)
        column.addWidget(self.head)
        model.changed.connect(self._show_possible)
        self._show_possible()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Look anew when somebody looks."""
        super().showEvent(event)
        self.reload()

    def reload(self) -> None:
        """Ask for the newest entries."""
        if not self._model.rights.administers:
            return
        self.notice.clear()
        path = f"/local/v1/fleet/audit?last={self._count}"
        call = self._model.session.client.get(path, tuple[AuditEntry, ...])
        call.then(self._came, self._failed)

    def _load_older(self) -> None:
        self._count = min(MOST, self._count * 5)
        self.reload()

    def _came(self, entries: tuple[AuditEntry, ...]) -> None:
        self._entries = entries
        self._show()

    def _show(self) -> None:
        asked = self.filter.text().casefold().split()
        names = {n.device_id: n.name for n in self._model.view.nodes} if self._model.view else {}
        rows = [self._row(entry, names) for entry in reversed(self._entries)]
        shown = [r for r in rows if all(w in " ".join(r.cells).casefold() for w in asked)]
        self.table.entries.show(shown)
        if not self._model.rights.administers:
            self.state.setText(self.tr("Only admins see the audit log."))
        elif not rows:
            self.state.setText(self.tr("Nothing is written down yet."))
        else:
            self.state.setText(
                self.tr("{n} of the newest {all} entries").format(n=len(shown), all=len(rows))
            )
        self._show_possible()

    def _row(self, entry: AuditEntry, names: dict[str, str]) -> Entry:
        who = self.tr("the coordinator's user") if entry.actor == "local" else entry.actor
        details = ", ".join(f"{k}: {v}" for k, v in entry.details.items())
        cells = (
            str(entry.seq),
            words.when(entry.time),
            one_line(names.get(entry.actor, who)),
            one_line(entry.action.replace("_", " ")),
            one_line(details),
        )
        return Entry(str(entry.seq), cells, hint=one_line(f"{entry.actor}\n{details}"))

    def _check(self) -> None:
        self.check.setEnabled(False)
        self.notice.clear()
        noted = self.noted.text().strip().lower()
        if any(c not in "0123456789abcdef" for c in noted):
            self.notice.show_text(self.tr("A hash has only digits and the letters a to f."))
            self._show_possible()
            return
        path = f"/local/v1/fleet/audit/check?noted={noted}"
        call = self._model.session.client.get(path, AuditCheck, CHECK_DEADLINE)
        call.then(self._checked, self._failed)

    def _checked(self, found: AuditCheck) -> None:
        bad = bool(found.problems)
        if bad:
            text = self.tr("The log was changed: {problems}").format(
                problems=" ".join(map(one_line, found.problems))
            )
        else:
            text = self.tr(
                "All {n} entries follow from one another. Note this hash elsewhere: only then a "
                "cut-off end can be noticed later."
            ).format(n=found.entries)
        self.verdict.setText(text)
        theme.mark_error(self.verdict, on=bad)
        self.verdict.show()
        self.head.set_text(found.head)
        self.head.setVisible(bool(found.head))
        self._show_possible()

    def _failed(self, error: FleetError) -> None:
        self.notice.show_error(error)
        self._show_possible()

    def _show_possible(self) -> None:
        may = self._model.rights.administers
        more = self._count < MOST and len(self._entries) >= self._count
        self.older.setEnabled(may and more)
        for control in (self.again, self.check, self.noted, self.filter):
            control.setEnabled(may)
