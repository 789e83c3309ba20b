"""Widgets for one block of a message: prose, or code with a button that copies it.

Each knows its height for a width and passes the wheel on, for only the whole thread scrolls.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from PySide6.QtCore import QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QTextBrowser,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.chat.blocks import Block
from ui.chat.highlight import Span, spans
from ui.chat.prose import SafeDocument, markdown_document, plain_document
from ui.chat.safe_text import cut_long_lines, visible

SLICE = 0.006
"""Seconds of colouring before the event loop has its turn."""
CONFIRM_MS = 1500


class ProseBlock(QTextBrowser):
    """Paragraphs, lists, tables; selectable; its links only say that they were chosen."""

    link_chosen = Signal(str)

    def __init__(self, parent: QWidget, *, plain: bool = False) -> None:
        super().__init__(parent)
        self._plain = plain
        self._block = Block("prose", "")
        self._document: SafeDocument | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setLineWrapMode(QTextEdit.LineWrapMode.FixedPixelWidth)
        self.setUndoRedoEnabled(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabChangesFocus(True)
        see_through(self)
        self.anchorClicked.connect(self._chosen)

    def show_block(self, block: Block) -> None:
        """Show ``block`` instead."""
        self._block = block
        make = plain_document if self._plain else markdown_document
        document = make(block.text, QGuiApplication.palette(), self.font())
        document.setParent(self)
        # marks of the old document would be looked at after its end
        self.setExtraSelections([])
        old, self._document = self._document, document
        self.setDocument(document)
        if old is not None:  # Qt deletes the one it began with by itself
            old.deleteLater()
        # by Tab only where there is something to choose; a message is copied by its button
        has_link = "](" in block.text or "://" in block.text
        self.setFocusPolicy(
            Qt.FocusPolicy.StrongFocus
            if has_link and not self._plain
            else Qt.FocusPolicy.ClickFocus
        )

    def restyle(self) -> None:
        """The palette or the font has changed."""
        self.show_block(self._block)

    def height_for(self, width: int) -> int:
        """Pixels."""
        # by the widget: told only to the document it would be taken back for the present width
        if width != self.lineWrapColumnOrWidth():
            self.setLineWrapColumnOrWidth(width)
        self.document().setTextWidth(width)
        return int(self.document().size().height() + 0.99)

    def plain_text(self) -> str:
        """As it reads on the screen."""
        return self.document().toPlainText()

    def mark(self, words: str, colour: QColor) -> None:
        """Put a ground of this colour under every occurrence; the empty text takes it away."""
        _mark(self, words, colour)

    def _chosen(self, url: QUrl) -> None:
        self.link_chosen.emit(url.toString())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """For the thread."""
        event.ignore()

    def doSetSource(self, *_: object) -> None:  # noqa: N802 - Qt's name
        """A link never replaces what is shown."""


class CodeBlock(QFrame):
    """Code from left to right in a fixed font, coloured a little later than shown."""

    copied = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("code")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._block = Block("code", "")
        self._words: Iterator[Span] = iter(())
        self._coloured = ""
        """The code whose words ``_words`` are."""
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._language = theme.muted(QLabel())
        self._language.setTextFormat(Qt.TextFormat.PlainText)
        self.copy = QToolButton()
        self.copy.setText(self.tr("Copy code"))
        self.copy.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.copy.clicked.connect(self._copy)
        self.edit = _CodeEdit(self)
        head = QHBoxLayout()
        head.setContentsMargins(theme.GRID, 0, 0, 0)
        head.addWidget(self._language, 1)
        head.addWidget(self.copy)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(theme.GRID // 2, theme.GRID // 2, theme.GRID // 2, theme.GRID)
        column.setSpacing(theme.GRID // 2)
        column.addLayout(head)
        column.addWidget(self.edit, 1)
        self._slices = QTimer(self, singleShot=True)
        self._slices.timeout.connect(self._colour_slice)
        self._formats: dict[int, list[QTextLayout.FormatRange]] = {}
        self._cost = 0.0
        self._calm = QTimer(self, singleShot=True, interval=CONFIRM_MS)
        self._calm.timeout.connect(self._calm_down)

    def show_block(self, block: Block) -> None:
        """Show ``block``; text that only grew is appended, so that a stream stays cheap."""
        before = visible(cut_long_lines(self._block.text))
        after = visible(cut_long_lines(block.text))
        self._block = block
        self._language.setText(block.language or self.tr("code"))
        name = self.tr("Code, {language}").format(language=block.language or self.tr("text"))
        self.edit.setAccessibleName(name)
        self.copy.setAccessibleName(self.tr("Copy code: {language}").format(language=name))
        if after != before or not self.edit.toPlainText():
            cursor = self.edit.textCursor()
            if before and after.startswith(before):
                cursor = self.edit.cursor_at_end()
                cursor.insertText(after[len(before) :])
            else:
                self.edit.setPlainText(after)
        if after != self._coloured and (block.closed or not self._slices.isActive()):
            # while it grows, colouring anew takes at most a fifth of the time
            self._slices.start(0 if block.closed else round(max(0.15, 4 * self._cost) * 1000))

    def restyle(self) -> None:
        """The palette or the font has changed."""
        self._coloured = ""
        self._formats = {}
        self.edit.setFont(theme.fixed_font())
        self._slices.start(0)

    def height_for(self, width: int) -> int:
        """Pixels."""
        margins = self._column.contentsMargins()
        chrome = margins.top() + margins.bottom() + theme.GRID // 2
        inner = width - margins.left() - margins.right()
        return self.copy.sizeHint().height() + chrome + self.edit.height_for(inner)

    def plain_text(self) -> str:
        """As it reads on the screen."""
        return self.edit.toPlainText()

    def mark(self, words: str, colour: QColor) -> None:
        """Put a ground of this colour under every occurrence; the empty text takes it away."""
        _mark(self.edit, words, colour)

    def _copy(self) -> None:
        theme.copy(self._block.text)
        self.copy.setText(self.tr("Copied"))
        self._calm.start()
        self.copied.emit(self._block.text)

    def _calm_down(self) -> None:
        self.copy.setText(self.tr("Copy code"))

    def _colour_slice(self) -> None:
        code = visible(cut_long_lines(self._block.text))
        begun = time.perf_counter()
        if code != self._coloured:
            self._coloured = code
            self._cost = 0.0
            self._words = spans(code, self._block.language)
            self._formats = {}
            self._units = _Units(code)
        looks = _looks()
        document = self.edit.document()
        for start, length, word in self._words:
            self._place(start, length, looks[word])
            if time.perf_counter() - begun > SLICE:
                self._cost += time.perf_counter() - begun
                self._slices.start(1)
                return
        for number, formats in self._formats.items():
            document.findBlockByNumber(number).layout().setFormats(formats)
        document.markContentsDirty(0, document.characterCount())
        self._cost += time.perf_counter() - begun
        if code != visible(cut_long_lines(self._block.text)):
            self._slices.start(round(max(0.15, 4 * self._cost) * 1000))

    def _place(self, start: int, length: int, look: QTextCharFormat) -> None:
        for number, column, units in self._units.lines(start, length):
            piece = QTextLayout.FormatRange()
            piece.start, piece.length, piece.format = column, units, look
            self._formats.setdefault(number, []).append(piece)


class _Units:
    """From characters of a text to Qt's lines and UTF-16 units."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 0
        self._begin = 0

    def lines(self, start: int, length: int) -> Iterator[tuple[int, int, int]]:
        """Line, column and length of each part of a span; spans must come in order."""
        text, end = self._text, start + length
        while (newline := text.find("\n", self._begin, start)) >= 0:
            self._begin = newline + 1
            self._line += 1
        line, begin = self._line, self._begin
        while start < end:
            newline = text.find("\n", start, end)
            stop = end if newline < 0 else newline
            if stop > start:
                yield line, _utf16(text[begin:start]), _utf16(text[start:stop])
            if newline < 0:
                return
            start = begin = newline + 1
            line += 1


