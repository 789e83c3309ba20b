"""What an administrator lays down in the registry, as users of the per-machine package meet it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fleetapp.errors import ManagedByPolicy
from tests.packaging.conftest import Built
from tests.support.installed import MachineWide
from tests.support.wine import Windows
from tests.support.wine_screen import Screen
from ui.firstrun.choices import STATE
from ui.preferences import preferences_of

pytestmark = pytest.mark.timeout(600)
KEY = r"HKLM\Software\Policies\fleetapp"
POLICIES = {"idle_minutes": "17", "on_metered": "0", "allow_pause": "0", "first_run": "0"}
LOCKED = 17
LOOK = """
import json, os, sys, time
from pathlib import Path
from PySide6.QtWidgets import QApplication
from ui.endpoint import default_home
from ui.language import Language
from ui.session import AgentSession
from ui.settings.window import SettingsWindow
from ui.theme import Theme
app = QApplication([])
Theme(app).choose("light")
Language(app).use(sys.argv[1])
home = default_home()
session = AgentSession(home, ["nothing"])
session.start()
window = SettingsWindow(session, home)
window.show()
def wait(seconds, true=lambda: False):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not true():
        app.processEvents()
        time.sleep(0.01)
wait(60, lambda: "idle_minutes" in window.rows)
window.show_section("contributing")
wait(1)
rows = {
    name: [row.isVisible(), row.control.isEnabled(), row.managed.isVisible(), row.manager.text()]
    for name, row in window.rows.items()
}
picture = window.grab().save(sys.argv[2])
said = {"title": window.windowTitle(), "rows": rows, "picture": picture}
print(json.dumps(said), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def app(windows: Windows, built: Built) -> MachineWide:
    """Installed for all users, with no entry at login."""
    if not built.msi.exists():
        pytest.skip("no package is built; run `make windows-installer ARGS=--fast` first")
    installed = MachineWide(windows)
    assert installed.msiexec("/i", windows.windows_path(built.msi), "AUTOSTART=0") == 0
    return installed


@pytest.fixture(scope="module")
def managed(app: MachineWide) -> Iterator[MachineWide]:
    """Started by its user under these policies."""
    for name, value in POLICIES.items():
        line = ("reg", "add", KEY, "/v", name, "/t", "REG_DWORD", "/d", value, "/f")
        app.windows.wine(*line)
    app.start()
    app.agent.connect()
    yield app
    app.quit()
    app.windows.wine("reg", "delete", KEY, "/f")


def setting(app: MachineWide, name: str) -> dict[str, Any]:
    """As the agent has it now."""
    rows: list[dict[str, Any]] = app.agent.get("settings")["settings"]
    return next(row for row in rows if row["name"] == name)


def test_the_agent_obeys_and_refuses(managed: MachineWide) -> None:
    row = setting(managed, "idle_minutes")
    assert (row["value"], row["source"], row["locked"]) == (LOCKED, "machine policy", True)
    assert row["where"] == KEY
    with pytest.raises(ManagedByPolicy):
        managed.agent.post("settings", name="idle_minutes", value=3)
    assert setting(managed, "idle_minutes")["value"] == LOCKED


def test_nobody_is_asked_what_has_been_decided(managed: MachineWide, screen: Screen) -> None:
    screen.until(screen.tray_icon, "the tray icon", 120)

    def state() -> object:
        kept = preferences_of(managed.home)
        kept.sync()
        return kept.value(STATE)

    screen.until(lambda: state() == "done", "the first run to be passed over")
    assert not screen.windows("Set up fleetapp")


def test_by_hand_what_is_free_changes_and_what_is_locked_does_not(
    managed: MachineWide, screen: Screen
) -> None:
    screen.until(screen.tray_icon, "the tray icon", 120)
    x, y = screen.tray_icon() or (0, 0)
    screen.do("mousemove", str(x), str(y), "click", "3")
    screen.settle()
    screen.picture("policy-menu")
    screen.do("key", "g")  # Settin&gs
    screen.until(lambda: screen.windows("Settings"), "the settings")
    screen.settle()
    left, top, *_ = screen.place(screen.windows("Settings")[-1])

    def search(words: str, then: str, picture: str) -> None:
        """Down from the search goes to the first setting that was found and can be changed."""
        screen.do("mousemove", str(left + 100), str(top + 32), "click", "--repeat", "3", "1")
        screen.do("type", "--delay", "60", words)
        screen.settle()
        screen.picture(picture)
        screen.do("key", "Return")
        screen.do("key", "ctrl+a")
        screen.do("type", "--delay", "60", then)
        screen.do("key", "Return")
        screen.settle()

    search("give memory back", "45", "policy-free")
    screen.until(lambda: setting(managed, "release_after")["value"] == 45, "a change to be saved")
    search("counts as idle after", "45", "policy-locked")
    assert setting(managed, "idle_minutes")["value"] == LOCKED
    screen.do("key", "Escape", "Escape")


@pytest.mark.parametrize(
    ("language", "title", "words"),
    [("en", "Settings", "Managed by"), ("de", "Einstellungen", "Verwaltet durch")],
)
def test_the_window_says_who_has_locked_it(
    managed: MachineWide, screen: Screen, language: str, title: str, words: str
) -> None:
    script = managed.windows.folder / "look.py"
    script.write_text(LOOK, encoding="utf-8")
    picture = screen.folder / f"settings-{language}.png"
    seen = managed.script(script, language, managed.windows.windows_path(picture))
    assert seen["title"] == title
    shown, enabled, lock, who = seen["rows"]["idle_minutes"]
    assert (shown, enabled, lock) == (True, False, True)
    assert words in who
    assert KEY in who
    assert seen["rows"]["allow_pause"][:3] == [True, False, True], "only a policy brings it"
    assert seen["rows"]["release_after"][:3] == [True, True, False]
    assert seen["picture"]
    assert picture.stat().st_size > 10_000
