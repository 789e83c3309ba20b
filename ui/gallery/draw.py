"""Takes the pictures, each in every colour scheme."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import (
    QLocale,
    QMessageLogContext,
    QObject,
    QStandardPaths,
    Qt,
    QtMsgType,
    qInstallMessageHandler,
)
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from ui.gallery import chat_scenes, desk_scenes, office_scenes
from ui.gallery.check import complaints
from ui.gallery.stage import Scene, Stage
from ui.icons import app_icon
from ui.language import Language
from ui.theme import DARK, LIGHT, Theme

PLACES = {"en": QLocale("en_GB"), "de": QLocale("de_DE")}


def scenes() -> list[Scene]:
    """All there are."""
    return [*desk_scenes.scenes(), *chat_scenes.scenes(), *office_scenes.scenes()]


def high_contrast() -> QPalette:
    """As Windows has it under the name "Night sky": the system's own colours, not ours."""
    palette = QPalette(QColor("#000000"))
    role = QPalette.ColorRole
    for name, colour in {
        role.Window: "#000000",
        role.Base: "#000000",
        role.AlternateBase: "#000000",
        role.Button: "#000000",
        role.ToolTipBase: "#000000",
        role.WindowText: "#ffffff",
        role.Text: "#ffffff",
        role.ButtonText: "#ffffff",
        role.BrightText: "#ffffff",
        role.ToolTipText: "#ffffff",
        role.PlaceholderText: "#a6a6a6",
        role.Highlight: "#d6b4fd",
        role.HighlightedText: "#2b2b2b",
        role.Accent: "#d6b4fd",
        role.Link: "#8080ff",
        role.LinkVisited: "#8080ff",
        role.Mid: "#ffffff",
    }.items():
        palette.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, name, QColor("#a6a6a6"))
    return palette


def _say(_kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    if not text.startswith("This plugin does not support"):  # a screen that nobody sees
        print(text, file=sys.stderr)  # noqa: T201


class Gallery(QObject):
    """One application that shows scene after scene in one language."""

    def __init__(self, language: str, *, reverse: bool = False) -> None:
        super().__init__()
        QStandardPaths.setTestModeEnabled(True)
        qInstallMessageHandler(_say)
        self._app = QApplication(["fleetapp-tray"])
        self._app.setApplicationDisplayName("fleetapp")
        self._app.setWindowIcon(app_icon())
        self._app.setCursorFlashTime(0)
        self._app.setQuitOnLastWindowClosed(False)
        if reverse:
            self._app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self._language = Language(self._app)
        self._language.use(language, PLACES[language])
        self._theme = Theme(self._app)
        self._stages: list[Stage] = []
        self.shown = 0

    def close(self) -> None:
        """Give the files of all scenes back."""
        for stage in self._stages:
            stage.close()

    def show(self, folder: Path, scheme: str, only: list[str], *, check: bool) -> list[str]:
        """Go through the scenes in one scheme: put pictures into a folder of its name, or check.

        Args:
            folder: where that folder is made.
            scheme: light, dark or contrast.
            only: scenes, or groups such as ``chat``; empty means all.
            check: look for what is wrong, see ``complaints``, and draw nothing.

        Returns:
            What is wrong.
        """
        if scheme == "contrast":
            self._theme.leave_to_system(high_contrast())
        else:
            self._theme.apply(DARK if scheme == "dark" else LIGHT)
        (folder / scheme).mkdir(parents=True, exist_ok=True)
        found = []
        for scene in scenes():
            if only and scene.name not in only and scene.name.partition("-")[0] not in only:
                continue
            stage = Stage()
            self._stages.append(stage)
            window = scene.show(stage)
            stage.settle()
            if check:
                found += [f"{scene.name}: {complaint}" for complaint in complaints(window)]
            elif not window.grab().save(str(folder / scheme / f"{scene.name}.png")):
                found.append(f"{scene.name}: the picture cannot be written to {folder / scheme}")
            self.shown += 1
            stage.clear()
        return found
