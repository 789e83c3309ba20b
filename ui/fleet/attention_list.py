"""What needs attention, above everything else; a PC that waits is let in from here."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.fleet.attention import Concern
from ui.icons import state_icon
from ui.view import IconName
from ui.widgets.card import Card, text_label

SHOWN = 50
"""Rows; a fleet with more troubles than that has one that matters."""
LOWEST = 7 * theme.GRID
"""Of the list; one line with its detail and buttons."""
_ICONS: dict[str, IconName] = {"question": "connecting", "error": "attention", "note": "not_joined"}


class ConcernRow(QWidget):
    """One thing, and what can be done about it at once."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.device_id = ""
        self._mark = QLabel()
        self.text = text_label()
        self.detail = text_label(muted=True)
        self.detail.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.approve = QPushButton(self.tr("Approve…"))
        self.decline = QPushButton(self.tr("Decline"))
        self.show_node = QPushButton(self.tr("Show"))
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(self.text)
        texts.addWidget(self.detail)
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.GRID)
        row.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        for button in (self.approve, self.decline, self.show_node):
            button.setAutoDefault(False)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)

    def show_concern(self, concern: Concern, *, may: bool) -> None:
        """Show this one; the buttons work only for those who may."""
        asks = concern.urgency == "question"
        self.device_id = concern.device_id
        self._mark.setPixmap(state_icon(_ICONS[concern.urgency]).pixmap(16, 16))
        self.text.setText(concern.text)
        self.detail.setText(concern.detail)
        self.detail.setVisible(bool(concern.detail))
        # beside the first line; a single one stands in the middle of the buttons' height
        middle = Qt.AlignmentFlag.AlignTop if concern.detail else Qt.AlignmentFlag.AlignVCenter
        self._row.setAlignment(self._mark, middle)
        self.approve.setVisible(asks)
        self.decline.setVisible(asks)
        self.show_node.setVisible(not asks and bool(concern.device_id))
        for button in (self.approve, self.decline):
            button.setEnabled(may)
            button.setAccessibleName(f"{button.text()} {concern.text} {concern.device_id}")
        self.show_node.setAccessibleName(f"{self.show_node.text()}: {concern.text}")


class AttentionList(Card):
    """Hidden while all is well."""

    approved = Signal(str)
    """Device id of a PC that should be let in; the person is still asked."""
    declined = Signal(str)
    asked_for = Signal(str)
    """Device id of a PC that should be shown in the table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._tallest = LOWEST
        self._pool: list[ConcernRow] = []
        self._shown: tuple[list[Concern], bool] = ([], False)
        pane = QWidget()
        pane.setObjectName("pane")
        self._column = QVBoxLayout(pane)
        self._column.setContentsMargins(0, 0, theme.GRID, 0)
        self._column.setSpacing(theme.GRID)
        self._column.addStretch(1)
        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(pane)
        self._scroll.setAccessibleName(self.tr("What needs attention"))
        self.rows.addWidget(self._scroll)
        self.hide()

    @property
    def lines(self) -> list[ConcernRow]:
        """Rows on the screen, from top to bottom."""
        return self._pool[: len(self._shown[0])]

    def show_concerns(self, concerns: list[Concern], *, may: bool) -> None:
        """Show these; rows are used again, so that the focus stays where it is."""
        shown = concerns[:SHOWN]
        if (shown, may) == self._shown:
            return
        self._shown = (shown, may)
        while len(self._pool) < len(shown):
            self._pool.append(self._new_row())
        for row, concern in zip(self._pool, shown, strict=False):
            row.show_concern(concern, may=may)
            row.show()
        for row in self._pool[len(shown) :]:
            row.hide()
        title = self.tr("Needs attention ({n})").format(n=len(concerns))
        self.set_title(title)
        self.setVisible(bool(shown))
        self._fit()

    def set_tallest(self, height: int) -> None:
        """Pixels that the list may take; what is more is scrolled."""
        self._tallest = max(LOWEST, height)
        self._fit()

    def resizeEvent(self, event: object) -> None:  # noqa: N802 - Qt's name
        """Texts wrap otherwise in another width."""
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._fit()

    def _fit(self) -> None:
        width = self._scroll.viewport().width()
        self._column.activate()
        needed = self._column.totalHeightForWidth(width)
        self._scroll.setFixedHeight(min(self._tallest, max(needed, 3 * theme.GRID)))

    def _new_row(self) -> ConcernRow:
        row = ConcernRow()
        row.approve.clicked.connect(lambda: self.approved.emit(row.device_id))
        row.decline.clicked.connect(lambda: self.declined.emit(row.device_id))
        row.show_node.clicked.connect(lambda: self.asked_for.emit(row.device_id))
        self._column.insertWidget(len(self._pool), row)
        return row
