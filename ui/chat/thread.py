"""All messages of a conversation in one scrolling column, of which only what is visible exists.

Heights of what was never seen are guesses. They become exact when it is, and what the person is
looking at stays where it is meanwhile.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QFrame,
    QPushButton,
    QWidget,
)

from ui import theme
from ui.chat.message_view import MessageView, guess_message
from ui.chat.values import Message

WIDEST = 104 * theme.GRID
"""Pixels; longer lines are hard to read."""
PASSES = 5
"""Rounds of measuring until heights agree; each makes guesses exact, so few are needed."""
SHARE = 5
"""Drawing a growing answer takes at most one part in so many of the time."""
DRAW_S = 0.040
"""Between two drawings; with the caret that blinks and code that is coloured a little later the
window is painted at most 30 times a second."""


@dataclass(eq=False)
class _Item:
    message: Message
    height: int = 0
    """A guess until seen; 0 is to be guessed."""
    view: MessageView | None = None


class ThreadView(QAbstractScrollArea):
    """Shows messages; what a person wants with one of them is a signal."""

    link_chosen = Signal(str)
    edit_asked = Signal(object)
    again_asked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Conversation"))
        self._items: list[_Item] = []
        self._tops: list[int] = [0]
        self._progress = ""
        self._pinned = True
        """Whether the newest text is to be seen as it comes."""
        self._arranging = False
        self._marked = ""
        self._pending: Message | None = None
        self._next_draw = 0.0
        self.draws = 0
        """How often a growing answer was drawn."""
        self.longest_draw = 0.0
        """Seconds of processor time."""
        self._draw_later = QTimer(self, singleShot=True)
        self._draw_later.timeout.connect(self._draw_pending)
        self._restyle_later = QTimer(self, singleShot=True, interval=0)
        self._restyle_later.timeout.connect(self._restyle)
        self._tabs_later = QTimer(self, singleShot=True, interval=0)
        self._tabs_later.timeout.connect(self._order_tabs)
        self.newest = QPushButton(self.tr("↓ Ne&west"), self.viewport())
        self.newest.setAccessibleName(self.tr("Go to the newest message"))
        self.newest.setAutoDefault(False)
        self.newest.clicked.connect(self.show_newest)
        self.newest.hide()
        QApplication.instance().focusChanged.connect(self._focus_moved)  # type: ignore[union-attr]

    # content

    @property
    def messages(self) -> list[Message]:
        return [item.message for item in self._items]

    def show_messages(self, messages: Sequence[Message], progress: str = "") -> None:
        """Show these instead; the views of those that stay are kept."""
        known = {item.message.id: item for item in self._items}
        same_thread = bool(messages) and any(m.id in known for m in messages)
        self._draw_later.stop()
        self._pending = None
        self._progress = progress
        items = []
        for message in messages:
            item = known.pop(message.id, None) or _Item(message)
            if item.message != message:
                item.height = 0
            item.message = message
            items.append(item)
        for gone in known.values():
            self._drop(gone)
        self._items = items
        for index, item in enumerate(items):
            if item.view is not None:
                self._show_in(item.view, index)
        if not same_thread or (messages and messages[-1].status == "writing"):
            self._pinned = True
        self._arrange()

    def show_growth(self, message: Message, progress: str) -> None:
        """The answer under way has more text; drawn as often as that stays cheap."""
        self._pending, self._progress = message, progress
        if self._draw_later.isActive():
            return
        wait = self._next_draw - time.perf_counter()
        if wait <= 0:
            self._draw_pending()
        else:
            self._draw_later.start(max(1, round(wait * 1000)))

    def _draw_pending(self) -> None:
        message, self._pending = self._pending, None
        if message is None or not self._items or self._items[-1].message.id != message.id:
            return
        begun, spent = time.perf_counter(), time.thread_time()
        item = self._items[-1]
        item.message = message
        if item.view is not None:
            self._show_in(item.view, len(self._items) - 1)
        else:
            item.height = 0
        self._arrange()
        # not the wall clock: on a busy PC others would slow down what is cheap
        cost = time.thread_time() - spent
        self.draws += 1
        self.longest_draw = max(self.longest_draw, cost)
        self._next_draw = begun + max(DRAW_S, SHARE * cost)

    def _show_in(self, view: MessageView, index: int) -> None:
        message = self._items[index].message
        last = index == len(self._items) - 1
        writing = last and message.status == "writing"
        view.show_message(message, is_last=last, progress=self._progress if writing else "")

    # moving about

    def show_newest(self) -> None:
        """Scroll to the end and stay there while it grows."""
        self._pinned = True
        self._arrange()

    def show_message(self, index: int, words: str = "") -> None:
        """Scroll to a message, to the first block with ``words`` in it if given."""
        if not 0 <= index < len(self._items):
            return
        self._pinned = False
        self.verticalScrollBar().setValue(self._tops[index])
        self._arrange()
        view = self._items[index].view
        if view is None or not words:
            return
        wanted = words.casefold()
        for number, block in enumerate(view.blocks):
            if wanted in block.text.casefold():
                self.verticalScrollBar().setValue(
                    self._tops[index] + view.block_top(number) - 4 * theme.GRID
                )
                self._arrange()
                return

    def mark(self, words: str) -> None:
        """Put a coloured ground under every occurrence of ``words``; empty takes it away."""
        self._marked = words
        for item in self._items:
            if item.view is not None:
                item.view.mark(words, self._mark_colour())

    def current_index(self) -> int:
        """The message at the top of what is visible."""
        return max(0, bisect_right(self._tops, self.verticalScrollBar().value()) - 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Up, down, pages, and both ends."""
        bar = self.verticalScrollBar()
        step = {
            Qt.Key.Key_Up: -bar.singleStep(),
            Qt.Key.Key_Down: bar.singleStep(),
            Qt.Key.Key_PageUp: -bar.pageStep(),
            Qt.Key.Key_PageDown: bar.pageStep(),
            Qt.Key.Key_Home: -bar.maximum(),
            Qt.Key.Key_End: bar.maximum(),
        }.get(Qt.Key(event.key()))
        if step is None:
            event.ignore()
            return
        bar.setValue(bar.value() + step)

    # geometry

    def _arrange(self) -> None:
        if self._arranging:
            return
        self._arranging = True
        try:
            if len(self._tops) != len(self._items) + 1:
                self._sum_up()
            anchor = None if self._pinned else self._anchor()
            for _ in range(PASSES):
                self._sum_up()
                self._scroll_to(anchor)
                if not self._arrange_visible():
                    break
            self._sum_up()
            self._scroll_to(anchor)
            self._place()
        finally:
            self._arranging = False

    def _column(self) -> QRect:
        room = self.viewport().width()
        width = max(1, min(room, WIDEST))
        return QRect((room - width) // 2, 0, width, 0)

    def _sum_up(self) -> None:
        width = self._column().width()
        for item in self._items:
            if item.height <= 0:
                item.height = (
                    item.view.estimate(width)
                    if item.view is not None
                    else guess_message(item.message, width, self)
                )
        self._tops = list(accumulate((item.height for item in self._items), initial=0))
        bar = self.verticalScrollBar()
        page = self.viewport().height()
        bar.setPageStep(page)
        bar.setSingleStep(3 * self.fontMetrics().lineSpacing())
        bar.setRange(0, max(0, self._tops[-1] - page))

    def _anchor(self) -> tuple[_Item, int, int] | None:
        """What shall not move: message, block, and its place below the upper edge.

        That is the first thing in sight whose place does not rest on a guess; what is new above it
        grows upwards.
        """
        if not self._items:
            return None
        top = self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        first = min(self.current_index(), len(self._items) - 1)
        for index in range(first, len(self._items)):
            if self._tops[index] > bottom:
                break
            view = self._items[index].view
            block = -1 if view is None else view.first_measured(top - self._tops[index])
            if view is not None and block >= 0:
                y = self._tops[index] + view.block_top(block)
                if y < bottom:
                    return self._items[index], block, y - top
        return self._items[first], -1, self._tops[first] - top

    def _scroll_to(self, anchor: tuple[_Item, int, int] | None) -> None:
        bar = self.verticalScrollBar()
        if self._pinned:
            bar.setValue(bar.maximum())
        elif anchor is not None:
            item, block, offset = anchor
            y = self._tops[self._items.index(item)]
            if block >= 0 and item.view is not None and block < len(item.view.blocks):
                y += item.view.block_top(block)
            bar.setValue(y - offset)

    def _arrange_visible(self) -> bool:
        """Make what is visible; True if a height was another than guessed."""
        width = self._column().width()
        top = self.verticalScrollBar().value()
        bottom = top + self.viewport().height()
        first = max(0, bisect_right(self._tops, top) - 1)
        changed = False
        y = self._tops[first] if self._items else 0
        for index in range(first, len(self._items)):
            if y > bottom:
                break
            item = self._items[index]
            if item.view is None:
                item.view = self._make(index)
            height = item.view.arrange(width, top - y, bottom - y)
            if height != item.height:
                item.height = height
                changed = True
            y += height
        return changed

    def _place(self) -> None:
        column = self._column()
        top = self.verticalScrollBar().value()
        page = self.viewport().height()
        focused = QApplication.focusWidget()
        for index, item in enumerate(self._items):
            view = item.view
            if view is None:
                continue
            y = self._tops[index] - top
            if (y + item.height < -page or y > 2 * page) and not (
                focused is not None and view.isAncestorOf(focused)
            ):
                self._drop(item)
                continue
            view.setGeometry(column.x(), y, column.width(), item.height)
            if view.isHidden():
                view.show()
        bar = self.verticalScrollBar()
        self.newest.setVisible(bar.maximum() - bar.value() > page // 2)
        if self.newest.isVisible():
            size = self.newest.sizeHint()
            room = self.viewport().size()
            corner = QPoint(
                column.center().x() - size.width() // 2,
                room.height() - size.height() - theme.GRID,
            )
            self.newest.setGeometry(QRect(corner, size))
            self.newest.raise_()

    def _make(self, index: int) -> MessageView:
        view = MessageView(self._items[index].message, self.viewport())
        view.link_chosen.connect(self.link_chosen)
        view.edit_asked.connect(self.edit_asked)
        view.again_asked.connect(self.again_asked)
        view.widgets_changed.connect(self._tabs_later.start)
        self._show_in_new(view, index)
        return view

    def _show_in_new(self, view: MessageView, index: int) -> None:
        self._show_in(view, index)
        if self._marked:
            view.mark(self._marked, self._mark_colour())

    def _drop(self, item: _Item) -> None:
        view, item.view = item.view, None
        if view is not None:
            view.hide()
            view.deleteLater()

    def _order_tabs(self) -> None:
        chain = [w for item in self._items if item.view for w in item.view.tab_order()]
        for one, following in zip([self, *chain], [*chain, self.newest], strict=True):
            QWidget.setTabOrder(one, following)

    def _mark_colour(self) -> QColor:
        return self.palette().color(QPalette.ColorRole.Highlight)

    # events

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:  # noqa: N802 - Qt's name
        """The person, a key or the wheel has moved the scroll bar."""
        if self._arranging:
            return
        bar = self.verticalScrollBar()
        self._pinned = bar.value() >= bar.maximum() - 4
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Another width is another height for everything."""
        if event.oldSize().width() != event.size().width():
            for item in self._items:
                item.height = 0
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Colours and sizes are part of the documents, so these are made again."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._restyle_later.start()

    def _restyle(self) -> None:
        for item in self._items:
            item.height = 0
            if item.view is not None:
                item.view.restyle()
                item.view.mark(self._marked, self._mark_colour())
        self._arrange()

    def _focus_moved(self, _old: QWidget | None, new: QWidget | None) -> None:
        """What Tab reaches is brought into view."""
        if not isinstance(new, QAbstractButton) or not self.viewport().isAncestorOf(new):
            return
        if new is self.newest:
            return
        top = new.mapTo(self.viewport(), QPoint(0, 0)).y()
        bar = self.verticalScrollBar()
        if top < 0:
            bar.setValue(bar.value() + top - theme.GRID)
        elif (below := top + new.height() - self.viewport().height()) > 0:
            bar.setValue(bar.value() + below + theme.GRID)
