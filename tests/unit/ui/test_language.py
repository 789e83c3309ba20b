"""Which language is spoken, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication, QDialogButtonBox
from pytestqt.qtbot import QtBot

from ui import words
from ui.counts import counts
from ui.language import Language, language_for, locale_for
from ui.preferences import LANGUAGES

AUSTRIA = QLocale("de_AT")
FRANCE = QLocale("fr_FR")
AMERICA = QLocale("en_US")


@pytest.fixture
def language(qapp: QApplication) -> Iterator[Language]:
    language = Language(qapp)
    yield language
    language.drop()
    QLocale.setDefault(QLocale.c())


@pytest.mark.parametrize(
    ("choice", "system", "spoken"),
    [
        ("system", AUSTRIA, "de"),
        ("system", AMERICA, "en"),
        ("system", FRANCE, "en"),
        ("de", FRANCE, "de"),
        ("en", AUSTRIA, "en"),
    ],
)
def test_the_choice_decides_and_else_the_system(choice: str, system: QLocale, spoken: str) -> None:
    assert language_for(choice, system) == spoken


def test_every_choice_of_the_settings_is_spoken(language: Language) -> None:
    for choice in LANGUAGES:
        language.use(choice, AUSTRIA)
        assert language.name == ("de" if choice == "system" else choice)


def test_numbers_follow_the_place_in_the_chosen_language() -> None:
    assert locale_for("system", FRANCE) == FRANCE
    assert locale_for("de", AUSTRIA) == AUSTRIA
    english_abroad = locale_for("en", QLocale("de_DE"))
    assert english_abroad.language() == QLocale.Language.English
    assert english_abroad.territory() == QLocale.Country.Germany
    assert locale_for("en", AMERICA).toString(1.5) == "1.5"
    assert locale_for("de", AMERICA).toString(1.5) == "1,5"


def test_german_is_spoken_by_us_and_by_qt(language: Language, qtbot: QtBot) -> None:
    language.use("de", QLocale("de_DE"))
    assert words.phase_name("verifying") == "Wird geprüft"
    assert words.size(12_300_000) == "11,7 MiB"
    assert (counts.hours(1), counts.hours(2)) == ("1 Stunde", "2 Stunden")
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    qtbot.addWidget(box)
    assert box.buttons()[0].text().replace("&", "") == "Abbrechen"


def test_english_knows_one_and_many(language: Language) -> None:
    language.use("en", AMERICA)
    assert (counts.hours(1), counts.hours(24)) == ("1 hour", "24 hours")
    assert (counts.tokens(1), counts.tokens(1200)) == ("1 token", "1,200 tokens")


def test_a_change_leaves_nothing_of_the_language_before(language: Language) -> None:
    language.use("de", AUSTRIA)
    language.use("en", AUSTRIA)
    assert QCoreApplication.translate("Words", "Ready") == "Ready"
