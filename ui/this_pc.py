"""The small window: what this PC is doing for the fleet, and where its programs find the AI."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from fleetapp.types import AssignmentView, LocalStatus, Role
from ui import theme, words
from ui.actions import Actions
from ui.icons import app_icon, state_icon
from ui.view import AgentView
from ui.widgets.assignment_row import AssignmentRow
from ui.widgets.card import Card, text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.notice import Notice

WIDTH = 60 * theme.GRID
ICON = 5 * theme.GRID


class ThisPcWindow(QWidget):
    """Follows an AgentView; everything a person can do here is one of the shared actions."""

    closed = Signal()

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._actions = actions
        self.may_hide: Callable[[], bool] = lambda: True
        """Asked when the window is about to close."""
        self._rows: dict[tuple[str, int], AssignmentRow] = {}
        self.setWindowTitle(self.tr("This PC"))
        self.setWindowIcon(app_icon())

        content = QWidget()
        content.setObjectName("content")
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(*(2 * theme.GRID,) * 4)
        self._column.setSpacing(2 * theme.GRID)
        self._column.addLayout(self._header())
        self.notice = Notice()
        self._column.addWidget(self.notice)
        self._start = QPushButton(self.tr("&Start the agent"))
        self._start.clicked.connect(actions.start_agent.trigger)
        self._column.addWidget(self._start, 0, Qt.AlignmentFlag.AlignLeft)
        self._fleet = self._fleet_card()
        self._no_fleet = self._no_fleet_card()
        self._work = self._work_card()
        self._api = self._api_card()
        self._cards = (self._no_fleet, self._fleet, self._work, self._api)
        for card in self._cards:
            self._column.addWidget(card)
        self._column.addStretch(1)

        self._scroll = QScrollArea(widgetResizable=True)
        self._scroll.setAccessibleName(self.tr("This PC"))
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(content)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._scroll)
        self.setMinimumWidth(WIDTH - 8 * theme.GRID)
        self.resize(WIDTH, WIDTH // 2)
        self._shape: list[bool] = []
        # once the layout has taken in what was shown and hidden
        self._fit_later = QTimer(self, singleShot=True, interval=0)
        self._fit_later.timeout.connect(self._fit)
        self.show_view(AgentView())

    def show_view(self, view: AgentView) -> None:
        """Show the newest state."""
        self._icon.setPixmap(state_icon(view.icon, view.percent).pixmap(QSize(ICON, ICON)))
        self._headline.setText(words.headline(view))
        self._reason.setText(words.reason(view))
        status = view.status
        self._start.setVisible(view.link == "stopped")
        self._no_fleet.setVisible(status is not None and not view.joined)
        for card in (self._fleet, self._work):
            card.setVisible(view.joined)
        self._api.setVisible(status is not None and bool(status.api_url))
        if status is not None:
            self._show_status(status)
        self._fit_later.start()

    def show_error(self, error: FleetError | None) -> None:
        """Say why the last thing asked for was refused, or nothing any more."""
        if error is None:
            self.notice.clear()
        else:
            self.notice.show_error(error)
        self._fit_later.start()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Only hides, and not even that while it stands in for a missing tray."""
        event.setAccepted(self.may_hide())
        self.closed.emit()

    def _show_status(self, status: LocalStatus) -> None:
        self._fleet_name.setText(status.fleet_name or status.fleet_id)
        self._fleet_detail.setText(
            " · ".join(part for part in (status.name, self._role(status.role)) if part)
        )
        self._coordinator.setText(
            self.tr("Coordinator: {hub}").format(hub=status.hub) if status.hub else ""
        )
        self._coordinator.setVisible(bool(status.hub))
        self.contribute.setChecked(status.contribute)
        self.api_field.set_text(status.api_url)
        self._show_assignments(status.assignments)

    def _show_assignments(self, assignments: tuple[AssignmentView, ...]) -> None:
        wanted = {(a.model, a.stage): a for a in assignments}
        for key in self._rows.keys() - wanted.keys():
            row = self._rows.pop(key)
            self._work.rows.removeWidget(row)
            row.deleteLater()
        for key, assignment in wanted.items():
            if key not in self._rows:
                self._rows[key] = AssignmentRow()
                self._work.rows.addWidget(self._rows[key])
            self._rows[key].update_from(assignment)
        self._nothing.setVisible(not wanted)

    def _role(self, role: Role) -> str:
        return {
            "member": self.tr("member"),
            "coordinator": self.tr("coordinator of the fleet"),
            "admin": self.tr("administrator"),
        }[role]

    def _header(self) -> QHBoxLayout:
        self._icon = QLabel()
        self._icon.setFixedSize(ICON, ICON)
        self._headline = theme.heading(QLabel())
        self._headline.setTextFormat(Qt.TextFormat.PlainText)
        self._reason = text_label(muted=True)
        self._reason.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        menu = QToolButton()
        menu.setText("⋯")
        menu.setAccessibleName(self.tr("Menu"))
        menu.setToolTip(self.tr("Menu"))
        menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu.setMenu(self._actions.menu)
        menu.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        texts = QVBoxLayout()
        texts.setSpacing(theme.GRID // 2)
        texts.addWidget(self._headline)
        texts.addWidget(self._reason)
        row = QHBoxLayout()
        row.setSpacing(2 * theme.GRID)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        row.addWidget(menu, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _fleet_card(self) -> Card:
        card = Card(self.tr("Fleet"))
        self._fleet_name = text_label()
        self._fleet_detail = text_label(muted=True)
        self._coordinator = text_label(muted=True)
        self.contribute = QCheckBox(self.tr("&Contribute idle AI time"))
        # clicked, not toggled: what the agent reports must not be sent back to it
        self.contribute.clicked.connect(self._actions.contribute.trigger)
        for widget in (self._fleet_name, self._fleet_detail, self._coordinator, self.contribute):
            card.rows.addWidget(widget)
        return card

    def _no_fleet_card(self) -> Card:
        card = Card(self.tr("This PC is in no fleet"))
        card.rows.addWidget(
            text_label(
                self.tr(
                    "The PCs of a fleet run large AI models together. Join the one of your office "
                    "with a code from its administrator, or create a new one."
                ),
                muted=True,
            )
        )
        join = QPushButton(self.tr("&Join a fleet…"))
        join.clicked.connect(self._actions.join.trigger)
        create = QPushButton(self.tr("C&reate a fleet…"))
        create.clicked.connect(self._actions.create.trigger)
        row = QHBoxLayout()
        row.setSpacing(theme.GRID)
        row.addWidget(join)
        row.addWidget(create)
        row.addStretch(1)
        card.rows.addLayout(row)
        return card

    def _work_card(self) -> Card:
        card = Card(self.tr("Models on this PC"))
        self._nothing = text_label(self.tr("Nothing is assigned to this PC."), muted=True)
        card.rows.addWidget(self._nothing)
        return card

    def _api_card(self) -> Card:
        card = Card(self.tr("For programs on this PC"))
        self.api_field = CopyField(self.tr("API address"))
        card.rows.addWidget(self.api_field)
        card.rows.addWidget(
            text_label(
                self.tr("Address of the OpenAI-compatible API; an API key is needed."), muted=True
            )
        )
        return card

    def _fit(self) -> None:
        """Grow or shrink to the content when its parts change, never while bytes tick."""
        parts = (self._start, self.notice, *self._cards)
        shape = [part.isHidden() for part in parts]
        shape += [row.bar.isHidden() for row in self._rows.values()]
        if shape == self._shape:
            return
        self._shape = shape
        self._column.activate()
        height = self._column.totalHeightForWidth(self.width())
        room = self.screen().availableSize().height() - 6 * theme.GRID
        self.resize(self.width(), min(height, room))
