"""The installed Windows app, as its user and its administrator meet it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.agents import AgentProcess
from tests.support.wine import Windows

PROGRAMS = ("FleetApp.exe", "fleetapp-worker.exe", "fleetapp-cli.exe")
RUN_KEY = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run"
START_DEADLINE = 120.0


class WindowsAgent(AgentProcess):
    """The agent that the installed app has started: asked over its loopback API, from outside."""

    def connect(self, deadline: float = START_DEADLINE) -> WindowsAgent:
        """Wait until it answers."""
        end = time.monotonic() + deadline
        while True:
            try:
                found = json.loads((self.home / "agent.json").read_text("utf-8"))
                self._port = int(found["port"])
                self._token = (self.home / "api-token").read_text("ascii").strip()
                self.get("status")
            except (OSError, ValueError, KeyError):
                assert time.monotonic() < end, "the Windows agent did not start in time"
                time.sleep(0.2)
            else:
                return self


class InstalledApp:
    """One installation.

    Args:
        windows: the PC.
        folder: where, below the drive; the installer's own choice if left out.
    """

    def __init__(self, windows: Windows, folder: str = "") -> None:
        self.windows = windows
        self._chosen = folder
        self.home = windows.local / "fleetapp"
        self.agent = WindowsAgent(self.home)

    @property
    def root(self) -> Path:
        if self._chosen:
            return self.windows.drive / self._chosen
        return self.windows.local / "Programs/FleetApp"

    def install(self, setup: Path, *options: str, check: bool = True) -> int:
        """Silently; the installer's exit code."""
        # NSIS reads the rest of the line and wants no quotation marks, which Wine would add
        where = f"/D={self.windows.windows_path(self.root)}".split(" ") if self._chosen else []
        path = self.windows.windows_path(setup)
        return self.windows.wine(path, "/S", *options, *where, check=check).returncode

    def uninstall(self, *options: str, deadline: float = 120) -> None:
        """Silently; NSIS goes on from a copy of itself, so wait for the folder to go."""
        self.windows.wine(self.path("Uninstall.exe"), "/S", *options)
        end = time.monotonic() + deadline
        while self.root.exists():
            assert time.monotonic() < end, f"left over: {list(self.root.rglob('*'))[:20]}"
            time.sleep(0.2)

    def path(self, program: str) -> str:
        return self.windows.windows_path(self.root / program)

    def cli(self, *arguments: str, check: bool = True, **env: str) -> str:
        """What a command of the command line says."""
        done = self.windows.wine(self.path("fleetapp-cli.exe"), *arguments, check=check, **env)
        return done.stdout.decode("utf-8", "replace")

    def python(self, code: str, **env: str) -> Any:
        """What a piece of Python prints, as JSON, run by the installed interpreter."""
        done = self.windows.wine(self.path("fleetapp-worker.exe"), "-c", code, **env)
        return json.loads(done.stdout.decode("utf-8").strip().splitlines()[-1])

    def script(self, file: Path, *arguments: str, **env: str) -> Any:
        """What a file of Python prints, likewise; it may be longer than a command line."""
        path = self.windows.windows_path(file)
        done = self.windows.wine(self.path("fleetapp-worker.exe"), path, *arguments, **env)
        return json.loads(done.stdout.decode("utf-8").strip().splitlines()[-1])

    def start(self, **env: str) -> None:
        """The desktop app, as a double click does."""
        self.windows.start("wine", self.path("FleetApp.exe"), **env)

    def start_agent(self, **env: str) -> WindowsAgent:
        """The agent alone, and wait for it."""
        (self.home / "agent.json").unlink(missing_ok=True)
        line = ("-P", "-m", "fleetapp.cli", "agent")
        self.windows.start("wine", self.path("fleetapp-worker.exe"), *line, **env)
        return self.agent.connect()

    def quit(self) -> None:
        """As the installer asks the app to; app and agent end."""
        assert self.windows.wine(self.path("FleetApp.exe"), "--quit").returncode == 0
        self.until_ended()

    def until_ended(self) -> None:
        """Wait for the last process of it to go."""
        end = time.monotonic() + START_DEADLINE
        while self.running():
            assert time.monotonic() < end, f"still there: {self.running()}"
            time.sleep(0.2)

    def answers(self) -> list[str]:
        """Every whole answer in the history of the chats."""
        history = self.home / "chats.sqlite3"
        if not history.exists():
            return []
        with closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "SELECT text FROM messages WHERE role = 'assistant' AND status = 'complete'"
            ).fetchall()
        return [str(row[0]) for row in rows]

    def running(self) -> list[str]:
        """Command lines of what runs of it."""
        return [" ".join(line).strip() for line in self.windows.processes(*PROGRAMS).values()]

    def runner(self) -> int:
        """The process that holds a stage, as Linux numbers it; 0 if there is none."""
        return next(iter(self.runners()), 0)

    def runners(self) -> list[int]:
        """All of them: beside a stage a PC may hold the copy of another, or one it gives back."""
        workers = self.windows.processes("fleetapp-worker.exe").items()
        return [process.pid for process, line in workers if "fleetapp.engine.runner" in line]


class MachineWide(InstalledApp):
    """The same from the package for all users of a PC."""

    @property
    def root(self) -> Path:
        return self.windows.drive / "Program Files/FleetApp"

    def msiexec(self, *arguments: str) -> int:
        """Windows Installer, silently; its exit code."""
        done = self.windows.wine("msiexec", *arguments, "/qn", check=False, deadline=600)
        return done.returncode


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash."""
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }
