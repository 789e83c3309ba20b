"""One message on the screen: who, its blocks, and below an answer how it went.

Only the blocks that can be seen exist as widgets, so that a message may be of any length.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.chat import words
from ui.chat.block_widgets import CONFIRM_MS, CodeBlock, ProseBlock
from ui.chat.blocks import Block, BlockSplitter
from ui.chat.values import Message
from ui.widgets.card import text_label
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.notice import Notice

GAP = theme.GRID
PAD = 2 * theme.GRID
"""Left and right of the text."""
PLAIN_PIECE = 6000
"""Characters of a question that are one block."""


class MessageView(QFrame):
    """Follows one message; its owner asks it to ``arrange`` what is visible."""

    link_chosen = Signal(str)
    edit_asked = Signal(object)
    """The Message, a question."""
    again_asked = Signal(object)
    """The Message, an answer to be replaced."""
    widgets_changed = Signal()
    """Blocks were made, so the order of Tab is another one."""

    def __init__(self, message: Message, parent: QWidget) -> None:
        super().__init__(parent)
        self.message = message
        self.blocks: list[Block] = []
        self._splitter = BlockSplitter()
        self._seen = ""
        """The text that the blocks show."""
        self._finished = False
        self._heights: list[int | None] = []
        """None until measured for the present width."""
        self._width = 0
        self.widgets: dict[int, ProseBlock | CodeBlock] = {}
        self._marked = ""
        self._mark_colour = QColor()
        self.setObjectName("question" if message.role == "user" else "answer")
        if message.role == "user":  # a frame without the style sheet as well, in high contrast
            self.setFrameShape(QFrame.Shape.StyledPanel)
        self._header = self._make_header()
        self._footer = _Footer(self)
        self._footer.again.clicked.connect(self._ask_again)
        self._footer.retry.clicked.connect(self._ask_again)
        self.show_message(message, is_last=False)

    # content

    def show_message(self, message: Message, *, is_last: bool, progress: str = "") -> None:
        """Show what has become of it; text that only grew changes its last block only."""
        self.message = message
        self._who.setText(words.author(message))
        self._when.setText(words.moment(message.created))
        self.setAccessibleName(
            self.tr("{who}, {when}").format(who=self._who.text(), when=self._when.text())
        )
        self._take_text(message)
        self._footer.show_message(message, is_last=is_last, progress=progress)

    def _take_text(self, message: Message) -> None:
        if message.role == "user":
            if not self.blocks:
                self._set_blocks(0, [Block("prose", piece) for piece in _pieces(message.text)])
            return
        if not message.text.startswith(self._seen) or (
            self._finished and message.text != self._seen
        ):
            self._splitter, self._seen, self._finished = BlockSplitter(), "", False
            self._set_blocks(0, [])
        first = len(self.blocks)
        if message.text != self._seen:
            first = self._splitter.feed(message.text[len(self._seen) :])
            self._seen = message.text
        if message.status != "writing" and not self._finished:
            first = min(first, self._splitter.finish())
            self._finished = True
        self._set_blocks(first, self._splitter.blocks)

    def _set_blocks(self, first: int, blocks: list[Block]) -> None:
        for index in [i for i in self.widgets if i >= len(blocks)]:
            self._drop(index)
        for index in range(first, len(blocks)):
            if index < len(self.blocks) and self.blocks[index] == blocks[index]:
                continue
            widget = self.widgets.get(index)
            if widget is not None and isinstance(widget, CodeBlock) != (
                blocks[index].kind == "code"
            ):
                self._drop(index)
            elif widget is not None:
                widget.show_block(blocks[index])
                if self._marked:
                    widget.mark(self._marked, self._mark_colour)
            if index < len(self._heights):
                self._heights[index] = None
        self.blocks = list(blocks)
        del self._heights[len(blocks) :]
        self._heights += [None] * (len(blocks) - len(self._heights))

    # geometry

    def estimate(self, width: int) -> int:
        """Height in pixels, exact for what has been seen."""
        self._use_width(width)
        inner = width - 2 * PAD
        height = GAP + self._header_height() + self._footer.height_for(inner) + GAP
        for index in range(len(self.blocks)):
            height += self._block_height(index, inner) + GAP
        return height

    def arrange(self, width: int, top: int, bottom: int) -> int:
        """Make and place what lies between ``top`` and ``bottom`` (own coordinates); the height."""
        self._use_width(width)
        inner = width - 2 * PAD
        y = GAP
        self._header.setGeometry(PAD, y, inner, self._header_height())
        y += self._header_height()
        keep = bottom - top
        for index, block in enumerate(self.blocks):
            height = self._block_height(index, inner)
            if y + height >= top and y <= bottom:
                shown = self.widgets.get(index) or self._make(index, block)
                height = self._heights[index] = self._measure(index, shown, inner)
                shown.setGeometry(PAD, y, inner, height)
                if shown.isHidden():
                    shown.show()
            elif (widget := self.widgets.get(index)) is not None:
                far = y + height < top - keep or y > bottom + keep
                if far and not widget.isAncestorOf(QApplication.focusWidget() or self):
                    self._drop(index)
                else:
                    widget.setGeometry(PAD, y, inner, height)
            y += height + GAP
        footer = self._footer.height_for(inner)
        self._footer.setGeometry(PAD, y, inner, footer)
        self._footer.setVisible(footer > 0)
        return y + footer + GAP

    def block_top(self, index: int) -> int:
        """Where a block begins, in own coordinates."""
        inner = self._width - 2 * PAD
        above = sum(self._block_height(i, inner) + GAP for i in range(index))
        return GAP + self._header_height() + above

    def first_measured(self, y: int) -> int:
        """Index of the first block that begins at or below ``y`` and was laid out; -1 if none."""
        inner = self._width - 2 * PAD
        at = GAP + self._header_height()
        for index, height in enumerate(self._heights):
            if at >= y and height is not None:
                return index
            at += self._block_height(index, inner) + GAP
        return -1

    def mark(self, text: str, colour: QColor) -> None:
        """Mark every occurrence, also in blocks that are made later."""
        self._marked, self._mark_colour = text, colour
        for widget in self.widgets.values():
            widget.mark(text, colour)

    def restyle(self) -> None:
        """The palette or the font has changed."""
        self._heights = [None] * len(self.blocks)
        for widget in self.widgets.values():
            widget.restyle()

    def _use_width(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._heights = [None] * len(self.blocks)

    def _header_height(self) -> int:
        return self._header.sizeHint().height()

    def _block_height(self, index: int, inner: int) -> int:
        known = self._heights[index]
        return known if known is not None else _guess(self.blocks[index], inner, self)

    def _measure(self, index: int, widget: ProseBlock | CodeBlock, inner: int) -> int:
        known = self._heights[index]
        return known if known is not None and widget.width() == inner else widget.height_for(inner)

    def _make(self, index: int, block: Block) -> ProseBlock | CodeBlock:
        widget: ProseBlock | CodeBlock
        if block.kind == "code":
            widget = CodeBlock(self)
        else:
            widget = ProseBlock(self, plain=self.message.role == "user")
            # before there is text, which would be laid out for no width at all
            widget.setLineWrapColumnOrWidth(self._width - 2 * PAD)
            widget.link_chosen.connect(self.link_chosen)
            widget.setAccessibleName(self.accessibleName())
        widget.show_block(block)
        if self._marked:
            widget.mark(self._marked, self._mark_colour)
        self._heights[index] = None
        self.widgets[index] = widget
        self.widgets_changed.emit()
        return widget

    def _drop(self, index: int) -> None:
        widget = self.widgets.pop(index)
        widget.hide()
        widget.deleteLater()

    def tab_order(self) -> list[QWidget]:
        """Header, blocks from top to bottom, footer."""
        chain: list[QWidget] = [self.edit, self.copy]
        for index in sorted(self.widgets):
            widget = self.widgets[index]
            chain += [widget.copy, widget.edit] if isinstance(widget, CodeBlock) else [widget]
        return [*chain, self._footer.retry, self._footer.again]

    # parts

    def _make_header(self) -> QWidget:
        header = QWidget(self)
        self._who = ElidedLabel()
        font = self._who.font()
        font.setBold(True)
        self._who.setFont(font)
        self._when = ElidedLabel()
        theme.muted(self._when)
        self.copy = _small_button(self.tr("Copy"), self.tr("Copy this message"))
        self.copy.clicked.connect(self.copy_text)
        self.edit = _small_button(self.tr("Edit"), self.tr("Edit this question and send it again"))
        self.edit.clicked.connect(self._ask_edit)
        self._calm = QTimer(self, singleShot=True, interval=CONFIRM_MS)
        self._calm.timeout.connect(self._calm_down)
        row = QHBoxLayout(header)
        row.setContentsMargins(0, 0, 0, theme.GRID // 2)
        row.setSpacing(theme.GRID)
        row.addWidget(self._who)
        row.addWidget(self._when)
        row.addStretch(1)
        row.addWidget(self.edit)
        row.addWidget(self.copy)
        # only now: shown without a parent it would be a window of its own
        self.edit.setVisible(self.message.role == "user")
        return header

    def _ask_again(self) -> None:
        self.again_asked.emit(self.message)

    def _ask_edit(self) -> None:
        self.edit_asked.emit(self.message)

    def _calm_down(self) -> None:
        self.copy.setText(self.tr("Copy"))

    def copy_text(self) -> None:
        """The whole message as it was written, Markdown and all."""
        theme.copy(self.message.text)
        self.copy.setText(self.tr("Copied"))
        self._calm.start()


class _Footer(QWidget):
    """Pauses, failure, how it ended, who served it, and what can be done."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setVisible(False)
        self.notice = Notice()
        self.retry = QPushButton(self.tr("&Retry"))
        self.retry.setAccessibleName(self.tr("Retry: ask again"))
        self.retry.setAutoDefault(False)
        self.progress = text_label(muted=True)
        self.pauses = text_label(muted=True)
        self.line = text_label(muted=True)
        self.again = _small_button(
            self.tr("Regenerate"), self.tr("Replace this answer by a new one")
        )
        failure = QHBoxLayout()
        failure.setSpacing(theme.GRID)
        failure.addWidget(self.notice, 1, Qt.AlignmentFlag.AlignVCenter)
        failure.addWidget(self.retry, 0, Qt.AlignmentFlag.AlignVCenter)
        below = QHBoxLayout()
        below.setSpacing(theme.GRID)
        below.addWidget(self.line, 1, Qt.AlignmentFlag.AlignVCenter)
        below.addWidget(self.again, 0, Qt.AlignmentFlag.AlignTop)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.GRID // 2)
        self._column.addWidget(self.pauses)
        self._column.addLayout(failure)
        self._column.addWidget(self.progress)
        self._column.addLayout(below)
        self._empty = True
        self._known: tuple[int, int] | None = None

    def show_message(self, message: Message, *, is_last: bool, progress: str) -> None:
        failed = message.failure
        self._put(self.pauses, "\n".join(words.pause_line(p) for p in message.pauses))
        self._put(self.progress, progress)
        done = message.role == "assistant" and message.status != "writing"
        ended = " ".join(
            part
            for part in (words.status_line(message.status), words.served_line(message.served))
            if part
        )
        self._put(self.line, ended if done else "")
        if failed is None:
            self.notice.clear()
        elif self.notice.label.text() != (said := f"{failed.message} {failed.remedy}".strip()):
            self.notice.show_text(said)
        self.retry.setVisible(failed is not None and is_last)
        self.again.setVisible(done and failed is None and is_last)
        self._empty = message.role == "user"
        self._known = None

    def height_for(self, width: int) -> int:
        if self._empty:
            return 0
        if self._known is None or self._known[0] != width:
            self._column.invalidate()
            height = self._column.totalHeightForWidth(width)
            self._known = (width, height if height > 0 else self._column.totalSizeHint().height())
        return self._known[1]

    @staticmethod
    def _put(label: QLabel, text: str) -> None:
        if label.text() != text:
            label.setText(text)
        label.setVisible(bool(text))


