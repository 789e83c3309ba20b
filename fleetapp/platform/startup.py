"""Whether a program starts with the user's session, as the operating system has it."""

from __future__ import annotations

from dataclasses import dataclass

NAME = "fleetapp"
"""Of the entry, on every system; installers write the same one."""


@dataclass(frozen=True)
class Startup:
    """What the system would do at the next login."""

    on: bool
    where: str
    """The file or key that says so."""
    for_all: bool = False
    """An administrator has set it up for all users, and this one cannot change it."""
