"""What this PC notices of its user and itself, asked of the real Windows interface, under Wine.

What Wine has not got is listed here by name; tests/unit/platform covers it with a fake.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed import InstalledApp
from tests.support.wine_screen import Screen

pytestmark = pytest.mark.timeout(300)

SENSORS = """
import json
from fleetapp.platform import current
s = current().sensors()
"""


def ask(app: InstalledApp, expression: str) -> Any:
    return app.python(f"{SENSORS}\nprint(json.dumps({expression}))")


WATCH_IDLE = """
import sys, time
from fleetapp.platform import current
sensors = current().sensors()
from PySide6.QtWidgets import QApplication, QLabel
app = QApplication([])
label = QLabel('watched'); label.setWindowTitle('watched'); label.resize(300, 200); label.show()
from PySide6.QtCore import QTimer
def tell():
    with open(sys.argv[1], 'w') as f: f.write(str(sensors.presence().idle))
timer = QTimer(); timer.timeout.connect(tell); timer.start(100)
QTimer.singleShot(60000, app.quit)
app.exec()
"""


def test_idle_time_rises_and_falls_with_the_mouse(app: InstalledApp, screen: Screen) -> None:
    script = app.windows.folder / "watch.py"
    script.write_text(WATCH_IDLE, encoding="utf-8")
    told = app.windows.folder / "idle.txt"
    process = app.windows.start(
        "wine",
        app.path("fleetapp-worker.exe"),
        app.windows.windows_path(script),
        app.windows.windows_path(told),
    )

    def idle() -> float:
        try:
            return float(told.read_text())
        except (OSError, ValueError):
            return -1.0

    screen.until(lambda: screen.windows("watched"), "the window")
    left, top, *_ = screen.place(screen.windows("watched")[-1])
    screen.do("mousemove", str(left + 50), str(top + 50))
    screen.until(lambda: 0 <= idle() < 1, "somebody to be noticed")
    screen.until(lambda: idle() > 3, "idle time to rise")
    screen.do("mousemove", str(left + 80), str(top + 80))
    screen.until(lambda: 0 <= idle() < 1, "the mouse to be noticed")
    screen.until(lambda: idle() > 2, "idle time to rise again")
    screen.do("key", "--window", screen.windows("watched")[-1], "a")
    screen.do("windowfocus", screen.windows("watched")[-1], "key", "a")
    screen.until(lambda: 0 <= idle() < 1, "the keyboard to be noticed")
    process.terminate()


@pytest.mark.skipif(
    not Path("/sys/class/power_supply").is_dir(), reason="this kernel has no power supplies to fake"
)
@pytest.mark.parametrize(
    ("mains", "charge"), [(True, None), (True, 80.0), (False, 80.0), (False, 12.0), (False, 100.0)]
)
def test_mains_and_battery(app: InstalledApp, mains: bool, charge: float | None) -> None:
    app.windows.supply(mains=mains, battery=charge)
    try:
        on_ac, battery = ask(app, "[s.power().on_ac, s.power().battery]")
    finally:
        shutil.rmtree(app.windows.folder / "power")
    if charge is None:
        assert battery is None, "a PC without a battery has none"
        assert on_ac in (True, None)
    else:
        assert on_ac is mains
        assert battery == pytest.approx(charge, abs=1)


def test_usage_memory_and_programs_are_known(app: InstalledApp) -> None:
    first = ask(app, "[s.usage().own_memory, sorted(s.programs())]")
    assert first[0] > 10_000_000
    assert "fleetapp-worker.exe" in first[1]
    assert (
        ask(app, "[s.full_screen(), s.metered(), s.presence().locked, s.heat().celsius]")[3] is None
    )


def test_suspend_and_resume_are_heard(app: InstalledApp) -> None:
    """Wine registers the callback and never sleeps: the call itself is made as Windows makes it."""
    heard = app.python(
        "import ctypes, json\n"
        "from fleetapp.platform import current\n"
        "from fleetapp.platform import windows_sensors as w\n"
        "s = current().sensors(); told = []\n"
        "s.watch_sleep(told.append)\n"
        "handle = s._registration.value\n"
        "for kind in (w._SUSPEND, 0x7, w._RESUME_AUTOMATIC): s._going(None, kind, None)\n"
        "s.close()\n"
        "print(json.dumps([told, handle, s.slept()]))"
    )
    assert heard[0] == [True, False]
    assert heard[2] >= 0


@pytest.mark.parametrize(
    ("what", "expression"),
    [
        ("memory", "current().memory_total() > current().memory_free() > 0"),
        ("disk", "current().disk_free(__import__('pathlib').Path('C:/nowhere/yet')) > 0"),
        ("cores", "current().cores() >= 1"),
        ("processor", "bool(current().cpu_name())"),
        ("addresses", "len(current().addresses(loopback=True)) >= 1"),
        ("facts", "len(current().machine_facts()) >= 1"),
    ],
)
def test_facts_of_the_machine(app: InstalledApp, what: str, expression: str) -> None:
    assert ask(app, expression) is True, what


def test_a_policy_is_read_from_the_registry(app: InstalledApp) -> None:
    app.windows.wine(
        "reg", "add", r"HKLM\Software\Policies\fleetapp", "/v", "idle_minutes", "/t", "REG_DWORD",
        "/d", "17", "/f",
    )  # fmt: skip
    try:
        row = json.loads(app.cli("settings", "get", "idle_minutes", "--json"))
        assert (row["value"], row["source"], row["locked"]) == (17, "machine policy", True)
        refused = app.windows.wine(
            app.path("fleetapp-cli.exe"), "settings", "set", "idle_minutes", "3", check=False
        )
        assert refused.returncode != 0
    finally:
        app.windows.wine("reg", "delete", r"HKLM\Software\Policies\fleetapp", "/f")


def test_private_files_have_an_access_list_of_their_own(app: InstalledApp) -> None:
    made = app.python(
        "import json, pathlib\n"
        "from fleetapp.platform import current\n"
        "p = pathlib.Path.home() / 'geheim 測試'\n"
        "c = current(); c.make_private_dir(p); c.write_private(p / 'x', b'1'); "
        "c.write_private(p / 'x', b'2')\n"
        "print(json.dumps([(p / 'x').read_text(), len(list(p.iterdir()))]))"
    )
    assert made == ["2", 1]


def test_a_long_path_works(app: InstalledApp) -> None:
    done = app.python(
        "import json, pathlib\n"
        "from fleetapp.platform import current\n"
        "p = pathlib.Path.home() / ('tief-' * 20) / ('ü' * 100) / ('測' * 60)\n"
        "current().make_private_dir(p); current().write_private(p / 'datei', b'x')\n"
        "print(json.dumps([len(str(p)), (p / 'datei').read_text()]))"
    )
    assert done[0] > 260
    assert done[1] == "x"


def test_the_credential_store_keeps_a_coordinators_secret(app: InstalledApp) -> None:
    code = (
        "import json, pathlib\n"
        "from fleetapp.fleet.secrets import SecretStore\n"
        "s = SecretStore(pathlib.Path.home() / 'hub ü')\n"
        "k = s.store('authority-test', 'gehéim 測試')\n"
        "got = s.load('authority-test'); s.delete('authority-test')\n"
        "print(json.dumps([k.place, got]))"
    )
    assert app.python(code) == ["keyring", "gehéim 測試"]


def test_the_second_start_raises_the_first(app: InstalledApp, screen: Screen) -> None:
    app.start()
    screen.until(screen.tray_icon, "the tray icon", 90)
    app.agent.connect()
    screen.until(lambda: len(app.windows.processes("FleetApp.exe")) == 1, "the app")
    assert not screen.windows("This PC")
    app.start()
    screen.until(lambda: screen.windows("This PC"), "the window", 90)
    time.sleep(1)  # the second one needs a moment to end
    screen.until(lambda: len(app.windows.processes("FleetApp.exe")) == 1, "the second to end")
    screen.picture("second-start")
    assert app.windows.wine(app.path("FleetApp.exe"), "--quit").returncode == 0
    screen.until(lambda: not app.running(), "app and agent to end")