def _small_button(text: str, name: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setToolTip(name)
    button.setAccessibleName(name)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.setAutoRaise(True)
    return button


def _pieces(text: str) -> list[str]:
    """A question in parts that are each cheap to lay out, cut at line breaks where possible."""
    pieces = []
    start = 0
    while len(text) - start > PLAIN_PIECE:
        newline = text.rfind("\n", start + 1, start + PLAIN_PIECE)
        cut = newline + 1 if newline > 0 else start + PLAIN_PIECE
        pieces.append(text[start:cut].rstrip("\n"))
        start = cut
    pieces.append(text[start:])
    return pieces


def _guess(block: Block, inner: int, widget: QWidget) -> int:
    """Height of a block that was never laid out."""
    metrics = widget.fontMetrics()
    line = metrics.lineSpacing()
    breaks = block.text.count("\n") + 1
    if block.kind == "code":
        return (breaks + 3) * line
    per_line = max(10, inner // max(1, metrics.averageCharWidth()))
    return (breaks + len(block.text) // per_line) * line


def guess_message(message: Message, width: int, widget: QWidget) -> int:
    """Height of a message that was never shown."""
    line = widget.fontMetrics().lineSpacing()
    block = Block("prose", message.text)
    extra = 4 if message.role == "user" else 6
    return _guess(block, max(100, width - 2 * PAD), widget) + extra * line
