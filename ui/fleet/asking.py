"""Questions before something that cannot be taken back, and for a new name. Nothing blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFileDialog, QInputDialog, QLineEdit, QMessageBox, QWidget

translate = QCoreApplication.translate

MAX_NAME = 64


def confirm(
    parent: QWidget, title: str, text: str, yes: str, act: Callable[[], object]
) -> QMessageBox:
    """Ask, with the harmless answer as the default; ``act`` runs on a yes. Already shown."""
    box = QMessageBox(QMessageBox.Icon.Question, title, title, parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(text)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    go = box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    stay = box.addButton(translate("Fleet", "&Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    go.clicked.connect(act)
    box.open()
    return box


def ask_name(parent: QWidget, name: str, act: Callable[[str], object]) -> QInputDialog:
    """Ask for a PC's name; empty is allowed and means its own. Already shown."""
    title = translate("Fleet", "Rename {name}").format(name=name)
    label = translate("Fleet", "Name in this fleet (empty: what the PC calls itself):")
    return _ask(parent, title, label, name, act)


def ask_fleet_name(parent: QWidget, name: str, act: Callable[[str], object]) -> QInputDialog:
    """Ask for the fleet's own name. Already shown."""
    title = translate("Fleet", "Rename the fleet")
    label = translate("Fleet", "Name of the fleet, as all its PCs show it:")
    return _ask(parent, title, label, name, act)


def _ask(
    parent: QWidget, title: str, label: str, name: str, act: Callable[[str], object]
) -> QInputDialog:
    dialog = QInputDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(name)
    field = dialog.findChild(QLineEdit)
    if field is not None:
        field.setMaxLength(MAX_NAME)
    dialog.textValueSelected.connect(act)
    dialog.open()
    return dialog


def save_text(
    parent: QWidget, name: str, text: Callable[[], str], failed: Callable[[str], object]
) -> QFileDialog:
    """Let the person choose a file and write ``text`` there. Already shown."""
    dialog = QFileDialog(parent, translate("Fleet", "Save as"), str(Path.home() / name))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(name).suffix.removeprefix("."))
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: write(Path(path), text(), failed))
    dialog.open()
    return dialog


def write(path: Path, text: str, failed: Callable[[str], object]) -> None:
    """With a mark that makes spreadsheets read it as UTF-8."""
    try:
        path.write_text(text, encoding="utf-8-sig", newline="")
    except OSError as error:
        failed(
            translate("Fleet", "{path} could not be written: {why}.").format(
                path=path, why=error.strerror
            )
        )
