"""Where the agent of this PC can be reached, as its state folder says."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs
from PySide6.QtCore import QCoreApplication

from fleetapp.errors import AgentNotRunning

translate = QCoreApplication.translate


class _AgentFile(msgspec.Struct, frozen=True):
    pid: int
    port: int


@dataclass(frozen=True)
class Endpoint:
    """The loopback API of a running agent."""

    pid: int
    port: int
    token: str


def default_home() -> Path:
    """``FLEETAPP_HOME`` if set, else the user's local (never roaming) data folder.

    The same rule as in ``fleetapp.platform.paths``, which this side may not import.
    """
    if chosen := os.environ.get("FLEETAPP_HOME", ""):
        return Path(chosen).expanduser().absolute()
    return Path(platformdirs.user_data_dir("fleetapp", appauthor=False, roaming=False))


def read_endpoint(home: Path) -> Endpoint:
    """Port and token of the agent whose state folder is ``home``.

    Raises:
        AgentNotRunning: the files are not there, or were left behind by a process that died. The
            token is never sent to a port that another program may have taken since.
    """
    try:
        agent = msgspec.json.decode((home / "agent.json").read_bytes(), type=_AgentFile)
        token = (home / "api-token").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise not_running() from None
    except (OSError, ValueError, msgspec.DecodeError) as error:
        odd = translate("Errors", "The agent's files in {folder} cannot be read: {why}.")
        raise AgentNotRunning(odd.format(folder=home, why=error)) from error
    if not process_alive(agent.pid):
        raise not_running()
    return Endpoint(agent.pid, agent.port, token)


def not_running() -> AgentNotRunning:
    """The error, worded for somebody in front of the desktop app."""
    return AgentNotRunning(
        translate("Errors", "The agent on this PC is not running."),
        remedy=translate(
            "Errors",
            "fleetapp starts it again; if that fails, start it from the menu of the tray icon.",
        ),
    )


def process_alive(pid: int) -> bool:
    """Whether a process of this id exists, on either system."""
    if pid <= 0:
        return False
    if sys.platform == "win32":
        return _process_alive_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """A process that has ended and waits for its parent to notice."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[:1] == [b"Z"]


def _process_alive_windows(pid: int) -> bool:
    # os.kill(pid, 0) would send Ctrl+C there
    import ctypes  # noqa: PLC0415 - only this system needs it

    synchronize, still_running = 0x00100000, 0x102
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(synchronize, False, pid)
    if not handle:
        return False
    try:
        return bool(kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) == still_running)
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))
