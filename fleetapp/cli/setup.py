"""``fleetapp setup …``: what the Windows installer asks of the program it replaces or removes.

Works only in the installed app, where all our processes run from one program folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import click
import psutil

from fleetapp.cli.client import agent_client
from fleetapp.cli.context import App, pass_app
from fleetapp.errors import FleetError, NotFound, UserError
from fleetapp.platform.paths import Paths, default_home

TRAY = "FleetApp.exe"
STILL_RUNNING = 3
"""Exit code: something could not be ended."""
TRAY_WAS_RUNNING = 10
"""Exit code: everything was ended, and the desktop app was among it: start it again."""
END_SECONDS = 20.0
QUIT_SECONDS = 40.0
_DISPOSABLE = (
    "cache",
    "logs",
    "api-token",
    "agent.json",
    "agent.lock",
    "tray.lock",
    "join-code",
)
"""What nobody misses: made anew at the next start."""


@click.group(hidden=True)
def setup() -> None:
    """For the installer."""


@setup.command()
@click.option("--drain", type=click.FloatRange(0, 600), default=20.0, help="Seconds for answers.")
@pass_app
def stop(app: App, drain: float) -> int:
    """Let running answers end, then end the desktop app, the agent and all they started."""
    root = program_folder()
    running = below(root)
    if not running:
        return 0
    tray = any(name_of(p) == TRAY.lower() for p in running)
    homes = homes_of(running) or [app.home]
    for home in homes:
        finish_answers(home, drain)
    for home in homes:
        if tray:  # it goes first, because it would start an agent that ends
            ask_tray(root, home)
        with contextlib.suppress(FleetError), agent_client(home) as client:
            client.request("POST", "/local/v1/quit")
    if left := end(below(root)):
        click.echo(f"Still running: {', '.join(sorted({name_of(p) for p in left}))}.", err=True)
        return STILL_RUNNING
    return TRAY_WAS_RUNNING if tray else 0


def ask_tray(root: Path, home: Path) -> None:
    """Have the desktop app of this state folder quit; it ends its agent. It may not listen."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [root / TRAY, "--quit"],
            env={**os.environ, "FLEETAPP_HOME": str(home)},
            timeout=QUIT_SECONDS,
            check=False,
        )


@setup.command()
@click.option("--data", is_flag=True, help="Identity, models, chats and settings too.")
@pass_app
def clean(app: App, data: bool) -> None:
    """Remove what the uninstaller does not know of: caches, logs and, if asked, everything."""
    program_folder()
    sys.dont_write_bytecode = True  # or the cache would come back while it goes
    forget(app.paths, data=data)


def program_folder() -> Path:
    """Where the installed app lies.

    Raises:
        UserError: this is not the installed app; a developer's processes are nobody's to end.
    """
    root = Path(sys.executable).parent
    if not (root / TRAY).is_file() or not (root / "python").is_dir():
        raise UserError(
            "This is for the installed Windows app only.",
            remedy="End it with 'fleetapp quit', and remove it with pip.",
        )
    return root


def below(root: Path) -> list[psutil.Process]:
    """Processes whose program lies below this folder, this one and its parents left out."""
    me = psutil.Process()
    mine = {me.pid, *(p.pid for p in me.parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            if process.pid not in mine and Path(process.exe()).is_relative_to(root):
                found.append(process)
    return found


def name_of(process: psutil.Process) -> str:
    """Of its program, lower case; empty if it has ended."""
    with contextlib.suppress(psutil.Error, OSError):
        return str(process.name()).lower()
    return ""


def homes_of(processes: Iterable[psutil.Process]) -> list[Path]:
    """State folders that these processes use: another user's too, where we may look."""
    found: dict[Path, None] = {}
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            env = process.environ()
            if env.get("FLEETAPP_HOME"):
                found[default_home(env)] = None
            elif env.get("LOCALAPPDATA"):
                found[Path(env["LOCALAPPDATA"]) / "fleetapp"] = None
    return list(found)


def finish_answers(home: Path, seconds: float) -> None:
    """Take no new work and wait for what runs to end, for so long at most.

    A pause that was there stays; one made here goes again, for the next start.
    """
    if not seconds:
        return
    with contextlib.suppress(FleetError), agent_client(home) as client:
        status = client.request("GET", "/local/v1/status")
        if not status.get("assignments") or status.get("contribution", {}).get("paused"):
            return
        client.request("POST", "/local/v1/pause", {"length": "30m", "finish_first": True})
        end_by = time.monotonic() + seconds
        try:
            while time.monotonic() < end_by:
                found = client.request("GET", "/local/v1/status").get("contribution", {})
                if not found.get("draining"):
                    return
                time.sleep(0.2)
        finally:
            # the pause's file only: told to the agent, it would take new work for its last second
            with contextlib.suppress(OSError):
                Paths(home).pause_file.unlink(missing_ok=True)


def end(processes: list[psutil.Process], seconds: float = END_SECONDS) -> list[psutil.Process]:
    """Wait for their end, then enforce it; those that are there all the same."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    for process in left:
        with contextlib.suppress(psutil.Error, OSError):
            process.kill()
    _, left = psutil.wait_procs(left, timeout=5)
    return list(left)


def forget(paths: Paths, *, data: bool) -> None:
    """Remove what can be made anew, or everything this state folder stands for."""
    if data:
        _forget_authority(paths)
        shutil.rmtree(paths.home, ignore_errors=True)
        return
    for name in _DISPOSABLE:
        for found in paths.home.glob(f"{name}*"):
            if found.is_dir():
                shutil.rmtree(found, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    found.unlink()
    with contextlib.suppress(OSError):
        paths.home.rmdir()  # nothing was ever kept here


def _forget_authority(paths: Paths) -> None:
    """Its passphrase lies in the account's credential store, beyond the state folder."""
    from fleetapp.fleet.secrets import SecretStore  # noqa: PLC0415 - slow, and rarely needed

    store = SecretStore(paths.hub)
    for note in paths.hub.glob("*.place.json"):
        with contextlib.suppress(FleetError, NotFound):
            store.delete(note.name.removesuffix(".place.json"))
