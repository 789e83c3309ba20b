"""What somebody has said so far in the first run, and where it is kept until it is carried out."""

from __future__ import annotations

from typing import Literal

import msgspec
from PySide6.QtCore import QSettings

Way = Literal["alone", "join", "create"]
Page = Literal["welcome", "way", "pc", "limits", "work"]
PAGES: tuple[Page, ...] = ("welcome", "way", "pc", "limits", "work")

STATE = "firstrun/state"
"""Empty before the first start, ``open`` until somebody leaves or finishes it, then ``done``."""
CHOICES = "firstrun/choices"


class Choices(msgspec.Struct, frozen=True):
    """Every answer; the page is where to go on."""

    page: Page = "welcome"
    way: Way = "alone"
    name: str = ""
    """Of the fleet to be created."""
    code: str = ""
    address: str = ""
    """``host:port`` of the coordinator, if it is not found by itself."""
    file: str = ""
    """A model file of this PC instead of one from the catalogue."""
    values: dict[str, bool | int | str] = {}
    """Settings that were changed on the page of limits."""


def load(settings: QSettings) -> Choices:
    """What was kept; the beginning if that makes no sense."""
    try:
        return msgspec.json.decode(str(settings.value(CHOICES, "")), type=Choices)
    except msgspec.MsgspecError:
        return Choices()


def keep(settings: QSettings, choices: Choices, *, code: bool = False) -> None:
    """Keep them through a restart. A code lets PCs in: only on request is it kept."""
    kept = choices if code else msgspec.structs.replace(choices, code="")
    settings.setValue(CHOICES, msgspec.json.encode(kept).decode())


def forget(settings: QSettings) -> None:
    """Everything is carried out."""
    settings.remove(CHOICES)
    settings.setValue(STATE, "done")
