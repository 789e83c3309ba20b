"""Becoming part of a fleet: join one, create one, invite others."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import Cancelled, FleetError
from fleetapp.types import JoinCodeView
from ui import theme, words
from ui.client import Call
from ui.counts import counts
from ui.icons import app_icon
from ui.session import AgentSession, CreatedFleet
from ui.view import AgentView
from ui.widgets.card import text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.notice import Notice

CODE_HOURS = 24.0
CODE_USES = 20


class FleetDialog(QDialog):
    """One question, one request, one answer; errors stay inside and can be mended at once."""

    def __init__(self, session: AgentSession, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self._call: Call | None = None
        self.setWindowTitle(title)
        self.setWindowIcon(app_icon())
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(56 * theme.GRID)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(*(2 * theme.GRID,) * 4)
        self.column.setSpacing(theme.GRID)
        self.column.addWidget(theme.heading(QLabel(title), 1.2))
        self.body = QVBoxLayout()
        self.body.setSpacing(theme.GRID)
        self.column.addLayout(self.body)
        self.progress = text_label(muted=True)
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, 0)
        self.bar.setAccessibleName(title)
        self.notice = Notice()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.rejected.connect(self.reject)
        for widget in (self.progress, self.bar, self.notice):
            self.column.addWidget(widget)
            widget.hide()
        self.column.addSpacing(theme.GRID)
        self.column.addStretch(1)
        self.column.addWidget(self.buttons)

    def add_field(self, label: str, field: QLineEdit) -> None:
        """A line edit under its label, which is its name for screen readers too."""
        caption = QLabel(label)
        caption.setBuddy(field)
        field.setAccessibleName(label.replace("&", ""))
        self.body.addWidget(caption)
        self.body.addWidget(field)

    def go_button(self, text: str) -> QPushButton:
        """The button that sends the request; Enter presses it."""
        button = self.buttons.addButton(text, QDialogButtonBox.ButtonRole.AcceptRole)
        button.setDefault(True)
        self.buttons.accepted.connect(self.submit)
        return button

    def submit(self) -> None:
        """Send the request; overridden."""

    def follow(self, call: Call, doing: str) -> None:
        """Show that ``call`` is under way until it ends; cancelling the dialog cancels it."""
        self._call = call
        self.notice.clear()
        self.progress.setText(doing)
        self._busy(True)
        call.then(self._done, self._failed)

    def finished_with(self, value: object) -> None:
        """The request succeeded; overridden."""

    def reject(self) -> None:
        """Cancel what is under way, and close."""
        if self._call is not None:
            self._call.cancel()
        super().reject()

    def show_only_close(self) -> None:
        """Everything is done."""
        self.buttons.clear()
        close = self.buttons.addButton(QDialogButtonBox.StandardButton.Close)
        close.setDefault(True)
        close.setFocus()

    def _done(self, value: object) -> None:
        self._call = None
        self._busy(False)
        self.finished_with(value)

    def _failed(self, error: FleetError) -> None:
        self._call = None
        self._busy(False)
        if not isinstance(error, Cancelled):
            self.notice.show_error(error)
            # once the layout knows how many lines that takes
            QTimer.singleShot(0, self, self.adjustSize)

    def _busy(self, busy: bool) -> None:
        self.progress.setVisible(busy)
        self.bar.setVisible(busy)
        for index in range(self.body.count()):
            if (widget := self.body.itemAt(index).widget()) is not None:  # type: ignore[union-attr]
                widget.setEnabled(not busy)
        for button in self.buttons.buttons():
            if self.buttons.buttonRole(button) == QDialogButtonBox.ButtonRole.AcceptRole:
                button.setEnabled(not busy)
        self.adjustSize()


class JoinDialog(FleetDialog):
    """Takes a join code; shows what is going on and the typed error if it is refused."""

    def __init__(self, session: AgentSession, parent: QWidget | None = None) -> None:
        super().__init__(session, self.tr("Join a fleet"), parent)
        self.body.addWidget(
            text_label(
                self.tr(
                    "A PC that contributes computes on other people's text, and the first stage "
                    "sees the words themselves. Nothing of it is written down."
                ),
                muted=True,
            )
        )
        self.code = QLineEdit(placeholderText="FLEET-…")
        self.code.setFont(theme.fixed_font())
        self.code.setMaxLength(200)
        self.add_field(self.tr("Join &code from your administrator"), self.code)
        self.address = QLineEdit(placeholderText=self.tr("only if it is not found by itself"))
        self.add_field(self.tr("Coordinator &address (host:port)"), self.address)
        self.join = self.go_button(self.tr("&Join"))
        self.join.setEnabled(False)
        self.code.textChanged.connect(lambda text: self.join.setEnabled(bool(text.strip())))
        session.changed.connect(self._show_view)
        self.code.setFocus()

    def submit(self) -> None:
        """Ask the agent to join."""
        call = self.session.join_fleet(self.code.text().strip(), self.address.text().strip())
        self.follow(call, self.tr("Looking for the fleet and introducing this PC…"))

    def finished_with(self, value: object) -> None:  # noqa: ARG002 - the agent answers nothing
        """Say how it stands; the status that follows says it more exactly."""
        self.result_label = text_label(self.tr("The fleet has accepted this PC."))
        self.body.addWidget(self.result_label)
        self.code.setReadOnly(True)
        self.address.setReadOnly(True)
        self.show_only_close()
        self._show_view(self.session.view)

    def reject(self) -> None:
        """Nobody waits any more, and the agent need not either."""
        if self._call is not None:
            self.session.stop_joining()
        super().reject()

    def _failed(self, error: FleetError) -> None:
        super()._failed(error)
        self.code.setFocus()
        self.code.selectAll()

    def _show_view(self, view: AgentView) -> None:
        if self._call is not None and view.status is not None and view.status.joining:
            self.progress.setText(words.reason(view))
        elif self.code.isReadOnly() and view.status is not None:
            name = view.status.fleet_name
            self.result_label.setText(
                self.tr("This PC is now part of “{name}”.").format(name=name)
                if name
                else words.reason(view)
            )


class CodeDialog(FleetDialog):
    """Ends with a join code to hand out; shared by creating a fleet and inviting to it."""

    def show_code(self, code: str, explanation: str) -> None:
        """Replace the question with the answer."""
        while (item := self.body.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        self.body.addWidget(text_label(self.tr("Enter this code on each PC that should join:")))
        self.code = CopyField(self.tr("Join code"))
        self.code.set_text(code)
        self.code.field.setMinimumWidth(
            self.code.field.fontMetrics().horizontalAdvance(code) + 4 * theme.GRID
        )
        self.body.addWidget(self.code)
        self.body.addWidget(text_label(explanation, muted=True))
        self.show_only_close()
        QTimer.singleShot(0, self, self.adjustSize)


class CreateDialog(CodeDialog):
    """Asks for a name, creates the fleet, shows its first code."""

    def __init__(self, session: AgentSession, parent: QWidget | None = None) -> None:
        super().__init__(session, self.tr("Create a fleet"), parent)
        self.body.addWidget(
            text_label(
                self.tr(
                    "This PC becomes the coordinator: it admits other PCs, plans their work, and "
                    "must be on for the fleet to answer."
                ),
                muted=True,
            )
        )
        self.name = QLineEdit(placeholderText=self.tr("for example: Office"))
        self.name.setMaxLength(60)
        self.add_field(self.tr("&Name of the fleet"), self.name)
        self.create_button = self.go_button(self.tr("C&reate"))
        self.create_button.setEnabled(False)
        self.name.textChanged.connect(
            lambda text: self.create_button.setEnabled(bool(text.strip()))
        )
        self.name.setFocus()

    def submit(self) -> None:
        """Ask the agent to create it."""
        call = self.session.create_fleet(self.name.text().strip())
        self.follow(call, self.tr("Making the fleet's keys…"))

    def finished_with(self, value: object) -> None:
        """Show the first code."""
        if isinstance(value, CreatedFleet):
            self.show_code(
                value.code,
                self.tr("It is shown this once; more codes: menu, New join code."),
            )


class InviteDialog(CodeDialog):
    """Makes another code at once."""

    def __init__(self, session: AgentSession, parent: QWidget | None = None) -> None:
        super().__init__(session, self.tr("New join code"), parent)
        self.follow(
            session.make_code(CODE_HOURS, CODE_USES, approve=False), self.tr("Making a code…")
        )

    def finished_with(self, value: object) -> None:
        """Show it and how long it holds."""
        if not isinstance(value, JoinCodeView):
            return
        hours = max(1, round((value.expires - time.time()) / 3600))
        self.show_code(
            value.code,
            self.tr("Valid for {hours} and {pcs}. It is shown this once.").format(
                hours=counts.hours(hours), pcs=counts.pcs(value.uses_left)
            ),
        )
