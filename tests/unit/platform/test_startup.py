"""The operating systems' own switches for programs that start with the session."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fleetapp.errors import ManagedByPolicy, StorageError
from fleetapp.platform.linux_startup import DesktopEntries
from fleetapp.platform.windows_startup import APPROVED, RUN, RunKey
from tests.support.fake_windows_registry import FakeRegistry

COMMAND = ["/opt/José 100%/fleetapp-tray", "--state", 'a "b" $c `d` \\e']


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def entries(tmp_path: Path, config: Path) -> DesktopEntries:
    return DesktopEntries(
        {"XDG_CONFIG_HOME": str(config), "XDG_CONFIG_DIRS": f"rel:{tmp_path / 'xdg'}"}
    )


def own(config: Path) -> Path:
    return config / "autostart" / "fleetapp.desktop"


def for_all(tmp_path: Path) -> Path:
    file = tmp_path / "xdg" / "autostart" / "fleetapp.desktop"
    file.parent.mkdir(parents=True)
    file.write_text("[Desktop Entry]\nType=Application\nName=fleetapp\nExec=fleetapp-tray\n")
    return file


def test_on_and_off_again_leaves_nothing(entries: DesktopEntries, config: Path) -> None:
    assert not entries.read().on
    entries.write(True, COMMAND)
    assert entries.read().on
    assert entries.read().where == str(own(config))
    entries.write(False, COMMAND)
    assert not entries.read().on
    assert list(own(config).parent.iterdir()) == []
    entries.write(False, COMMAND)


def test_the_command_survives_the_quoting_of_desktop_entries(
    entries: DesktopEntries, config: Path
) -> None:
    entries.write(True, COMMAND)
    line = next(x for x in own(config).read_text().splitlines() if x.startswith("Exec="))
    # what a launcher does: undo the escapes of a string, then the quoting, which is that of a shell
    # between double quotes, then the field codes
    value = line.removeprefix("Exec=").replace("\\\\", "\\")
    shell = ["sh", "-c", f"printf '%s\\0' {value}"]
    said = subprocess.run(shell, capture_output=True, check=True, timeout=20).stdout.decode()
    assert [a.replace("%%", "%") for a in said.split("\0")[:-1]] == COMMAND


@pytest.mark.parametrize("key", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_who_switched_it_off_elsewhere_is_believed(
    entries: DesktopEntries, config: Path, key: str
) -> None:
    entries.write(True, COMMAND)
    text = own(config).read_text().replace("X-GNOME-Autostart-enabled=true\n", "")
    own(config).write_text(f"{text}{key}\n")
    assert not entries.read().on
    entries.write(True, COMMAND)
    assert entries.read().on


def test_keys_of_other_groups_do_not_count(entries: DesktopEntries, config: Path) -> None:
    entries.write(True, COMMAND)
    with own(config).open("a") as file:
        file.write("[Desktop Action x]\nHidden=true\n")
    assert entries.read().on


def test_an_entry_for_all_users_is_hidden_for_this_one(
    entries: DesktopEntries, config: Path, tmp_path: Path
) -> None:
    file = for_all(tmp_path)
    assert entries.read().on
    assert entries.read().where == str(file)
    entries.write(False, COMMAND)
    assert not entries.read().on
    assert "Hidden=true" in own(config).read_text()
    entries.write(True, COMMAND)
    assert entries.read().on


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    entries = DesktopEntries({"XDG_CONFIG_HOME": str(tmp_path / "config")})
    with pytest.raises(StorageError, match="autostart"):
        entries.write(True, COMMAND)


@pytest.fixture
def registry() -> FakeRegistry:
    return FakeRegistry()


def test_windows_starts_what_the_run_key_names(registry: FakeRegistry) -> None:
    key = RunKey(registry)
    assert not key.read().on
    key.write(True, [r"C:\Program Files\José\FleetApp.exe", "--state", r"D:\x y"])
    assert key.read().on
    assert registry.values == {
        ("HKCU", RUN, "fleetapp"): r'"C:\Program Files\José\FleetApp.exe" --state "D:\x y"'
    }
    key.write(False, [])
    assert not key.read().on
    assert registry.values == {}


@pytest.mark.parametrize(("first", "on"), [(2, True), (6, True), (3, False), (7, False)])
def test_windows_own_list_of_startup_apps_has_the_word(
    registry: FakeRegistry, first: int, on: bool
) -> None:
    registry.set(RUN, "fleetapp", "x.exe")
    registry.set(APPROVED, "fleetapp", bytes([first]) + bytes(11))
    assert RunKey(registry).read().on == on


def test_switching_on_here_switches_on_there_too(registry: FakeRegistry) -> None:
    registry.set(RUN, "fleetapp", "x.exe")
    registry.set(APPROVED, "fleetapp", bytes([3]) + bytes(11))
    RunKey(registry).write(True, ["y.exe"])
    assert RunKey(registry).read().on
    assert registry.get("HKCU", APPROVED, "fleetapp") == bytes([2]) + bytes(11)


def test_switching_off_forgets_what_was_approved(registry: FakeRegistry) -> None:
    """Or an installation years later would begin switched off, and nobody would know why."""
    registry.set(RUN, "fleetapp", "x.exe")
    registry.set(APPROVED, "fleetapp", bytes([2]) + bytes(11))
    RunKey(registry).write(False, [])
    assert registry.values == {}


def test_a_machine_wide_start_is_not_the_users_to_change(registry: FakeRegistry) -> None:
    registry.values["HKLM", RUN, "fleetapp"] = "x.exe"
    found = RunKey(registry).read()
    assert (found.on, found.for_all) == (True, True)
    for on in (True, False):
        with pytest.raises(ManagedByPolicy):
            RunKey(registry).write(on, ["y.exe"])
    assert ("HKCU", RUN, "fleetapp") not in registry.values
