"""What can be done with chats besides asking: one menu for the button and the list."""

from __future__ import annotations

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget


class ChatMenu(QMenu):
    """Its actions do nothing by themselves; the window connects them."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Menu"))
        self.new = QAction(self.tr("&New chat"), self)
        self.rename = QAction(self.tr("&Rename"), self)
        self.markdown = QAction(self.tr("Export as &Markdown…"), self)
        self.json = QAction(self.tr("Export as &JSON…"), self)
        self.delete = QAction(self.tr("&Delete…"), self)
        self.find_words = QAction(self.tr("&Find in this chat"), self)
        self.another = QAction(self.tr("New &window"), self)
        self.copy_all = QAction(self.tr("&Copy the whole history to a file…"), self)
        self.delete_all = QAction(self.tr("Delete &all chats…"), self)
        for group in (
            (self.new, self.rename, self.markdown, self.json, self.delete),
            (self.find_words, self.another),
            (self.copy_all, self.delete_all),
        ):
            self.addActions(list(group))
            self.addSeparator()

    def show_for(self, stored: bool) -> None:
        """Offer what fits a chat that is stored, or one that has not begun."""
        for action in (self.rename, self.markdown, self.json, self.delete):
            action.setEnabled(stored)
