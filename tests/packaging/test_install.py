"""Silent installation, what it leaves on the PC, upgrade, and removal without a trace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.packaging.conftest import FOLDER, GONE, PREVIOUS, Built
from tests.support.installed import RUN_KEY, InstalledApp, tree
from tests.support.wine import Windows

pytestmark = pytest.mark.timeout(600)
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\FleetApp"
CODE = "FLEET-AAAAA-BBBBB-CCCCC"
VALUES = """
import json, winreg
def values(path, root=winreg.HKEY_CURRENT_USER):
    try:
        key = winreg.OpenKey(root, path)
    except OSError:
        return {}
    return {n: v for n, v, _ in (winreg.EnumValue(key, i) for i in range(winreg.QueryInfoKey(key)[1]))}
"""
RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"


def run_value(app: InstalledApp) -> str | None:
    found: dict[str, str] = app.python(f"{VALUES}\nprint(json.dumps(values(r'{RUN}')))")
    return found.get("fleetapp")


@pytest.fixture
def before(windows: Windows) -> set[str]:
    """Every file of the profile, before anything of ours was there."""
    return files(windows)


def files(windows: Windows) -> set[str]:
    profile = windows.drive / "users"
    temporary = ("AppData/Local/Temp/", "AppData/Local/Microsoft/")
    found = {p.relative_to(profile).as_posix() for p in profile.rglob("*") if p.is_file()}
    return {f for f in found if not any(word in f for word in temporary)}


def test_install_upgrade_and_remove(
    windows: Windows, built: Built, previous: Built, before: set[str]
) -> None:
    app = InstalledApp(windows, FOLDER)

    # --- the previous version, silently, with a code
    assert app.install(previous.setup, f"/JOINCODE={CODE}") == 0
    installed = tree(app.root)
    installed.pop("Uninstall.exe")
    assert installed == tree(previous.stage)
    assert (app.home / "join-code").read_text("ascii").strip() == CODE
    assert PREVIOUS in app.cli("--version")
    assert run_value(app) == f'"{app.path("FleetApp.exe")}"'
    assert PREVIOUS in windows.registry(UNINSTALL)
    assert not app.running(), "a silent installation starts nothing"
    menu = windows.drive / f"users/{windows.user}/AppData/Roaming/Microsoft/Windows/Start Menu"
    assert (menu / "Programs/FleetApp.lnk").exists()
    (app.home / "join-code").unlink()

    # --- the user switches autostart off, chats, and upgrades
    app.python(
        "import winreg, json\n"
        f"k = winreg.OpenKey(winreg.HKEY_CURRENT_USER, r'{RUN}', 0, winreg.KEY_SET_VALUE)\n"
        "winreg.DeleteValue(k, 'fleetapp')\n"
        f"k = winreg.CreateKey(winreg.HKEY_CURRENT_USER, r'{APPROVED}')\n"
        "winreg.SetValueEx(k, 'fleetapp', 0, winreg.REG_BINARY, bytes(12))\nprint(1)"
    )
    agent = app.start_agent()
    device = agent.get("status")["device_id"]
    kept = app.home / "chats.sqlite"
    kept.write_bytes(b"what people wrote")
    assert app.install(built.setup) == 0
    assert not app.running(), "an agent that was running was ended"
    installed = tree(app.root)
    installed.pop("Uninstall.exe")
    assert GONE not in installed
    assert installed == tree(built.stage)
    assert PREVIOUS not in app.cli("--version")
    assert run_value(app) is None, "an upgrade leaves the user's choice alone"
    assert kept.read_bytes() == b"what people wrote"
    assert app.start_agent().get("status")["device_id"] == device
    assert app.install(built.setup, "/NOAUTOSTART") == 0

    # --- removed while it runs; what was asked to stay stays
    app.start_agent()
    app.uninstall()
    assert not app.running()
    left = files(windows) - before
    ours = {f for f in left if "fleetapp" in f.lower()}
    assert left == ours
    assert kept.exists()
    assert {Path(f).parts[3] for f in ours} == {"fleetapp"}
    for word in ("cache", "logs", "api-token", "agent.json", "join-code"):
        assert not any(f"/fleetapp/{word}" in f for f in ours), word
    assert not windows.registry(UNINSTALL)
    assert not windows.registry(r"HKCU\Software\FleetApp")
    assert "fleetapp" not in windows.registry(RUN_KEY).lower()
    assert "fleetapp" not in windows.registry(rf"HKCU\{APPROVED}").lower()
    assert not (menu / "Programs/FleetApp.lnk").exists()
    tasks = windows.drive / "windows/system32/tasks"
    assert not any("fleet" in p.name.lower() for p in tasks.rglob("*"))

    # --- installed again it is the same PC; removed with its data nothing is left
    assert app.install(built.setup, "/NOAUTOSTART") == 0
    assert run_value(app) is None
    assert app.start_agent().get("status")["device_id"] == device
    app.uninstall("/REMOVEDATA")
    assert files(windows) == before
    assert not app.home.exists()


def test_the_default_folder_needs_no_rights(windows: Windows, built: Built) -> None:
    app = InstalledApp(windows)
    assert app.install(built.setup) == 0
    assert app.root == windows.local / "Programs/FleetApp"
    assert "roaming" not in str(app.home).lower()
    assert json.loads(app.cli("settings", "--json")) is not None
    app.uninstall("/REMOVEDATA")
    assert not app.home.exists()


def test_an_upgrade_that_cannot_end_the_app_changes_nothing(windows: Windows, built: Built) -> None:
    app = InstalledApp(windows)
    assert app.install(built.setup) == 0
    here = tree(app.root)
    # somebody else holds a library open: neither asked nor ended, because it is not ours
    foreign = windows.folder / "foreign.py"
    foreign.write_text(
        "import sys, time\nheld = open(sys.argv[1], 'rb')\nprint('ok', flush=True)\ntime.sleep(60)\n"
    )
    copy = windows.folder / "elsewhere"
    shutil.copytree(built.stage, copy)
    library = app.path("python\\python3.dll")
    holder = windows.start(
        "wine",
        windows.windows_path(copy / "fleetapp-worker.exe"),
        windows.windows_path(foreign),
        library,
    )
    try:
        end = windows.folder / "output.txt"
        from tests.support.screen import Screen  # noqa: PLC0415

        Screen.until(None, lambda: b"ok" in end.read_bytes(), "the holder")  # type: ignore[arg-type]
        assert app.install(built.setup, check=False) == 3
        assert tree(app.root) == here
    finally:
        holder.kill()
        windows.run("wineserver", "-k", check=False)
    app.uninstall("/REMOVEDATA")
