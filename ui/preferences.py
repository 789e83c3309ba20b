"""What concerns only the desktop app, kept in ``ui.ini`` beside its windows' places."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

LANGUAGE = "ui/language"
LANGUAGES = ("system", "en", "de")
THEME = "ui/theme"
THEMES = ("system", "light", "dark")
NOTIFICATIONS = "notifications"


def preferences_of(home: Path) -> QSettings:
    """Of the app whose state folder is ``home``; every such object sees the others' changes."""
    return QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat)


def theme_choice(settings: QSettings) -> str:
    """One of THEMES; what makes no sense counts as ``system``."""
    return _one_of(settings.value(THEME), THEMES)


def language_choice(settings: QSettings) -> str:
    """One of LANGUAGES, likewise."""
    return _one_of(settings.value(LANGUAGE), LANGUAGES)


def notifications_wanted(settings: QSettings) -> bool:
    """Whether the app may say things by itself; who has just clicked is answered always."""
    return bool(settings.value(NOTIFICATIONS, True, type=bool))


def _one_of(value: object, choices: tuple[str, ...]) -> str:
    return str(value) if value in choices else choices[0]
