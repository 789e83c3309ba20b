"""Join codes and API keys: what there is, a new one (shown this once), revoking."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from fleetapp.types import JoinCodeView
from ui import theme
from ui.chat.safe_text import one_line
from ui.counts import counts
from ui.fleet import asking, words
from ui.fleet.model import FleetModel
from ui.fleet.text_table import Entry, TextTable
from ui.fleet.values import ApiKey
from ui.widgets.card import Card, text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.notice import Notice

HOURS = 24.0
USES = 20
MOST_HOURS = 24 * 365
MOST_USES = 10_000
MOST_LIMIT = 100_000


class SecretsPage(QWidget):
    """A list, a form for a new one, and the new one's secret; shared by codes and keys.

    Args:
        model: who is asked.
        path: of the list, below ``/local/v1/``.
        kind: what the list holds.
        title: of the form.
        secret: what is shown once, in words.
    """

    def __init__(
        self,
        model: FleetModel,
        path: str,
        kind: type[Any],
        title: str,
        secret: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._path = f"/local/v1/{path}"
        self._kind = kind
        self.question: QWidget | None = None
        self.notice = Notice()
        self.form = Card(title)
        self.fields = QHBoxLayout()
        self.fields.setSpacing(theme.GRID)
        self.form.rows.addLayout(self.fields)
        self.made = QWidget()
        made = QVBoxLayout(self.made)
        made.setContentsMargins(0, 0, 0, 0)
        made.setSpacing(theme.GRID)
        self.secret = CopyField(secret)
        self.once = text_label(muted=True)
        made.addWidget(self.secret)
        made.addWidget(self.once)
        self.form.rows.addWidget(self.made)
        self.made.hide()
        self.empty = text_label(muted=True)
        self.table = self.make_table()
        self.table.selectionModel().selectionChanged.connect(self._show_possible)
        self.table.entries.modelReset.connect(self._show_possible)
        self.revoke = QPushButton(self.tr("&Revoke…"))
        self.revoke.setAutoDefault(False)
        self.revoke.clicked.connect(self._ask_to_revoke)
        row = QHBoxLayout()
        row.addWidget(self.empty, 1)
        row.addWidget(self.revoke)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.GRID, 0, 0)
        column.setSpacing(theme.GRID)
        column.addWidget(self.form)
        column.addWidget(self.notice)
        column.addLayout(row)
        column.addWidget(self.table, 1)
        self.make_fields()
        model.changed.connect(self._show_possible)
        self._show_possible()

    # ------------------------------------------------------------------ what differs

    def make_table(self) -> TextTable:
        """Overridden."""
        raise NotImplementedError

    def make_fields(self) -> None:
        """Put the form's controls into ``fields``; overridden."""
        raise NotImplementedError

    def entry(self, item: Any) -> Entry:
        """An item as a row; overridden."""
        raise NotImplementedError

    def body(self) -> dict[str, Any] | None:
        """What is asked for; None if the form is not complete. Overridden."""
        raise NotImplementedError

    def show_made(self, item: Any) -> None:
        """Show the secret of the new one; overridden."""
        raise NotImplementedError

    def warning(self) -> tuple[str, str]:
        """Question and consequence of revoking the chosen one; overridden."""
        raise NotImplementedError

    def none(self) -> str:
        """What to do where the list is empty; overridden."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what is shared

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Look anew when somebody looks."""
        super().showEvent(event)
        self.reload()

    def hideEvent(self, event: object) -> None:  # noqa: N802 - Qt's name
        """A secret does not stay on the screen of somebody who looks at something else."""
        super().hideEvent(event)  # type: ignore[arg-type]
        self.made.hide()
        self.secret.set_text("")

    def reload(self) -> None:
        """Ask for the list."""
        if self._model.rights.administers:
            call = self._model.session.client.get(self._path, tuple[self._kind, ...])  # type: ignore[name-defined]
            call.then(self._show, self._failed)

    def add_field(self, label: str, field: QWidget) -> None:
        """A control behind its label."""
        caption = QLabel(label)
        caption.setBuddy(field)
        field.setAccessibleName(label.replace("&", ""))
        self.fields.addWidget(caption)
        self.fields.addWidget(field)

    def add_button(self, text: str) -> QPushButton:
        """The button that makes a new one."""
        button = QPushButton(text)
        button.clicked.connect(self.make)
        self.fields.addStretch(1)
        self.fields.addWidget(button)
        self.button = button
        return button

    def make(self) -> None:
        """Ask for a new one."""
        body = self.body()
        if body is None:
            return
        self.notice.clear()
        self.button.setEnabled(False)
        call = self._model.session.client.post(self._path, body, self._kind)
        call.then(self._made, self._failed)

    def _made(self, item: Any) -> None:
        self.show_made(item)
        self.made.show()
        self.secret.field.setFocus()
        self.secret.field.selectAll()
        self._show_possible()
        self.reload()

    def _show(self, items: Sequence[Any]) -> None:
        chosen = self.table.chosen()
        self.table.entries.show([self.entry(item) for item in items])
        if chosen is not None:
            self.table.choose(chosen.id)
        self.empty.setText("" if items else self.none())
        self._show_possible()

    def _failed(self, error: FleetError) -> None:
        self.notice.show_error(error)
        self._show_possible()

    def _show_possible(self) -> None:
        may = self._model.rights.administers
        chosen = self.table.chosen()
        self.form.setEnabled(may)
        self.button_enabled(may)
        self.revoke.setEnabled(may and chosen is not None and not chosen.muted)
        if not may:
            self.empty.setText(self.tr("Only admins see these."))

    def button_enabled(self, may: bool) -> None:
        """Whether a new one can be made now."""
        self.button.setEnabled(may and self.body() is not None)

    def _ask_to_revoke(self) -> None:
        chosen = self.table.chosen()
        if chosen is None:
            return
        title, text = self.warning()
        self.question = asking.confirm(
            self, title, text, self.tr("&Revoke"), lambda: self._revoke(chosen.id)
        )

    def _revoke(self, item_id: str) -> None:
        self.notice.clear()
        call = self._model.session.client.delete(f"{self._path}/{item_id}")
        call.then(lambda _: self.reload(), self._failed)


