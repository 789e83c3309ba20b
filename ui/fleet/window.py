"""The admin's window: how the fleet is, what needs attention, and everything behind it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QHideEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QStyle,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from ui import theme
from ui.chat.safe_text import one_line
from ui.fleet import asking
from ui.fleet.attention_list import AttentionList
from ui.fleet.audit_page import AuditPage
from ui.fleet.commands import CommandName
from ui.fleet.model import FleetModel
from ui.fleet.models_page import ModelsPage
from ui.fleet.nodes_page import NodesPage
from ui.fleet.palette import STYLE
from ui.fleet.plan_page import PlanPage
from ui.fleet.pulse_bar import PulseBar
from ui.fleet.secrets_page import CodesPage, KeysPage
from ui.fleet_dialogs import CreateDialog, FleetDialog, JoinDialog
from ui.icons import app_icon
from ui.session import AgentSession
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

SIZE = (145 * theme.GRID, 100 * theme.GRID)
ATTENTION_SHARE = 0.16
"""Of the window's height."""
SMALLEST = (64 * theme.GRID, 40 * theme.GRID)
"""A full HD screen at 250% has 96 by 54."""


class Pages(QTabWidget):
    """Tabs that take the room there is."""

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """No: texts on the pages wrap, and a scroll area would give all of them what they like."""
        return False

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Of the page that is shown; another may need more."""
        page = self.currentWidget()
        bar = self.tabBar().sizeHint().height()
        return page.minimumSizeHint() + QSize(0, bar) if page is not None else QSize()


class FleetWindow(QWidget):
    """Everything an admin does; others may look."""

    closed = Signal()

    def __init__(self, session: AgentSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = FleetModel(session, self)
        self.dialog: FleetDialog | None = None
        self.setWindowTitle(self.tr("Fleet"))
        self.setWindowIcon(app_icon())
        self.setStyleSheet(STYLE)
        self.title = theme.heading(QLabel())
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.subtitle = text_label(muted=True)
        self.rename = QPushButton(self.tr("Rename the fleet…"))
        self.rename.setAutoDefault(False)
        self.rename.clicked.connect(self._rename)
        self.question: QWidget | None = None
        self.trouble = Notice()
        self.rights = text_label(muted=True)
        self.notice = Notice()
        self.pulse = PulseBar()
        self.attention = AttentionList()
        self.nodes = NodesPage(self.model, self.notice)
        self.models = ModelsPage(self.model, self.notice)
        self.plan = PlanPage(self.model)
        self.codes = CodesPage(self.model)
        self.keys = KeysPage(self.model)
        self.audit = AuditPage(self.model)
        self.tabs = Pages(documentMode=True)
        for page, title in (
            (self.nodes, self.tr("PCs")),
            (self.models, self.tr("Models")),
            (self.plan, self.tr("Plan")),
            (self.codes, self.tr("Join codes")),
            (self.keys, self.tr("API keys")),
            (self.audit, self.tr("Audit")),
        ):
            # no letters for Alt: they would be taken from the controls on the pages
            index = self.tabs.addTab(page, title)
            self.tabs.setTabToolTip(index, f"{title} (Ctrl+{index + 1})")
        self.tabs.currentChanged.connect(lambda _: self.tabs.updateGeometry())
        self.tabs.setAccessibleName(self.tr("Parts of the fleet"))
        self._build()
        self.attention.approved.connect(lambda device: self._decide("approve", device))
        self.attention.declined.connect(lambda device: self._decide("decline", device))
        self.attention.asked_for.connect(self._show_node)
        self.model.changed.connect(self._changed)
        self.model.ticked.connect(self._show_history)
        self.model.refused.connect(self._refused)
        self._shortcuts()
        self.resize(*SIZE)
        self._changed()
        self.nodes.table.setFocus()  # not the first button, which gives the fleet another name

    def _build(self) -> None:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.GRID)
        column.addWidget(self.pulse)
        column.addWidget(self.attention)
        column.addWidget(self.tabs, 1)
        # what a small screen has no room for is scrolled, never squeezed
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        content.setObjectName("pane")
        scroll.setWidget(content)
        self.pages = QStackedWidget()
        self.pages.addWidget(scroll)
        self.pages.addWidget(self._empty_page())
        names = QVBoxLayout()
        names.setSpacing(0)
        names.addWidget(self.title)
        names.addWidget(self.subtitle)
        head = QHBoxLayout()
        head.setSpacing(theme.GRID)
        head.addLayout(names, 1)
        head.addWidget(self.rename, 0, Qt.AlignmentFlag.AlignTop)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(*(2 * theme.GRID,) * 4)
        outer.setSpacing(theme.GRID)
        outer.addLayout(head)
        for line in (self.trouble, self.rights, self.notice):
            outer.addWidget(line)
        outer.addWidget(self.pages, 1)
        self.setMinimumSize(*SMALLEST)

    def _empty_page(self) -> QWidget:
        page = QWidget()
        self.nothing = text_label(muted=True)
        self.join = QPushButton(self.tr("&Join a fleet…"))
        self.create_fleet = QPushButton(self.tr("C&reate a fleet…"))
        self.join.clicked.connect(lambda: self._open(JoinDialog))
        self.create_fleet.clicked.connect(lambda: self._open(CreateDialog))
        row = QHBoxLayout()
        row.setSpacing(theme.GRID)
        row.addWidget(self.join)
        row.addWidget(self.create_fleet)
        row.addStretch(1)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2 * theme.GRID)
        column.addWidget(self.nothing)
        column.addLayout(row)
        column.addStretch(1)
        return page

    def _shortcuts(self) -> None:
        for number in range(self.tabs.count()):
            key = QShortcut(QKeySequence(f"Ctrl+{number + 1}"), self)
            key.activated.connect(lambda n=number: self.tabs.setCurrentIndex(n))
        find = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        find.activated.connect(self._find)
        clear = QShortcut(QKeySequence("Esc"), self.nodes.filter)
        clear.activated.connect(self.nodes.filter.clear)

    # ------------------------------------------------------------------ what is shown

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """The fleet is followed while somebody looks."""
        super().showEvent(event)
        self.model.watch(True)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """The list of troubles gets its share and no more."""
        super().resizeEvent(event)
        self.attention.set_tallest(round(ATTENTION_SHARE * self.height()))
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        self.pulse.set_room(self.width() - 4 * theme.GRID - bar)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """And not otherwise; a window that is minimised counts as not looked at."""
        super().hideEvent(event)
        self.model.watch(False)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Only hides; the tray brings it back."""
        event.accept()
        self.closed.emit()

    def _changed(self) -> None:
        model = self.model
        status = model.session.view.status
        view, freshness = model.view, model.freshness
        name = view.name if view is not None else (status.fleet_name if status else "")
        self.title.setText(
            self.tr("Fleet “{name}”").format(name=one_line(name)) if name else self.tr("Fleet")
        )
        self.subtitle.setText(self._subtitle())
        self.pages.setCurrentIndex(0 if view is not None else 1)
        self._show_nothing()
        trouble = model.trouble
        if trouble and trouble != self.trouble.label.text():
            self.trouble.show_text(trouble)
        elif not trouble:
            self.trouble.clear()
        rights = model.rights
        self.rights.setText(rights.why_not)
        self.rights.setVisible(bool(rights.why_not))
        self.rename.setVisible(view is not None and rights.administers)
        self.rename.setEnabled(freshness == "live")
        stale = freshness == "stale"
        self.pulse.show_pulse(model.pulse if view is not None else None, stale=stale)
        self._show_history()
        self.attention.show_concerns(model.concerns, may=rights.administers and freshness == "live")

    def _subtitle(self) -> str:
        view = self.model.view
        if view is None:
            return ""
        head = next((n for n in view.nodes if n.role == "coordinator"), None)
        said = [self.tr("Id {id}").format(id=view.fleet_id)]
        if head is not None:
            said.insert(0, self.tr("Coordinator: {name}").format(name=one_line(head.name)))
        return " · ".join(said)

    def _show_nothing(self) -> None:
        lonely = self.model.freshness == "none"
        if lonely:
            text = self.tr(
                "This PC is in no fleet. Join the one of your office with a code from its "
                "administrator, or create a new one with this PC as its coordinator."
            )
        elif why := self.model.why:
            text = self.tr("Nothing is known of the fleet yet. {why}").format(why=why)
        else:
            text = self.tr("Asking the coordinator…")
        self.nothing.setText(text)
        self.join.setVisible(lonely)
        self.create_fleet.setVisible(lonely)

    def _show_history(self) -> None:
        # with every new view too: figure and chart always say the same
        model = self.model
        live = model.freshness == "live"
        self.pulse.show_history(model.history, model.pulse if live else None, model.clock())

    def _show_node(self, device_id: str) -> None:
        self.tabs.setCurrentWidget(self.nodes)
        self.nodes.choose(device_id)

    def _find(self) -> None:
        page = self.tabs.currentWidget()
        field = self.audit.filter if page is self.audit else self.nodes.filter
        if page not in (self.audit, self.nodes):
            self.tabs.setCurrentWidget(self.nodes)
        field.setFocus()
        field.selectAll()

    # ------------------------------------------------------------------ what is asked for

    def _decide(self, command: CommandName, device_id: str) -> None:
        node = self.model.node(device_id)
        if node is not None:
            self.nodes.give_to(command, [node])

    def _rename(self) -> None:
        view = self.model.view
        if view is not None:
            self.notice.clear()
            self.question = asking.ask_fleet_name(
                self, one_line(view.name), self.model.rename_fleet
            )

    def _refused(self, error: FleetError) -> None:
        self.notice.show_error(error)

    def _open(self, kind: type[JoinDialog] | type[CreateDialog]) -> None:
        if self.dialog is None:
            self.dialog = kind(self.model.session, self)
            self.dialog.finished.connect(self._dialog_finished)
            # once it is done the fleet is shown, and the person should see it
            QTimer.singleShot(0, self.dialog, self.dialog.open)

    def _dialog_finished(self) -> None:
        self.dialog = None
