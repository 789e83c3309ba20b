r"""Autostart as Windows has it: the Run key, and the switch beside it.

Task Manager and Settings > Apps > Startup leave the Run key alone and write a value of the same
name below ``StartupApproved\Run``: twelve bytes, whose first is odd if the user has switched the
entry off (then the moment follows as a FILETIME). An entry that is switched off there counts as off
here; switching it on here writes what those would write, so all of them agree. The format is
undocumented and has been the same since Windows 8.

Importable everywhere: the registry is given.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Literal, Protocol

from fleetapp.errors import ManagedByPolicy
from fleetapp.platform.startup import NAME, Startup

RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
SWITCHED_ON = bytes([2]) + bytes(11)

Root = Literal["HKCU", "HKLM"]


class Registry(Protocol):
    """Three calls, in the 64-bit view. All raise StorageError where access is refused."""

    def get(self, root: Root, key: str, name: str) -> object:
        """A value, or None if it or its key does not exist."""
        ...

    def set(self, key: str, name: str, value: str | bytes) -> None:
        """A text (REG_SZ) or bytes (REG_BINARY) of the current user; makes the key."""
        ...

    def delete(self, key: str, name: str) -> None:
        """Of the current user; nothing happens if there is none."""
        ...


class RunKey:
    """The entry of this app."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def read(self) -> Startup:
        """As it stands."""
        if self._registry.get("HKCU", RUN, NAME):
            return Startup(self._approved("HKCU"), rf"HKCU\{RUN}")
        if self._registry.get("HKLM", RUN, NAME):
            return Startup(self._approved("HKLM"), rf"HKLM\{RUN}", for_all=True)
        return Startup(False, rf"HKCU\{RUN}")

    def _approved(self, root: Root) -> bool:
        flags = self._registry.get(root, APPROVED, NAME)
        return not (isinstance(flags, bytes) and flags and flags[0] % 2)

    def write(self, on: bool, command: Sequence[str]) -> None:
        """Start ``command`` with the session, or do not.

        Raises:
            ManagedByPolicy: it was installed for all users and starts for all of them.
            StorageError: the registry refuses.
        """
        if self.read().for_all:
            raise ManagedByPolicy(
                "This app was set up by an administrator to start for all users of this PC.",
                remedy="Switch it off in Windows' list of startup apps, or ask the administrator.",
            )
        if on:
            self._registry.set(RUN, NAME, subprocess.list2cmdline(command))
            if not self._approved("HKCU"):
                self._registry.set(APPROVED, NAME, SWITCHED_ON)
        else:
            self._registry.delete(RUN, NAME)
            self._registry.delete(APPROVED, NAME)
