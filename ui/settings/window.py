"""The settings window: sections at the left, every setting of one at the right, one search."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from fleetapp.errors import FleetError
from ui import theme
from ui.diagnostics import export_diagnostics
from ui.icons import app_icon
from ui.preferences import preferences_of
from ui.session import AgentSession
from ui.settings.model import SettingsModel
from ui.settings.own import NAMES, OwnSettings
from ui.settings.setting_row import SettingRow
from ui.theme import Theme
from ui.view import AgentView
from ui.widgets.card import Card, text_label
from ui.widgets.notice import Notice

SIZE = QSize(112 * theme.GRID, 80 * theme.GRID)
SIDE = 26 * theme.GRID
SEARCH_MS = 120


class SettingsWindow(QWidget):
    """Follows a SettingsModel; a change is saved as soon as it is made."""

    closed = Signal()

    def __init__(self, session: AgentSession, home: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.own = OwnSettings(session.client, preferences_of(home), _apply_theme, self)
        self.model = SettingsModel(session.client, self.own, self)
        self.question: QMessageBox | None = None
        self.rows: dict[str, SettingRow] = {}
        self._cards: dict[str, Card] = {}
        self._listed: list[str] = []
        self._build = QTimer(self, singleShot=True, interval=0)
        self._build.timeout.connect(self._build_next)
        self._was_connected = False
        self._restarting = False
        self.setWindowTitle(self.tr("Settings"))
        self.setWindowIcon(app_icon())
        self.setMinimumSize(76 * theme.GRID, 50 * theme.GRID)
        self.resize(SIZE)

        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self._sidebar())
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self._page(), 1)
        right.addWidget(self._restart_bar())
        outer.addLayout(right, 1)

        self.model.loaded.connect(self._rebuild)
        self.model.changed.connect(self._row_changed)
        self.model.load_failed.connect(self._load_failed)
        session.changed.connect(self._follow)
        QShortcut(QKeySequence.StandardKey.Find, self, self.start_search)
        QShortcut(QKeySequence.StandardKey.Close, self, self.close)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self._escape)
        self._rebuild()
        self._follow(session.view)

    # ------------------------------------------------------------------ parts

    def _sidebar(self) -> QWidget:
        side = QWidget()
        side.setFixedWidth(SIDE)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search settings (Ctrl+F)"))
        self.search.setAccessibleName(self.tr("Search settings"))
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self._later = QTimer(self, singleShot=True, interval=SEARCH_MS)
        self._later.timeout.connect(self._show_chosen)
        self.search.textChanged.connect(self._later.start)
        self.sections = QListWidget()
        self.sections.setObjectName("sections")
        self.sections.setAccessibleName(self.tr("Sections"))
        self.sections.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.sections.currentRowChanged.connect(self._section_chosen)
        # the one that was chosen before the search is chosen again by a click
        self.sections.itemClicked.connect(lambda _: self._section_chosen())
        self.export = QPushButton(self.tr("&Export diagnostics…"))
        self.export.setAutoDefault(False)
        self.export.clicked.connect(lambda: export_diagnostics(self._session, self))
        column = QVBoxLayout(side)
        column.setContentsMargins(*(2 * theme.GRID,) * 2, theme.GRID, 2 * theme.GRID)
        column.setSpacing(2 * theme.GRID)
        column.addWidget(self.search)
        column.addWidget(self.sections, 1)
        column.addWidget(self.export)
        return side

    def _page(self) -> QScrollArea:
        content = QWidget()
        content.setObjectName("content")
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(theme.GRID, *(2 * theme.GRID,) * 3)
        self._column.setSpacing(2 * theme.GRID)
        self.notice = Notice()
        self._column.addWidget(self.notice)
        self.nothing = text_label(muted=True)
        self._column.addWidget(self.nothing)
        self._column.addStretch(1)
        self.pages = QScrollArea(widgetResizable=True)
        self.pages.setFrameShape(QScrollArea.Shape.NoFrame)
        self.pages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.pages.setWidget(content)
        return self.pages

    def _restart_bar(self) -> QWidget:
        self.restart_bar = QWidget()
        self.restart_words = text_label()
        self.restart = QPushButton(self.tr("&Restart the agent now…"))
        self.restart.setAutoDefault(False)
        self.restart.clicked.connect(self._ask_restart)
        row = QHBoxLayout(self.restart_bar)
        row.setContentsMargins(theme.GRID, theme.GRID, 2 * theme.GRID, 2 * theme.GRID)
        row.setSpacing(2 * theme.GRID)
        row.addWidget(self.restart_words, 1)
        row.addWidget(self.restart)
        return self.restart_bar

    # ------------------------------------------------------------------ what is shown

    def show_section(self, name: str) -> None:
        """Turn to a section: ``app``, or one of the agent's."""
        self.search.clear()
        for index in range(self.sections.count()):
            if self.sections.item(index).data(Qt.ItemDataRole.UserRole) == name:
                self.sections.setCurrentRow(index)

    def start_search(self) -> None:
        """The cursor goes to the search field."""
        self.search.setFocus()
        self.search.selectAll()

    @property
    def section(self) -> str:
        """Name of the one that is chosen."""
        item = self.sections.currentItem()
        return str(item.data(Qt.ItemDataRole.UserRole)) if item is not None else ""

    def _rebuild(self) -> None:
        """Keep what is there: a cursor in a field outlives a look at what others have changed."""
        wanted = {s.name: s.title for s in self.model.sections if self.model.rows(s.name)}
        if list(wanted) != self._listed:
            self._listed = list(wanted)
            self._fill_sections(wanted)
        for section, title in wanted.items():
            if section not in self._cards:
                card = self._cards[section] = Card(title)
                card.rows.setSpacing(theme.GRID // 2)
                card.hide()
                self._column.insertWidget(self._column.count() - 1, card)
        for name, row in self.rows.items():
            row.show_row(self.model.row(name))
        self._show_restart()
        self._show_chosen()
        self._build.start()

    def _build_next(self) -> None:
        """Make the rows of one section, so that an answer that streams meanwhile never waits."""
        for section in self._cards:
            if self._fill(section):
                self._build.start()
                return

    def _fill(self, section: str) -> bool:
        """Make the rows of a section that are missing; whether there were any."""
        missing = False
        for place, row in enumerate(self.model.rows(section), start=1):
            if row.view.name not in self.rows:
                missing = True
                self._cards[section].rows.insertWidget(place, self._make_row(row.view.name))
        return missing

    def _make_row(self, name: str) -> SettingRow:
        row = SettingRow(self.model.row(name))
        row.chosen.connect(self.model.set)
        row.reset_asked.connect(self.model.reset)
        row.setEnabled(name in NAMES or self._session.view.link == "connected")
        self.rows[name] = row
        return row

    def _fill_sections(self, wanted: dict[str, str]) -> None:
        chosen = self.section
        self.sections.blockSignals(True)
        self.sections.clear()
        for name, title in wanted.items():
            item = QListWidgetItem(title)
            item.setData(Qt.ItemDataRole.UserRole, name)
            item.setSizeHint(QSize(0, self.fontMetrics().lineSpacing() + 2 * theme.GRID))
            self.sections.addItem(item)
        names = list(wanted)
        self.sections.setCurrentRow(names.index(chosen) if chosen in names else 0)
        self.sections.blockSignals(False)

    def _show_chosen(self) -> None:
        words = self.search.text().strip()
        if words:
            self.sections.clearSelection()
        elif (item := self.sections.currentItem()) is not None:
            item.setSelected(True)
        matches = self.model.matches(words)
        shown = False
        for section, card in self._cards.items():
            rows = [row.view.name for row in self.model.rows(section)]
            inside = [name for name in rows if name in matches]
            visible = bool(inside) if words else section == self.section
            if visible:
                self._fill(section)
            card.setVisible(visible)
            shown = shown or visible
        for name, widget in self.rows.items():
            widget.setVisible(name in matches)  # one that no policy sets any more goes
        self.nothing.setVisible(not shown)
        self.nothing.setText(self.tr("No setting has these words.") if words else "")

    def _section_chosen(self) -> None:
        self.search.clear()
        self._show_chosen()
        self.pages.verticalScrollBar().setValue(0)

    def _row_changed(self, name: str) -> None:
        if name in self.rows:
            self.rows[name].show_row(self.model.row(name))
        self._show_restart()

    def _load_failed(self, error: FleetError) -> None:
        if self._session.view.link == "connected":
            self.notice.show_error(error)

    # ------------------------------------------------------------------ the agent behind it

    def _follow(self, view: AgentView) -> None:
        connected = view.link == "connected"
        if connected and not self._was_connected:
            self.notice.clear()
            self._restarting = False
            self.model.load()
        elif connected and view.status is not None:
            self.model.follow(view.status)
        elif not connected:
            self._say_unreachable(view)
        self._was_connected = connected
        self.export.setEnabled(connected)
        for name, row in self.rows.items():
            if name not in NAMES:
                row.setEnabled(connected)
        self._show_restart()

    def _say_unreachable(self, view: AgentView) -> None:
        if self._restarting and view.problem is None:
            self.notice.show_text(self.tr("The agent restarts; this takes a few seconds."))
        elif view.problem is not None:
            self.notice.show_error(view.problem)
        else:
            self.notice.show_text(self.tr("The agent on this PC is starting."))

    def _show_restart(self) -> None:
        pending = self.model.pending
        connected = self._session.view.link == "connected"
        self.restart_bar.setVisible(bool(pending) and connected)
        if len(pending) == 1:
            text = self.tr("“{setting}” waits for the agent's next start.").format(
                setting=pending[0]
            )
        else:
            text = self.tr("{count} settings wait for the agent's next start.").format(
                count=len(pending)
            )
        self.restart_words.setText(text)

    def _ask_restart(self) -> None:
        question = QMessageBox(
            QMessageBox.Icon.Question,
            self.tr("Restart the agent?"),
            self.tr("The agent of this PC ends and starts again with the new settings."),
            parent=self,
        )
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setInformativeText(self._interrupted(self._session.view))
        go = question.addButton(self.tr("&Restart now"), QMessageBox.ButtonRole.DestructiveRole)
        later = question.addButton(self.tr("&Later"), QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(later)
        question.setEscapeButton(later)
        go.clicked.connect(self._restart_now)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.question = question
        question.open()

    def _interrupted(self, view: AgentView) -> str:
        status = view.status
        if status is not None and status.role == "coordinator":
            return self.tr(
                "It coordinates the fleet: answers that are being written break off, and nobody "
                "gets one until it is back, usually within a minute."
            )
        if view.at_work:
            return self.tr(
                "It is working for the fleet: answers that are being written stand still until "
                "other PCs have taken over."
            )
        return self.tr("Nothing is under way here. It takes a few seconds.")

    def _restart_now(self) -> None:
        self._restarting = True
        self._session.restart_agent().then(lambda _: None, self._restart_failed)

    def _restart_failed(self, error: FleetError) -> None:
        # an agent that ends may take its answer with it; the view tells whether it does
        if self._session.view.link == "connected":
            self._restarting = False
            self.notice.show_error(error)

    # ------------------------------------------------------------------ events

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Look again: policy, file or the system's own switch may have changed meanwhile."""
        super().showEvent(event)
        if self._session.view.link == "connected":
            self.model.load()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Nothing that was typed is lost."""
        for row in self.rows.values():
            row.control.flush()
        super().closeEvent(event)
        self.closed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Down from the search goes to the first setting that was found."""
        if (
            watched is self.search
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter)
        ):
            self._later.stop()
            self._show_chosen()
            for row in self.rows.values():
                if row.isVisibleTo(self) and row.control.isEnabled():
                    row.control.setFocus(Qt.FocusReason.TabFocusReason)
                    break
            return True
        return super().eventFilter(watched, event)

    def _escape(self) -> None:
        if self.search.text():
            self.search.clear()
        else:
            self.close()


def _apply_theme(choice: str) -> None:
    theme_now = Theme.current()
    if theme_now is not None:
        theme_now.choose(choice)
