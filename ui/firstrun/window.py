"""The window of the first run: a page, where it stands, and the way on."""

from __future__ import annotations

from PySide6.QtCore import QSettings, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.firstrun.choices import PAGES, Page
from ui.firstrun.last_pages import LimitsPage, WorkPage
from ui.firstrun.model import FirstRun
from ui.firstrun.pages import PageWidget, PcPage, WayPage, WelcomePage
from ui.icons import app_icon
from ui.session import AgentSession
from ui.widgets.card import text_label
from ui.widgets.notice import Notice

WIDTH = 80 * theme.GRID
HEIGHT = 80 * theme.GRID


class FirstRunWindow(QWidget):
    """Can be closed at any time; while something is being done that goes on behind it."""

    closed = Signal()
    """For good: it can be made anew."""
    hidden = Signal()
    """Out of sight, and still at work."""
    done_unseen = Signal()
    """All is done, and nobody is looking."""
    chat_asked = Signal()
    declined = Signal(str)

    def __init__(
        self, session: AgentSession, settings: QSettings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.model = FirstRun(session, settings, self)
        self.setWindowTitle(self.tr("Set up fleetapp"))
        self.setWindowIcon(app_icon())
        self.welcome = WelcomePage(self.model)
        self.way = WayPage(self.model)
        self.pc = PcPage(self.model)
        self.limits = LimitsPage(self.model)
        self.work = WorkPage(self.model)
        self.pages: dict[Page, PageWidget] = {
            "welcome": self.welcome,
            "way": self.way,
            "pc": self.pc,
            "limits": self.limits,
            "work": self.work,
        }
        self._heading = theme.heading(text_label())
        self._number = theme.muted(QLabel())
        self.notice = Notice()
        self._stack = QStackedWidget()
        for page in self.pages.values():
            self._stack.addWidget(_scrolling(page))
        self.back = QPushButton(self.tr("&Back"))
        self.back.clicked.connect(self.model.go_back)
        self.go = QPushButton()
        self.go.setDefault(True)
        self.go.clicked.connect(self._go)
        self.later = QPushButton(self.tr("Not no&w"))
        self.later.clicked.connect(self.close)
        self._lay_out()
        self.setMinimumSize(WIDTH - 16 * theme.GRID, HEIGHT - 32 * theme.GRID)
        self.resize(WIDTH, HEIGHT)
        self._shown: Page | None = None
        self._over = self._ending = False
        self.model.changed.connect(self.refresh)
        self.model.finished.connect(self._finished)
        self.model.declined.connect(self.declined)
        self.work.chat_asked.connect(self._chat)
        self.refresh()

    def refresh(self) -> None:
        """Show the model's page."""
        model = self.model
        page = self.pages[model.page]
        page.refresh()
        if model.page != self._shown:
            self._shown = model.page
            self._stack.setCurrentIndex(PAGES.index(model.page))
            self._heading.setText(page.title)
            self._number.setText(
                self.tr("Step {n} of {count}").format(n=model.number, count=len(PAGES))
            )
            self._stack.setAccessibleName(page.title)
            QTimer.singleShot(0, self, self._focus)
        self._show_buttons()
        self._show_notice()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Work that goes on keeps the window, out of sight."""
        super().closeEvent(event)
        work = self.model.work
        if work is not None and work.running is not None and not self._ending:
            self.hidden.emit()
            return
        self.end()

    def end(self) -> None:
        """Close for good; what is under way stops and can be gone on with later."""
        if not self._ending:
            self._ending = True
            self.model.leave()
            self.hide()
            self.closed.emit()

    def _show_buttons(self) -> None:
        model, work = self.model, self.model.work
        over = work is not None and work.over
        self.back.setVisible(model.page != "welcome" and not over)
        self.back.setEnabled(model.may_go_back)
        self.go.setVisible(model.page != "work" or over)
        self.go.setEnabled(over or (model.may_go_on and model.hindrance is None))
        texts = {
            "welcome": self.tr("Ne&xt"),
            "way": self.tr("Ne&xt"),
            "pc": self.tr("Ne&xt"),
            "limits": self.tr("&Agree and set up") if model.alone else self.tr("&Set up"),
            "work": self.tr("&Finish"),
        }
        self.go.setText(texts[model.page])
        self.later.setVisible(not over)
        self.later.setText(
            self.tr("&Close") if work is not None and work.running else self.tr("Not no&w")
        )

    def _show_notice(self) -> None:
        model = self.model
        view = model.session.view
        locked = model.hindrance
        if view.link != "connected":
            self.notice.show_text(
                str(view.problem) if view.problem else self.tr("The agent on this PC is starting.")
            )
        elif model.code_problem and model.page == "way":
            self.notice.show_text(model.code_problem)
        elif locked is not None and model.page in ("way", "limits"):
            self.notice.show_text(
                self.tr(
                    "This PC cannot answer alone: contributing is switched off by {policy}."
                ).format(policy=locked.where)
                if locked.locked
                else self.tr("To answer alone this PC has to contribute.")
            )
        else:
            self.notice.clear()

    def _focus(self) -> None:
        match self.model.page:
            case "way":
                self.way.buttons[self.model.choices.way].setFocus()
            case _ if self.go.isVisible() and self.go.isEnabled():
                self.go.setFocus()

    def _go(self) -> None:
        if self._over:
            self.close()
        else:
            self.model.go_on()
            if self.model.code_problem:
                self.way.code.setFocus()

    def _finished(self) -> None:
        self._over = True
        if not self.isVisible():
            self.done_unseen.emit()
            self.end()
        elif self.model.alone:
            self._chat()

    def _chat(self) -> None:
        self.chat_asked.emit()
        self.close()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._heading, 1)
        head.addWidget(self._number, 0, Qt.AlignmentFlag.AlignBottom)
        foot = QHBoxLayout()
        foot.setSpacing(theme.GRID)
        foot.addWidget(self.later)
        foot.addStretch(1)
        foot.addWidget(self.back)
        foot.addWidget(self.go)
        column = QVBoxLayout(self)
        column.setContentsMargins(*(3 * theme.GRID,) * 4)
        column.setSpacing(2 * theme.GRID)
        column.addLayout(head)
        column.addWidget(self._stack, 1)
        column.addWidget(self.notice)
        column.addLayout(foot)


def _scrolling(page: PageWidget) -> QScrollArea:
    area = QScrollArea(widgetResizable=True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setAccessibleName(page.title)
    area.setWidget(page)
    page.layout().setContentsMargins(0, 0, theme.GRID, 0)  # type: ignore[union-attr]
    return area
