"""A look at an address before the browser opens it."""

from __future__ import annotations

from PySide6.QtCore import QUrl, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.chat.safe_text import openable, visible
from ui.icons import app_icon
from ui.widgets.card import text_label


class LinkDialog(QDialog):
    """Shows where a link really leads. Only web addresses can be opened from here."""

    opened = Signal(QUrl)
    """The person has looked at it and said yes."""

    def __init__(self, address: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.address = address
        self.allowed = openable(address)
        self.setWindowTitle(self.tr("Open this link?") if self.allowed else self.tr("Not opened"))
        self.setWindowIcon(app_icon())
        self._url = url = QUrl(address, QUrl.ParsingMode.StrictMode)
        self.allowed = self.allowed and url.isValid()
        column = QVBoxLayout(self)
        column.setContentsMargins(*(2 * theme.GRID,) * 4)
        column.setSpacing(2 * theme.GRID)
        if self.allowed:
            # as it goes over the wire: letters of other scripts that look the same do not there
            host = url.host(QUrl.ComponentFormattingOption.FullyEncoded)
            column.addWidget(text_label(self.tr("This link in the answer leads to:")))
            name = theme.heading(QLabel(host[:200]), 1.2)
            name.setWordWrap(True)
            column.addWidget(name)
            shown = bytes(url.toEncoded().data()).decode("ascii", "replace")
        else:
            column.addWidget(
                text_label(
                    self.tr(
                        "fleetapp opens only web addresses (http and https). This link in the "
                        "answer is something else:"
                    )
                )
            )
            shown = visible(address)
        self.field = QPlainTextEdit(shown[:20_000])
        self.field.setObjectName("address")
        self.field.setReadOnly(True)
        self.field.setTabChangesFocus(True)
        self.field.setFont(theme.fixed_font())
        self.field.setAccessibleName(self.tr("Address"))
        self.field.setFixedHeight(5 * self.field.fontMetrics().lineSpacing())
        self.field.setMinimumWidth(48 * theme.GRID)
        column.addWidget(self.field)
        buttons = QDialogButtonBox()
        if self.allowed:
            go = buttons.addButton(
                self.tr("&Open in browser"), QDialogButtonBox.ButtonRole.AcceptRole
            )
            go.setAutoDefault(False)
            go.clicked.connect(self._open)
            self.go = go
        copy = buttons.addButton(self.tr("&Copy address"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.setAutoDefault(False)
        copy.clicked.connect(self._copy)
        leave = buttons.addButton(self.tr("Do &not open"), QDialogButtonBox.ButtonRole.RejectRole)
        leave.setDefault(True)
        leave.clicked.connect(self.reject)
        column.addWidget(buttons)
        leave.setFocus()

    def _copy(self) -> None:
        theme.copy(self.field.toPlainText())

    def _open(self) -> None:
        self.opened.emit(self._url)
        self.accept()
