"""The settings' words in the languages that ship. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fleetapp.settings.german import GERMAN
from fleetapp.settings.schema import SCHEMA, SECTIONS

LANGUAGES: Final = ("en", "de")
_TRANSLATED: Final[Mapping[str, Mapping[str, str]]] = {"en": {}, "de": GERMAN}


def english() -> Iterator[str]:
    """Every text of sections and settings that people read."""
    yield from SECTIONS.values()
    for setting in SCHEMA.values():
        words = setting.words
        yield from (words.label, words.help, words.nothing, setting.kind.unit)
        yield from setting.kind.options.values()


def in_language(text: str, language: str) -> str:
    """An English text in another language, ``de`` or ``de-AT``; English where there is none."""
    words = _TRANSLATED.get(language.replace("_", "-").partition("-")[0].lower(), {})
    return words.get(text, text)
