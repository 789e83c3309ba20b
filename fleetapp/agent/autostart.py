"""Starting the desktop app with the user's session: the operating system's own switch, no other."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs

from fleetapp.platform.base import Platform
from fleetapp.types import AutostartView

TRAY = "fleetapp-tray"
_LAUNCHERS = ("FleetApp.exe", f"{TRAY}.exe", TRAY)
"""The installed app's own program first, then what pip makes."""


class Autostart:
    """Of one agent.

    Args:
        platform: whose switch it is.
        home: the state folder; the app is told if it is not the usual one.
    """

    def __init__(self, platform: Platform, home: Path) -> None:
        self._platform = platform
        self._home = home

    async def view(self) -> AutostartView:
        """As it stands; people may have changed it elsewhere."""
        found = await asyncio.to_thread(self._platform.startup)
        return AutostartView(found.on, found.where, locked=found.for_all)

    async def set(self, on: bool) -> AutostartView:
        """Switch it. Raises ManagedByPolicy, StorageError."""
        command = [*tray_command(), *_state_option(self._home)]
        await asyncio.to_thread(self._platform.set_startup, on, command)
        return await self.view()


def tray_command(find: Callable[[str], str | None] = shutil.which) -> list[str]:
    """How the desktop app is started from the installation this process belongs to."""
    here = Path(sys.executable)
    for folder in (here.parent, here.parent / "Scripts"):
        for name in _LAUNCHERS:
            if (file := folder / name).is_file() and (file.suffix == ".exe") == (os.name == "nt"):
                return [str(file)]
    if found := find(TRAY):
        return [found]
    return [str(here), "-P", "-m", "ui.app"]


def _state_option(home: Path) -> list[str]:
    usual = Path(platformdirs.user_data_dir("fleetapp", appauthor=False, roaming=False))
    return [] if home == usual else ["--state", str(home)]
