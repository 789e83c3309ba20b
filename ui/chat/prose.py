"""A block of Markdown prose as a document that can be painted, and that cannot load anything.

Qt's own parser (md4c) reads the Markdown, with raw HTML switched off. What is left that could
reach outside is images, and Qt would open those by name, from this PC's disk or, on Windows, from a
network share. So they are replaced by their description before the document is ever laid out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import (
    QColor,
    QFont,
    QPalette,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrame,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)

from ui import theme
from ui.chat.safe_text import cut_long_lines, suspects

translate = QCoreApplication.translate

_FEATURES = QTextDocument.MarkdownFeature
FEATURES = _FEATURES(_FEATURES.MarkdownNoHTML | _FEATURES.MarkdownDialectGitHub)
_DEEP = re.compile(r"^(?:[ \t]*>){12,}", re.MULTILINE)
_MARK = r"(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))"
_NESTED = re.compile(rf"^((?:[ \t]*{_MARK}){{12}})([ \t]*)({_MARK})(?=.*[^-*+\s])", re.MULTILINE)
"""Lists and quotes in one another that a single line opens, and text behind them."""
MOST_LEVELS = 8
"""Of lists that are indented: deeper ones stand where the eighth does."""
_FAR = 4 * MOST_LEVELS
_INDENT = re.compile(rf"^ {{{_FAR},}}(?=\S)", re.MULTILINE)
_TABS = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_HEADINGS = (1.5, 1.3, 1.15, 1.05, 1.0, 1.0)


class SafeDocument(QTextDocument):
    """Never loads a resource: whatever it is asked for is not there."""

    def loadResource(self, _kind: int, _name: QUrl | str) -> object:  # noqa: N802 - Qt's name
        """Nothing."""
        return None


def markdown_document(text: str, palette: QPalette, font: QFont) -> SafeDocument:
    """``text`` laid out by its Markdown, in the colours of ``palette``."""
    document = SafeDocument()
    document.setUndoRedoEnabled(False)
    document.setDefaultFont(font)
    document.setDocumentMargin(0)
    document.setIndentWidth(3 * theme.GRID)
    document.setMarkdown(_prepared(text), FEATURES)
    _replace_images(document)
    _reveal(document)
    _style(document, palette, font)
    return document


def plain_document(text: str, _palette: QPalette, font: QFont) -> SafeDocument:
    """``text`` exactly as it is: what a person typed is no Markdown."""
    document = SafeDocument()
    document.setUndoRedoEnabled(False)
    document.setDefaultFont(font)
    document.setDocumentMargin(0)
    document.setPlainText(cut_long_lines(text))
    _reveal(document)
    return document


def _prepared(text: str) -> str:
    """A line break is one: models write verse and addresses as people do."""
    text = cut_long_lines(text)
    # a thousand nested quotes are no quotation but an attempt at the parser
    text = _DEEP.sub(lambda match: "\\" + match[0].lstrip(), text)
    text = _shallow(text)
    return "\n".join(line + "  " if line else line for line in text.split("\n"))


def _shallow(text: str) -> str:
    """With nothing so deep inside something else that no room is left for its words, and a parser
    nothing but work.
    """
    text = _NESTED.sub(lambda m: f"{m[1]} {m[3][:-1]}\\{m[3][-1]}", text)
    text = _TABS.sub(lambda m: m[0].expandtabs(4), text)
    # a block that begins far to the right is the rest of a long list; as it is it would be code
    far = "" if _INDENT.match(text) else " " * _FAR
    return _INDENT.sub(far, text)


def _fragments(document: QTextDocument) -> Iterator[tuple[int, int, str, QTextCharFormat]]:
    """Position, length, text and format of every piece of one format."""
    block: QTextBlock = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            yield fragment.position(), fragment.length(), fragment.text(), fragment.charFormat()
            iterator += 1
        block = block.next()


def _replace(
    document: QTextDocument, start: int, length: int, text: str, form: QTextCharFormat
) -> None:
    cursor = QTextCursor(document)
    cursor.setPosition(start)
    cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
    cursor.insertText(text, form)


def _replace_images(document: QTextDocument) -> None:
    if "\ufffc" not in document.toPlainText():
        return
    images = [piece for piece in _fragments(document) if piece[3].isImageFormat()]
    for start, length, _, form in reversed(images):
        image = form.toImageFormat()
        words = str(image.property(QTextFormat.Property.ImageAltText) or "").strip()
        plain = QTextCharFormat()
        plain.setFontItalic(True)
        plain.setAnchor(True)
        plain.setAnchorHref(image.name())
        label = translate("Chat", "[Picture, not loaded: {words}]").format(
            words=words or image.name()[:80]
        )
        _replace(document, start, length, label * length, plain)


def _reveal(document: QTextDocument) -> None:
    """Show hidden characters; after parsing, because ``&#x202e;`` becomes one only then."""
    block: QTextBlock = document.begin()
    found = []
    while block.isValid():
        base = block.position()
        text = block.text()
        for start, end, shown in suspects(text.replace("\u2028", "\n")):
            # Qt counts UTF-16 units
            before = len(text[:start].encode("utf-16-le")) // 2
            length = len(text[start:end].encode("utf-16-le")) // 2
            found.append((base + before, length, shown))
        block = block.next()
    for start, length, shown in reversed(found):
        cursor = QTextCursor(document)
        cursor.setPosition(start + 1)
        _replace(document, start, length, shown, cursor.charFormat())