class CodesPage(SecretsPage):
    """Join codes."""

    def __init__(self, model: FleetModel, parent: QWidget | None = None) -> None:
        super().__init__(
            model,
            "fleet/codes",
            JoinCodeView,
            self.tr("New join code"),
            self.tr("Join code"),
            parent,
        )

    def make_table(self) -> TextTable:
        """Codes without their secrets."""
        return TextTable(
            self.tr("Join codes"),
            (
                self.tr("Id"), self.tr("State"), self.tr("Uses left"), self.tr("Approval"),
                self.tr("Made"), self.tr("Expires"),
            ),
            (16, 14, 10, 18, 20, 20),
            right=(2,),
        )  # fmt: skip

    def make_fields(self) -> None:
        """How long, how often, whether somebody looks at each PC."""
        self.hours = QDoubleSpinBox(decimals=0, minimum=1, maximum=MOST_HOURS, value=HOURS)
        self.hours.setSuffix(self.tr(" h"))
        self.uses = QSpinBox(minimum=1, maximum=MOST_USES, value=USES)
        self.approve = QCheckBox(self.tr("Approve each PC &by hand"))
        theme.padded(self.hours)
        theme.padded(self.uses)
        self.add_field(self.tr("&Valid for"), self.hours)
        self.add_field(self.tr("PC&s"), self.uses)
        self.fields.addWidget(self.approve)
        self.add_button(self.tr("&Make a code"))

    def body(self) -> dict[str, Any]:
        """Always complete."""
        return {
            "hours": self.hours.value(),
            "uses": self.uses.value(),
            "approve": self.approve.isChecked(),
        }

    def entry(self, item: JoinCodeView) -> Entry:
        """One code."""
        state = self._state(item)
        return Entry(
            item.code_id,
            (
                item.code_id,
                state,
                str(item.uses_left),
                self.tr("by hand") if item.approve else self.tr("at once"),
                words.when(item.created),
                words.when(item.expires),
            ),
            muted=state != self.tr("valid"),
        )

    def _state(self, item: JoinCodeView) -> str:
        if item.revoked:
            return self.tr("revoked")
        if item.expires <= time.time():
            return self.tr("expired")
        return self.tr("valid") if item.uses_left > 0 else self.tr("used up")

    def show_made(self, item: JoinCodeView) -> None:
        """The code, this once."""
        self.secret.set_text(item.code)
        self.once.setText(
            self.tr(
                "Enter it on up to {pcs} until {end}. It is shown this once; whoever has it "
                "can join."
            ).format(pcs=counts.pcs(item.uses_left), end=words.when(item.expires))
        )

    def warning(self) -> tuple[str, str]:
        """Harmless for those who are in."""
        return (
            self.tr("Make this join code worthless?"),
            self.tr("PCs that have joined with it stay; no other can."),
        )

    def none(self) -> str:
        """The next step."""
        return self.tr("No join codes. Make one, and enter it on each PC that should join.")


