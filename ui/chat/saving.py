"""Writing chats to files the person chooses, and asking before something is deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from fleetapp.errors import FleetError, ReadOnly
from ui.chat.export import file_name, to_json, to_markdown
from ui.chat.model import ChatModel


class Saving(QObject):
    """Exports of one conversation and of the whole history."""

    failed = Signal(object)
    """A FleetError."""

    def __init__(self, model: ChatModel, window: QWidget) -> None:
        super().__init__(window)
        self._model = model
        self._window = window

    def ask(self, conversation: int, ending: str) -> None:
        """Let the person choose a file for a conversation: "md" or "json"."""
        known = self._model.store.conversation(conversation)
        if known is not None:
            self._choose(file_name(known, ending), lambda path: self.export(conversation, path))

    def ask_for_history(self) -> None:
        """Let the person choose a file for everything."""
        self._choose("fleetapp-chats.sqlite3", self.copy_history)

    def export(self, conversation: int, path: Path) -> None:
        """Write a conversation: JSON if the name says so, else Markdown."""
        known = self._model.store.conversation(conversation)
        if known is None:
            return
        messages = self._model.messages(conversation)
        if path.suffix.lower() == ".json":
            data = to_json(known, messages)
        else:
            data = to_markdown(known, messages).encode()
        try:
            path.write_bytes(data)
        except OSError as error:
            self.failed.emit(
                ReadOnly(
                    self.tr("{file} could not be written: {why}.").format(
                        file=path, why=error.strerror
                    ),
                    remedy=self.tr("Choose another folder."),
                )
            )

    def copy_history(self, path: Path) -> None:
        """Write the whole history as one file."""
        try:
            self._model.store.copy_to(path)
        except FleetError as error:
            self.failed.emit(error)

    def _choose(self, name: str, save: Callable[[Path], object]) -> None:
        dialog = QFileDialog(self._window, self.tr("Save as"), str(Path.home() / name))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(Path(name).suffix.removeprefix("."))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: save(Path(path)))
        dialog.open()


def confirm(
    window: QWidget, title: str, text: str, yes: str, act: Callable[[], object]
) -> QMessageBox:
    """Ask, with the harmless answer as the default; ``act`` runs on a yes. Already shown."""
    box = QMessageBox(QMessageBox.Icon.Question, title, title, parent=window)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(text)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    go = box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    stay = box.addButton(
        QCoreApplication.translate("Chat", "&Keep"), QMessageBox.ButtonRole.RejectRole
    )
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    go.clicked.connect(act)
    box.open()
    return box
