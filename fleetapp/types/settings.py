"""Settings as windows and programs see them. No I/O."""

from __future__ import annotations

from typing import Literal

import msgspec

SettingKind = Literal[
    "switch", "number", "choice", "text", "folder", "host_port", "addresses", "devices", "programs",
    "days", "hours",
]  # fmt: skip
"""What sort of value a setting has, and so which control asks for it."""
SettingSource = Literal["default", "user", "environment", "user policy", "machine policy"]
SettingApplies = Literal["now", "next load", "restart"]
"""When a change acts: at once, when a shard is loaded next, or when the agent starts next."""


class OptionView(msgspec.Struct, frozen=True):
    """One value that a choice can have, and what it is called."""

    value: str
    label: str


class SettingView(msgspec.Struct, frozen=True):
    """One setting as a window shows it (``GET /local/v1/settings``), in the language asked for."""

    name: str
    section: str
    """Name of a SectionView."""
    kind: SettingKind
    label: str
    help: str
    value: bool | int | str
    default: bool | int | str
    nothing: str = ""
    """What 0 or an empty text stands for, in words; empty if that is nothing special."""
    example: str = ""
    """How a value is written, where that is not plain."""
    minimum: int = 0
    maximum: int = 0
    unit: str = ""
    """Of a number, as it is written behind it."""
    options: tuple[OptionView, ...] = ()
    """Of a choice."""
    source: SettingSource = "default"
    where: str = ""
    """The file, key or variable that the value comes from."""
    locked: bool = False
    """An administrator has laid it down."""
    policy_only: bool = False
    """Of no use to people; only an administrator has a reason to lay it down."""
    applies: SettingApplies = "now"
    pending: bool = False
    """The running agent goes by another value until its next start."""


class SectionView(msgspec.Struct, frozen=True):
    """A place of settings."""

    name: str
    title: str


class SettingsView(msgspec.Struct, frozen=True):
    """Every setting of this PC, in the order in which they are shown."""

    sections: tuple[SectionView, ...]
    settings: tuple[SettingView, ...]
