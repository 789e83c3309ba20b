"""The list of conversations: a model for any number of them, and how one looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from ui import theme
from ui.chat import words
from ui.chat.safe_text import one_line
from ui.chat.values import Conversation

Index = QModelIndex | QPersistentModelIndex
CONVERSATION = Qt.ItemDataRole.UserRole


class ConversationList(QAbstractListModel):
    """Titles can be edited in place; that is a wish, carried out elsewhere."""

    rename_asked = Signal(int, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Conversation] = []

    def show_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show these instead."""
        if list(conversations) == self._rows:
            return
        self.beginResetModel()
        self._rows = list(conversations)
        self.endResetModel()

    def row_of(self, conversation: int) -> int:
        """-1 if it is not shown."""
        return next((i for i, c in enumerate(self._rows) if c.id == conversation), -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title, the Conversation itself, or both lines for a screen reader."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == CONVERSATION:
            return row
        if role == Qt.ItemDataRole.EditRole:
            return row.title
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return one_line(row.title)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{one_line(row.title)}, {second_line(row)}"
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """A new title."""
        if role != Qt.ItemDataRole.EditRole or not str(value).strip():
            return False
        self.rename_asked.emit(self._rows[index.row()].id, str(value))
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable


def second_line(conversation: Conversation) -> str:
    """Where the search found its words, else when it was used last."""
    return one_line(conversation.excerpt) or words.moment(conversation.updated)


class ConversationDelegate(QStyledItemDelegate):
    """Title above, date or excerpt below."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:  # noqa: N802
        return QSize(10 * theme.GRID, 2 * option.fontMetrics.lineSpacing() + 2 * theme.GRID)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Both lines, cut at the edge."""
        conversation: Conversation = index.data(CONVERSATION)
        self.initStyleOption(option, index)
        option.text = ""
        style = option.widget.style() if option.widget else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        palette: QPalette = option.palette
        first = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        second = (
            QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.PlaceholderText
        )
        metrics = option.fontMetrics
        room: QRect = option.rect.adjusted(theme.GRID, theme.GRID, -theme.GRID, -theme.GRID)
        line = metrics.lineSpacing()
        painter.save()
        for number, (text, role) in enumerate(
            ((one_line(conversation.title), first), (second_line(conversation), second))
        ):
            painter.setPen(palette.color(role))
            place = QRect(room.x(), room.y() + number * line, room.width(), line)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            flags = int(Qt.AlignmentFlag.AlignVCenter) | int(Qt.AlignmentFlag.AlignLeading)
            painter.drawText(place, flags, shown)
        painter.restore()

    def createEditor(  # noqa: N802 - Qt's name
        self, parent: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> QWidget:
        """A field with a name."""
        editor: QWidget = super().createEditor(parent, option, index)
        editor.setAccessibleName(self.tr("Title of the chat"))
        return editor

    def updateEditorGeometry(  # noqa: N802 - Qt's name
        self, editor: QWidget, option: QStyleOptionViewItem, _index: Index
    ) -> None:
        """Over both lines."""
        rect: QRect = option.rect
        height = editor.sizeHint().height()
        editor.setGeometry(rect.x(), rect.center().y() - height // 2, rect.width(), height)
