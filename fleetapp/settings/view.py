"""Settings as a window shows them. Pure."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from fleetapp.settings.schema import SCHEMA, SECTIONS, Settings
from fleetapp.settings.words import in_language
from fleetapp.types import OptionView, SectionView, SettingsView, SettingView


def settings_view(
    settings: Settings, pending: Collection[str] = (), language: str = "en"
) -> SettingsView:
    """All of them.

    Args:
        settings: what is laid down now.
        pending: names of those that the running agent will take over at its next start.
        language: of the words; see :func:`fleetapp.settings.words.in_language`.
    """
    return SettingsView(
        sections=tuple(SectionView(n, in_language(t, language)) for n, t in SECTIONS.items()),
        settings=tuple(setting_view(settings, name, pending, language) for name in SCHEMA),
    )


def setting_view(
    settings: Settings, name: str, pending: Collection[str] = (), language: str = "en"
) -> SettingView:
    """One of them; ``name`` must be declared."""
    setting, origin = SCHEMA[name], settings.origin(name)
    kind, words = setting.kind, setting.words
    return SettingView(
        name=name,
        section=setting.section,
        kind=kind.name,
        label=in_language(words.label, language),
        help=in_language(words.help, language),
        value=plain(getattr(settings, name)),
        default=plain(setting.default),
        nothing=in_language(words.nothing, language),
        example=kind.example,
        minimum=kind.minimum,
        maximum=kind.maximum,
        unit=in_language(kind.unit, language),
        options=tuple(OptionView(v, in_language(t, language)) for v, t in kind.options.items()),
        source=origin.source,
        where=origin.where,
        locked=origin.locked,
        policy_only=setting.policy_only,
        applies=setting.applies,
        pending=name in pending,
    )


def plain(value: Any) -> bool | int | str:
    """A value as JSON carries it."""
    if value is None:
        return ""
    if isinstance(value, Path):
        return str(value)
    assert isinstance(value, bool | int | str)
    return value
