"""Silent installation, what it leaves on the PC, upgrade, and removal without a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.packaging.conftest import FOLDER, GONE, PREVIOUS, Built
from tests.support.installed import RUN_KEY, InstalledApp, tree
from tests.support.wine import Windows

pytestmark = pytest.mark.timeout(600)
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\FleetApp"
NO_ROOM = 4
CODE = "FLEET-AAAAA-BBBBB-CCCCC"
VALUES = """
import json, winreg
def values(path, root=winreg.HKEY_CURRENT_USER):
    try:
        key = winreg.OpenKey(root, path)
    except OSError:
        return {}
    rows = [winreg.EnumValue(key, i) for i in range(winreg.QueryInfoKey(key)[1])]
    return {name: value for name, value, _ in rows}
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


def test_without_room_it_says_so_and_changes_nothing(windows: Windows, built: Built) -> None:
    small = windows.folder / "small disk"
    small.mkdir()
    windows.run("wineserver", "-k", check=False)  # an old one would not see the new disk
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "fleetapp-test", str(small)]
    subprocess.run(mount, check=True, timeout=30)
    try:
        path = f"/D={windows.windows_path(small / 'FleetApp')}".split(" ")
        setup = windows.windows_path(built.setup)
        assert windows.wine(setup, "/S", *path, check=False).returncode == NO_ROOM
        assert not list(small.rglob("*"))
        assert not windows.registry(UNINSTALL)
    finally:
        windows.run("wineserver", "-w", check=False, deadline=60)
        subprocess.run(["umount", str(small)], check=True, timeout=30)
