"""Settings of a running agent: what acts at once, what waits, and who else may change them."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from pathlib import Path

import pytest

from fleetapp.agent import preferences as module
from fleetapp.agent.autostart import Autostart, tray_command
from fleetapp.agent.preferences import READ_ONCE, Preferences
from fleetapp.errors import BadSetting, ManagedByPolicy
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths
from fleetapp.platform.startup import Startup
from fleetapp.settings import SCHEMA, Settings, SettingsStore
from tests.support.guests import soon


class PC:
    def __init__(self, home: Path, **environ: str) -> None:
        self.paths = Paths(home)
        self.platform = FakePlatform()
        self.acted = 0
        self.preferences = Preferences(
            SettingsStore(self.paths, self.platform, environ), self._changed
        )

    async def _changed(self) -> None:
        self.acted += 1


@pytest.fixture
def pc(tmp_path: Path) -> PC:
    return PC(tmp_path / "José 測試")


def test_exactly_what_is_read_once_says_that_it_waits_for_a_restart() -> None:
    assert {s.name for s in SCHEMA.values() if s.applies == "restart"} == READ_ONCE


async def test_a_change_holds_at_once_and_is_acted_on(pc: PC) -> None:
    view = await pc.preferences.change("contribute", True)
    assert (view.value, view.source, view.pending) == (True, "user", False)
    assert pc.preferences.now.contribute
    assert pc.acted == 1
    view = await pc.preferences.reset("contribute")
    assert (view.value, view.source) == (False, "default")
    assert pc.acted == 2


async def test_the_same_value_again_is_no_change(pc: PC) -> None:
    await pc.preferences.change("idle_minutes", 7)
    await pc.preferences.change("idle_minutes", "7")
    assert pc.acted == 1


async def test_what_was_read_at_the_start_waits_until_it_is_as_before(pc: PC) -> None:
    assert (await pc.preferences.change("local_port", 8499)).pending
    assert pc.preferences.pending == {"local_port"}
    assert not (await pc.preferences.reset("local_port")).pending


async def test_what_only_coordinators_read_waits_on_them_alone(pc: PC) -> None:
    assert not (await pc.preferences.change("api_port", 8490)).pending
    pc.preferences.read_by_fleet(coordinator=False)
    assert not (await pc.preferences.change("api_port", 8491)).pending
    assert (await pc.preferences.change("share_port", 8492)).pending
    pc.preferences.read_by_fleet(coordinator=True)
    assert pc.preferences.pending == set(), "it has just been read"
    assert (await pc.preferences.change("api_port", 8493)).pending


async def test_sharing_ends_at_once_and_begins_with_the_next_start(pc: PC) -> None:
    pc.preferences.read_by_fleet(coordinator=False)
    assert not (await pc.preferences.change("share_shards", False)).pending
    pc.preferences.read_by_fleet(coordinator=False)
    assert (await pc.preferences.change("share_shards", True)).pending


async def test_a_look_that_began_before_a_change_does_not_undo_it(
    pc: PC, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go, load = threading.Event(), threading.Event(), SettingsStore.load

    def slow(store: SettingsStore) -> Settings:
        read = load(store)
        began.set()
        go.wait(5)
        return read

    monkeypatch.setattr(SettingsStore, "load", slow)
    look = asyncio.create_task(pc.preferences.look())
    await asyncio.to_thread(began.wait, 5)
    change = asyncio.create_task(pc.preferences.change("idle_minutes", 9))
    await asyncio.sleep(0.05)
    go.set()
    await asyncio.gather(look, change)
    assert pc.preferences.now.idle_minutes == 9


async def test_a_refused_value_changes_nothing(pc: PC) -> None:
    with pytest.raises(BadSetting, match="whole number from 0 to 100"):
        await pc.preferences.change("cpu_limit", 101)
    with pytest.raises(BadSetting, match=r"cpu_limit\?"):
        await pc.preferences.change("cpu_limits", 1)
    assert pc.acted == 0
    assert not pc.paths.settings_file.exists()


async def test_policy_locks_and_the_view_says_by_whom(pc: PC) -> None:
    pc.platform.policies["machine"] = {"on_battery": 1}
    row = next(r for r in (await pc.preferences.view("de")).settings if r.name == "on_battery")
    assert (row.value, row.locked, row.where) == (True, True, "fake machine policy")
    assert row.label == "Im Akkubetrieb beitragen"
    assert pc.preferences.now.on_battery, "a policy that came meanwhile acts as well"
    for change in (pc.preferences.change("on_battery", False), pc.preferences.reset("on_battery")):
        with pytest.raises(ManagedByPolicy, match="fake machine policy"):
            await change


async def test_the_environment_goes_first_and_nothing_is_kept_in_vain(tmp_path: Path) -> None:
    pc = PC(tmp_path, FLEETAPP_THREADS="2")
    with pytest.raises(BadSetting, match="comes from the environment") as caught:
        await pc.preferences.change("threads", 3)
    assert "FLEETAPP_THREADS" in caught.value.remedy
    assert not pc.paths.settings_file.exists()
    assert (await pc.preferences.change("threads", 2)).source == "environment"


async def test_a_file_and_a_policy_that_change_are_noticed(
    pc: PC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    watching = asyncio.create_task(pc.preferences.watch())

    pc.paths.home.mkdir()
    pc.paths.settings_file.write_text('{"idle_minutes": 9}')
    await soon(lambda: pc.acted == 1)
    pc.paths.settings_file.write_text("{broken")
    await asyncio.sleep(0.1)
    assert pc.preferences.now.idle_minutes == 9, "what held goes on to hold"
    pc.paths.settings_file.write_text(json.dumps({"idle_minutes": 9}))
    pc.platform.policies["user"] = {"idle_minutes": 1}
    await soon(lambda: pc.acted == 2)
    assert pc.preferences.now.idle_minutes == 1
    watching.cancel()


async def test_autostart_is_the_systems_word(tmp_path: Path) -> None:
    platform = FakePlatform()
    autostart = Autostart(platform, tmp_path / "odd home")
    assert not (await autostart.view()).on
    assert (await autostart.set(True)).on
    assert platform.start_command[-2:] == ("--state", str(tmp_path / "odd home"))
    platform.starts = Startup(False, "switched off elsewhere")
    assert not (await autostart.view()).on
    platform.starts = Startup(True, "for all", for_all=True)
    assert (await autostart.view()).locked
    with pytest.raises(ManagedByPolicy):
        await autostart.set(False)


def test_the_tray_of_this_installation_is_started() -> None:
    assert tray_command() == [str(Path(sys.executable).with_name("fleetapp-tray"))]


def test_without_a_launcher_the_module_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert tray_command(lambda _: None) == [str(tmp_path / "python"), "-P", "-m", "ui.app"]
    assert tray_command(lambda name: f"/bin/{name}") == ["/bin/fleetapp-tray"]
