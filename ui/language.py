"""Which language the desktop app speaks, and how it writes numbers and dates.

English is written in the code, German in ``resources/translations``; English has a file as well,
for one and many (``1 hour``, ``2 hours``). Qt's own words (Cancel, Close) come from Qt.
"""

from __future__ import annotations

import logging
from importlib.resources import files

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

log = logging.getLogger("ui.language")

_LANGUAGES = {"en": QLocale.Language.English, "de": QLocale.Language.German}


def language_for(choice: str, system: QLocale) -> str:
    """``en`` or ``de``: the one chosen, else the system's first that we speak, else English."""
    if choice in _LANGUAGES:
        return choice
    wanted = (name.replace("_", "-").partition("-")[0] for name in system.uiLanguages())
    return next((name for name in wanted if name in _LANGUAGES), "en")


def locale_for(choice: str, system: QLocale) -> QLocale:
    """How numbers and dates are written: the system's way, in the chosen language."""
    if choice not in _LANGUAGES or system.language() == _LANGUAGES[choice]:
        return system
    return QLocale(_LANGUAGES[choice], system.territory())


class Language:
    """Puts one language at a time into the application."""

    def __init__(self, app: QCoreApplication) -> None:
        self._app = app
        self._translators: list[QTranslator] = []
        self.name = "en"

    def use(self, choice: str, system: QLocale | None = None) -> None:
        """Speak it from now on; windows that exist already keep their words."""
        system = system or QLocale.system()
        self.name = language_for(choice, system)
        QLocale.setDefault(locale_for(choice, system))
        self.drop()
        ours = files("resources") / "translations" / f"fleetapp_{self.name}.qm"
        qts = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        for path in (f"{qts}/qtbase_{self.name}.qm", str(ours)):  # the last is asked first
            translator = QTranslator(self._app)
            if translator.load(path):
                self._app.installTranslator(translator)
                self._translators.append(translator)
            else:
                log.warning("the translation %s cannot be read", path)

    def drop(self) -> None:
        """Take away what ``use`` has installed; what is left is the text in the code."""
        while self._translators:
            self._app.removeTranslator(self._translators.pop())