class KeysPage(SecretsPage):
    """API keys for programs."""

    def __init__(self, model: FleetModel, parent: QWidget | None = None) -> None:
        super().__init__(model, "keys", ApiKey, self.tr("New API key"), self.tr("API key"), parent)

    def make_table(self) -> TextTable:
        """Keys without their secrets."""
        return TextTable(
            self.tr("API keys"),
            (
                self.tr("Id"), self.tr("Name"), self.tr("At a time"), self.tr("A minute"),
                self.tr("Made"), self.tr("Made on"),
            ),
            (16, 26, 12, 12, 20, 20),
            right=(2, 3),
        )  # fmt: skip

    def make_fields(self) -> None:
        """Whose, and how much."""
        self.name = QLineEdit(placeholderText=self.tr("program or person"))
        self.name.setMaxLength(80)
        self.name.setMinimumWidth(20 * theme.GRID)
        self.name.textChanged.connect(self._show_possible)
        self.name.returnPressed.connect(self.make)
        self.parallel = QSpinBox(minimum=0, maximum=MOST_LIMIT)
        theme.padded(self.parallel)
        self.per_minute = QSpinBox(minimum=0, maximum=MOST_LIMIT)
        theme.padded(self.per_minute)
        for box in (self.parallel, self.per_minute):
            box.setSpecialValueText(self.tr("any number"))
        self.add_field(self.tr("&Name"), self.name)
        self.add_field(self.tr("Requests &at a time"), self.parallel)
        self.add_field(self.tr("a m&inute"), self.per_minute)
        self.add_button(self.tr("&Make a key"))

    def body(self) -> dict[str, Any] | None:
        """Complete with a name."""
        name = self.name.text().strip()
        if not name:
            return None
        return {
            "name": name,
            "parallel": self.parallel.value(),
            "per_minute": self.per_minute.value(),
        }

    def entry(self, item: ApiKey) -> Entry:
        """One key."""
        limits = [str(n) if n else self.tr("any") for n in (item.parallel, item.per_minute)]
        made = words.when(item.created), one_line(item.made_on)
        cells = (item.id, one_line(item.name), *limits, *made)
        return Entry(item.id, cells)

    def show_made(self, item: ApiKey) -> None:
        """The key, this once."""
        self.name.clear()
        self.secret.set_text(item.key)
        self.once.setText(
            self.tr("It is shown this once. Programs send it as “Authorization: Bearer …”.")
        )

    def warning(self) -> tuple[str, str]:
        """Programs stop."""
        chosen = self.table.chosen()
        name = chosen.cells[1] if chosen is not None else ""
        return (
            self.tr("Make the key of {name} worthless?").format(name=name),
            self.tr("Programs that use it are refused from their next request on."),
        )

    def none(self) -> str:
        """The next step."""
        return self.tr("No API keys. Programs need one to ask the fleet; make it above.")