def _utf16(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class _CodeEdit(QPlainTextEdit):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setTabChangesFocus(True)
        self.setFont(theme.fixed_font())
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        see_through(self)
        option = self.document().defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        self.document().setDefaultTextOption(option)
        self.document().setDocumentMargin(theme.GRID // 2)

    def cursor_at_end(self) -> QTextCursor:
        cursor = self.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        return cursor

    def height_for(self, width: int) -> int:
        line = self.fontMetrics().lineSpacing()
        height = self.blockCount() * line + theme.GRID
        if self._widest() > width:
            height += self.horizontalScrollBar().sizeHint().height()
        return height

    def _widest(self) -> float:
        # the layout is lazy; a fixed font needs no laying out to know, but fractions of a pixel
        longest = max((len(line) for line in self.toPlainText().split("\n")), default=0)
        return longest * QFontMetricsF(self.font()).horizontalAdvance("m") + 2 * theme.GRID

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        return QSize(100, self.height_for(self.width()))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        sideways = event.angleDelta().x() or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and self.horizontalScrollBar().maximum():
            super().wheelEvent(event)
        else:
            event.ignore()


def see_through(edit: QTextBrowser | QPlainTextEdit) -> None:
    """Show the ground behind; a style sheet would change the scroll bars as well."""
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
    edit.setPalette(palette)


def _looks() -> dict[str, QTextCharFormat]:
    colours = theme.code_colours()
    looks = {}
    for word in ("keyword", "text", "comment", "number", "name"):
        look = QTextCharFormat()
        if colours is not None:
            look.setForeground(QColor(getattr(colours, word)))
        if word == "comment":
            look.setFontItalic(True)
        elif word == "keyword":
            look.setFontWeight(QFont.Weight.DemiBold)
        looks[word] = look
    return looks


def _mark(edit: QTextBrowser | QPlainTextEdit, words: str, colour: QColor) -> None:
    marks: list[QTextEdit.ExtraSelection] = []
    if words:
        text = edit.toPlainText()
        for match in re.finditer(re.escape(words), text, re.IGNORECASE):
            mark = QTextEdit.ExtraSelection()
            cursor = edit.textCursor()
            cursor.setPosition(_utf16(text[: match.start()]))
            cursor.setPosition(_utf16(text[: match.end()]), cursor.MoveMode.KeepAnchor)
            look = QTextCharFormat()
            look.setBackground(colour)
            look.setForeground(edit.palette().color(QPalette.ColorRole.HighlightedText))
            mark.cursor, mark.format = cursor, look
            marks.append(mark)
            if len(marks) >= 500:
                break
    edit.setExtraSelections(marks)
