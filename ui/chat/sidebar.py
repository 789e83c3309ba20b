"""The left side: a new chat, search, and the conversations."""

from __future__ import annotations

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui import theme
from ui.chat.conversation_list import CONVERSATION, ConversationDelegate, ConversationList
from ui.chat.model import ChatModel
from ui.chat.values import NEW
from ui.widgets.card import text_label

SEARCH_MS = 120
"""After the last key, so that fast typing searches once."""


class Sidebar(QWidget):
    """Follows the ChatModel; which conversation is chosen, the window decides."""

    chosen = Signal(int)
    new_asked = Signal()

    def __init__(self, model: ChatModel, menu: QMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._current = NEW
        self.menu = menu
        self.new = QPushButton(self.tr("&New chat"))
        self.new.setToolTip(self.tr("Ctrl+N"))
        self.new.setAutoDefault(False)
        self.new.clicked.connect(self.new_asked)
        self.more = QToolButton()
        self.more.setText("⋯")
        self.more.setAccessibleName(self.tr("Menu"))
        self.more.setToolTip(self.tr("Menu"))
        self.more.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(menu)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search chats (Ctrl+K)"))
        self.search.setAccessibleName(self.tr("Search chats"))
        self.search.setClearButtonEnabled(True)
        self.search.installEventFilter(self)
        self._later = QTimer(self, singleShot=True, interval=SEARCH_MS)
        self._later.timeout.connect(self.refresh)
        self.search.textChanged.connect(self._later.start)
        self.list = ConversationList(self)
        self.list.rename_asked.connect(model.rename)
        self.view = QListView()
        self.view.setObjectName("conversations")
        self.view.setAccessibleName(self.tr("Chats"))
        self.view.setModel(self.list)
        self.view.setItemDelegate(ConversationDelegate(self.view))
        self.view.setUniformItemSizes(True)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._context_menu)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.selectionModel().currentChanged.connect(self._current_changed)
        self.nothing = text_label(muted=True)
        top = QHBoxLayout()
        top.setSpacing(theme.GRID)
        top.addWidget(self.new, 1)
        top.addWidget(self.more)
        column = QVBoxLayout(self)
        column.setContentsMargins(*(theme.GRID,) * 4)
        column.setSpacing(theme.GRID)
        column.addLayout(top)
        column.addWidget(self.search)
        column.addWidget(self.nothing)
        column.addWidget(self.view, 1)
        model.conversations_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show what there is, or what the search finds."""
        words = self.search.text()
        found = self._model.search(words)
        self.list.show_conversations(found)
        self.nothing.setVisible(not found)
        self.nothing.setText(
            self.tr("No chat has these words.") if words.strip() else self.tr("No chats yet.")
        )
        self._select()

    def set_current(self, conversation: int) -> None:
        """Mark the one that is shown."""
        self._current = conversation
        self._select()

    def rename_current(self) -> None:
        """Let the title be edited in place."""
        row = self.list.row_of(self._current)
        if row >= 0:
            self.view.setFocus()
            self.view.edit(self.list.index(row))

    def start_search(self) -> None:
        """The cursor goes to the search field."""
        self.search.setFocus()
        self.search.selectAll()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Down from the search goes to what it found; Return opens the first."""
        pressed = isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress
        if watched is self.search and pressed and self.list.rowCount():
            assert isinstance(event, QKeyEvent)
            if event.key() == Qt.Key.Key_Down:
                self.view.setFocus()
                if not self.view.currentIndex().isValid():
                    self.view.setCurrentIndex(self.list.index(0))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.refresh()
                self.view.setCurrentIndex(self.list.index(0))
                return True
        return super().eventFilter(watched, event)

    def _select(self) -> None:
        row = self.list.row_of(self._current)
        selection = self.view.selectionModel()
        selection.blockSignals(True)
        if row < 0:
            selection.clear()
        else:
            index = self.list.index(row)
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        selection.blockSignals(False)
        self.view.viewport().update()

    def _current_changed(self, current: QModelIndex) -> None:
        if current.isValid():
            self.chosen.emit(current.data(CONVERSATION).id)

    def _context_menu(self, at: QPoint) -> None:
        if self.view.indexAt(at).isValid():
            self.menu.popup(self.view.viewport().mapToGlobal(at))
