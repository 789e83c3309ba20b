"""The small window: what this PC is doing for the fleet, and where its programs find the AI."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QHideEvent, QShowEvent
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
from fleetapp.types import AssignmentView, HardwareView, LocalStatus, Role
from ui import agent_words, theme, words
from ui.actions import Actions
from ui.client import Call
from ui.icons import app_icon, state_icon
from ui.session import AgentSession
from ui.view import AgentView
from ui.widgets.assignment_row import AssignmentRow
from ui.widgets.card import Card, text_label
from ui.widgets.copy_field import CopyField
from ui.widgets.lent_devices import LentDevices
from ui.widgets.notice import Notice

WIDTH = 60 * theme.GRID
ICON = 5 * theme.GRID
LOOK_MS = 3000


class ThisPcWindow(QWidget):
    """Follows an AgentView; everything a person can do here is one of the shared actions."""

    closed = Signal()
    lend_asked = Signal(str, bool)
    """Device class, and whether to lend it."""

    def __init__(
        self, actions: Actions, session: AgentSession, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._actions = actions
        self._session = session
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
        self._lending = self._lending_card()
        self._no_fleet = self._no_fleet_card()
        self._work = self._work_card()
        self._api = self._api_card()
        self._cards = (self._no_fleet, self._fleet, self._lending, self._work, self._api)
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
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._ask_for_hardware)
        self._asking: Call | None = None
        self.addAction(actions.settings)
        self.show_view(AgentView())

    def show_view(self, view: AgentView) -> None:
        """Show the newest state."""
        self._icon.setPixmap(state_icon(view.icon, view.percent).pixmap(QSize(ICON, ICON)))
        self._headline.setText(words.headline(view))
        self._reason.setText(words.reason(view))
        status = view.status
        self._start.setVisible(view.link == "stopped")
        self._no_fleet.setVisible(status is not None and not view.joined)
        for card in (self._fleet, self._lending, self._work):
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

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Looks at the memory only while somebody can see it."""
        super().showEvent(event)
        self._look.start()
        self._ask_for_hardware()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """And no longer."""
        super().hideEvent(event)
        self._look.stop()

    def _ask_for_hardware(self) -> None:
        if self._asking is None and self._session.view.joined:
            self._asking = self._session.hardware()
            self._asking.then(self._show_hardware, lambda _: self._asked())

    def _asked(self) -> None:
        self._asking = None

    def _show_hardware(self, found: HardwareView) -> None:
        self._asked()
        self._memory.setText(
            self.tr(
                "The fleet's programs take {held} of this PC's memory; {more} more are for it."
            ).format(held=words.size(found.memory_held), more=words.size(found.memory_for_models))
        )
        self.devices.show_there(found.devices)
        self._fit_later.start()

    def _show_contribution(self, status: LocalStatus) -> None:
        contribution = status.contribution
        self.contribute.setChecked(status.contribute)
        self.contribute.setEnabled(self._actions.contribute.isEnabled())
        self.contribute.setText(self._actions.contribute.text())
        self.devices.setVisible(status.contribute)
        self.devices.show_lent(contribution)
        # what the heading says already is not said twice
        said = contribution.sentence if contribution.sentence != status.reason else ""
        self._said.setText(agent_words.said(said))
        self._said.setVisible(bool(said))
        self.pause.setVisible(self._actions.pause.isVisible())
        self.pause.setEnabled(self._actions.pause.isEnabled())
        self.pause.setText(self._actions.pause_menu.title())
        self.finish.setVisible(self._actions.finish.isVisible())
        self.resume.setVisible(self._actions.resume.isVisible())

    def _show_status(self, status: LocalStatus) -> None:
        self._fleet_name.setText(status.fleet_name or status.fleet_id)
        self._fleet_detail.setText(
            " · ".join(part for part in (status.name, self._role(status.role)) if part)
        )
        self._coordinator.setText(
            self.tr("Coordinator: {hub}").format(hub=status.hub) if status.hub else ""
        )
        self._coordinator.setVisible(bool(status.hub))
        self._warnings.setText("\n".join(map(agent_words.said, status.warnings)))
        self._warnings.setVisible(bool(status.warnings))
        self._show_contribution(status)
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
        self._warnings = text_label()
        for widget in (self._fleet_name, self._fleet_detail, self._coordinator, self._warnings):
            card.rows.addWidget(widget)
        return card

    def _lending_card(self) -> Card:
        card = Card(self.tr("What this PC gives"))
        self.contribute = QCheckBox(self.tr("&Contribute idle AI time"))
        # clicked, not toggled: what the agent reports must not be sent back to it
        self.contribute.clicked.connect(self._actions.contribute.trigger)
        self.devices = LentDevices()
        self.devices.asked.connect(self.lend_asked)
        self._said = text_label(muted=True)
        self._memory = text_label(muted=True)
        for widget in (self.contribute, self.devices, self._said, self._memory):
            card.rows.addWidget(widget)
        self.pause = QPushButton()
        self.pause.setMenu(self._actions.pause_menu)
        self.finish = QPushButton(self._actions.finish.text())
        self.finish.clicked.connect(self._actions.finish.trigger)
        self.resume = QPushButton(self._actions.resume.text())
        self.resume.clicked.connect(self._actions.resume.trigger)
        row = QHBoxLayout()
        row.setSpacing(theme.GRID)
        for button in (self.pause, self.finish, self.resume):
            row.addWidget(button)
        row.addStretch(1)
        card.rows.addLayout(row)
        return card

    def _no_fleet_card(self) -> Card:
        card = Card(self.tr("This PC is in no fleet"))
        card.rows.addWidget(
            text_label(
                self.tr(
                    "The PCs of a fleet run large AI models together. Join the one of your office "
                    "with a code from its administrator, found one, or try it alone on this PC."
                ),
                muted=True,
            )
        )
        self.set_up = QPushButton(self.tr("&Set up…"))
        self.set_up.clicked.connect(self._actions.set_up.trigger)
        join = QPushButton(self.tr("&Join with a code…"))
        join.clicked.connect(self._actions.join.trigger)
        row = QHBoxLayout()
        row.setSpacing(theme.GRID)
        row.addWidget(self.set_up)
        row.addWidget(join)
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
        shape += [part.isHidden() for part in (self.devices, self._said, self._warnings)]
        shape += [button.isHidden() for button in (self.pause, self.finish, self.resume)]
        shape += [row.bar.isHidden() for row in self._rows.values()]
        if shape == self._shape:
            return
        self._shape = shape
        self._column.activate()
        height = self._column.totalHeightForWidth(self.width())
        room = self.screen().availableSize().height() - 6 * theme.GRID
        self.resize(self.width(), min(height, room))