def _style(document: QTextDocument, palette: QPalette, font: QFont) -> None:
    mono = theme.fixed_font().families()
    ground = palette.color(QPalette.ColorRole.AlternateBase)
    mark = palette.color(QPalette.ColorRole.Mid)
    link = palette.color(QPalette.ColorRole.Link)
    for start, length, _, form in list(_fragments(document)):
        change = QTextCharFormat()
        if form.isAnchor():
            change.setForeground(link)
            change.setFontUnderline(True)
        elif form.fontUnderline():  # Qt reads _this_ as underlined, everybody else as emphasis
            change.setFontUnderline(False)
            change.setFontItalic(True)
        if form.fontFixedPitch() or "monospace" in (form.fontFamilies() or ()):
            change.setFontFamilies(mono)
            change.setBackground(_between(ground, mark))
        if change.propertyCount():
            cursor = QTextCursor(document)
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(change)
    _style_blocks(document, palette, font)
    for frame in document.rootFrame().childFrames():
        _style_table(frame, mark)


def _style_blocks(document: QTextDocument, palette: QPalette, font: QFont) -> None:
    block: QTextBlock = document.begin()
    first = True
    while block.isValid():
        form = block.blockFormat()
        cursor = QTextCursor(block)
        change = QTextBlockFormat()
        in_table = cursor.currentTable() is not None
        change.setTopMargin(0 if first or in_table or block.textList() else theme.GRID // 2)
        change.setBottomMargin(0 if in_table else 2)
        quoted = form.property(QTextFormat.Property.BlockQuoteLevel)
        if quoted:
            change.setLeftMargin(2 * theme.GRID * min(int(quoted), MOST_LEVELS))
        if (items := block.textList()) and items.format().indent() > MOST_LEVELS:
            look_of_list = items.format()
            look_of_list.setIndent(MOST_LEVELS)
            items.setFormat(look_of_list)
        cursor.mergeBlockFormat(change)
        if quoted:
            look = QTextCharFormat()
            look.setForeground(palette.color(QPalette.ColorRole.PlaceholderText))
            _whole(cursor, block).mergeCharFormat(look)
        if level := form.headingLevel():
            size = QTextCharFormat()
            size.setProperty(QTextFormat.Property.FontSizeAdjustment, 0)
            size.setFontPointSize(font.pointSizeF() * _HEADINGS[level - 1])
            size.setFontWeight(QFont.Weight.DemiBold)
            _whole(cursor, block).mergeCharFormat(size)
        first = False
        block = block.next()


def _whole(cursor: QTextCursor, block: QTextBlock) -> QTextCursor:
    """The cursor over all text of the block."""
    cursor.setPosition(block.position())
    cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
    return cursor


def _style_table(frame: QTextFrame, line: QColor) -> None:
    if not isinstance(frame, QTextTable):
        return
    form = frame.format()
    form.setBorderBrush(line)
    form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    form.setBorder(1)
    form.setBorderCollapse(True)
    form.setCellPadding(theme.GRID // 2)
    form.setCellSpacing(0)
    form.setWidth(QTextLength(QTextLength.Type.VariableLength, 0))
    frame.setFormat(form)


def _between(one: QColor, other: QColor) -> QColor:
    return QColor(
        (2 * one.red() + other.red()) // 3,
        (2 * one.green() + other.green()) // 3,
        (2 * one.blue() + other.blue()) // 3,
    )
