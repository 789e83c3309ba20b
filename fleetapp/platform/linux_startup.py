"""Autostart as freedesktop.org has it: a desktop entry in a folder of the user or of the system.

The user's file goes before the system's of the same name. ``Hidden=true`` (what KDE writes) and
``X-GNOME-Autostart-enabled=false`` (what GNOME Tweaks and others write) switch an entry off; both
are honoured and are what is written here, so every program that lists startup programs agrees.
Source: Desktop Application Autostart Specification 0.5.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.startup import NAME, Startup

_FILE = f"{NAME}.desktop"
_GROUP = "[Desktop Entry]"
_RESERVED = frozenset(" \t\n\"'\\><~|&;$*?#()`")
_ESCAPED = frozenset('"`$\\')


class DesktopEntries:
    """The entry of this app.

    Args:
        environ: says where the folders are; the process's own if left out.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    @property
    def _own(self) -> Path:
        chosen = self._environ.get("XDG_CONFIG_HOME", "")
        root = Path(chosen) if chosen.startswith("/") else Path.home() / ".config"
        return root / "autostart" / _FILE

    def _systems(self) -> Path | None:
        folders = self._environ.get("XDG_CONFIG_DIRS", "") or "/etc/xdg"
        for folder in folders.split(":"):
            file = Path(folder) / "autostart" / _FILE
            if folder.startswith("/") and file.is_file():
                return file
        return None

    def read(self) -> Startup:
        """As it stands."""
        for file in (self._own, self._systems()):
            if file is None:
                continue
            try:
                entry = _entry(file.read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue
            off = entry.get("Hidden") == "true" or entry.get("X-GNOME-Autostart-enabled") == "false"
            return Startup(not off and bool(entry.get("Exec")), str(file))
        return Startup(False, str(self._own))

    def write(self, on: bool, command: Sequence[str]) -> None:
        """Start ``command`` with the session, or do not.

        Raises:
            StorageError: the entry cannot be written.
        """
        own = self._own
        try:
            if on:
                own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(own, _text(command).encode())
            elif self._systems() is not None:
                own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(
                    own, f"{_GROUP}\nType=Application\nName={NAME}\nHidden=true\n".encode()
                )
            else:
                own.unlink(missing_ok=True)
        except OSError as exc:
            raise storage_error(exc, own) from exc


def _entry(text: str) -> dict[str, str]:
    """Keys of the first group; other groups are actions."""
    found: dict[str, str] = {}
    inside = False
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            if inside:
                break
            inside = line == _GROUP
        elif inside and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key.strip(), value.strip())
    return found


def _text(command: Sequence[str]) -> str:
    return "\n".join(
        (
            _GROUP,
            "Type=Application",
            f"Name={NAME}",
            "Comment=An office's own laptops serving large language models together",
            f"Exec={' '.join(map(_quoted, command))}",
            f"Icon={NAME}",
            "Terminal=false",
            "X-GNOME-Autostart-enabled=true",
            "",
        )
    )


def _quoted(argument: str) -> str:
    """One argument of an Exec line: quoted, then escaped once more as every string of an entry."""
    text = argument.replace("%", "%%")
    if not text or _RESERVED & set(text):
        text = '"' + "".join(f"\\{c}" if c in _ESCAPED else c for c in text) + '"'
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
