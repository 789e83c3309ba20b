"""What follows from a decision: in which order, how soon, and what people say in between."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleetapp.agent.devices import Devices
from fleetapp.agent.guest import Guest, device_setting
from fleetapp.engine import probe
from fleetapp.errors import BadRequest, ManagedByPolicy
from fleetapp.platform.fake import FakePlatform, FakeSensors
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings, SettingsStore
from tests.support.guests import NotedWork


class PC:
    def __init__(self, home: Path, **settings: object) -> None:
        self.paths = Paths(home)
        self.platform = FakePlatform(sensor=FakeSensors(idle=900.0, locked=True))
        self.settings = Settings(**{"contribute": True, "release_after": 30, **settings})  # type: ignore[arg-type]
        self.shown = 0
        self.work = NotedWork()
        self.guest = self._new()

    def _new(self) -> Guest:
        guest = Guest(self.paths, self.platform, lambda: self.settings, self._show)
        guest.attach(self.work)
        return guest

    def _show(self) -> None:
        self.shown += 1

    async def restart(self) -> None:
        await self.guest.stop()
        self.guest = self._new()
        await self.guest.start()

    def user_comes(self) -> None:
        self.platform.sensor.idle, self.platform.sensor.locked = 0.0, False


@pytest.fixture
async def pc(tmp_path: Path) -> AsyncIterator[PC]:
    made = PC(tmp_path / "home")
    await made.guest.start()
    await made.work.until(lambda done: done == ["tell"])
    made.work.done.clear()
    yield made
    await made.guest.stop()


async def test_the_ring_is_left_and_then_the_hub_hears_of_it_within_a_second(pc: PC) -> None:
    begun = time.monotonic()
    pc.user_comes()
    await pc.work.until(lambda done: "stop_loading" in done)
    assert time.monotonic() - begun < 1.5
    assert pc.work.done == ["leave", "tell", "stop_loading"]
    refusal = pc.guest.refusal()
    assert refusal is not None
    assert refusal.message == "Paused while somebody uses this PC."
    assert pc.guest.view().reason == "user_active"


async def test_memory_is_given_back_after_a_while(tmp_path: Path) -> None:
    pc = PC(tmp_path / "home", release_after=1)
    await pc.guest.start()
    begun = time.monotonic()
    await pc.guest.pause("forever", finish_first=False)
    await pc.work.until(lambda done: "give_back" in done)
    assert 0.9 < time.monotonic() - begun < 3.0
    await pc.guest.stop()


async def test_memory_is_kept_for_somebody_who_leaves_again_soon(tmp_path: Path) -> None:
    pc = PC(tmp_path / "home", release_after=1)
    await pc.guest.start()
    await pc.guest.pause("forever", finish_first=False)
    await pc.work.until(lambda done: "leave" in done)
    await pc.guest.resume()
    pc.work.done.clear()
    await asyncio.sleep(1.5)
    assert pc.work.done == ["tell"], "the hub hears that it is back, and nothing is given back"
    assert pc.guest.refusal() is None
    await pc.guest.stop()


async def test_a_runner_that_does_not_listen_keeps_nothing_from_the_hub(
    pc: PC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetapp.agent.guest.LEAVE_DEADLINE", 0.2)
    pc.work.hangs = True
    await pc.guest.pause("1h", finish_first=False)
    await asyncio.wait_for(pc.work.until(lambda done: "tell" in done), 2)


async def test_a_pause_survives_a_restart_and_ends_when_resumed(pc: PC) -> None:
    await pc.guest.pause("1h", finish_first=False)
    await pc.restart()
    view = pc.guest.view()
    assert (view.on, view.reason, view.paused) == (False, "paused", True)
    assert view.paused_until == pytest.approx(time.time() + 3600, abs=60)
    await pc.guest.resume()
    await pc.restart()
    assert pc.guest.view().on
    assert not pc.paths.pause_file.exists()


async def test_resuming_looks_at_the_user_first(pc: PC) -> None:
    await pc.guest.pause("1h", finish_first=False)
    pc.user_comes()  # who is just pressing the button
    await pc.guest.resume()
    assert pc.guest.view().reason == "user_active"


async def test_finish_then_pause(pc: PC) -> None:
    await pc.guest.pause("4h", finish_first=True)
    await pc.work.until(lambda done: done == ["tell"])
    view = pc.guest.view()
    assert (view.on, view.draining, view.paused) == (True, True, True)
    assert pc.guest.decision.draining
    pc.work.shards = 0  # the hub has released it
    await pc.work.until(lambda done: "leave" in done)
    assert pc.guest.view().reason == "paused"


async def test_a_policy_can_forbid_pauses(tmp_path: Path) -> None:
    pc = PC(tmp_path / "home")
    pc.platform.policies = {"machine": {"allow_pause": False}}
    pc.settings = SettingsStore(pc.paths, pc.platform, {}).load()
    with pytest.raises(ManagedByPolicy, match="fake machine policy"):
        await pc.guest.pause("1h", finish_first=False)
    assert not pc.guest.view().may_pause


async def test_before_sleep_leave_is_taken_and_after_it_everything_is_joined_anew(pc: PC) -> None:
    sensor = pc.platform.sensor
    assert sensor.going is not None
    begun = time.monotonic()
    await asyncio.to_thread(sensor.going, True)
    assert time.monotonic() - begun < 2.0
    assert pc.work.done == ["leave", "tell", "stop_loading", "rest"]
    pc.work.done.clear()
    sensor.asleep_seconds = 60.0
    await asyncio.to_thread(sensor.going, False)
    await pc.work.until(lambda done: "tell" in done)
    assert pc.work.done[0] == "awaken"


async def test_a_pc_that_does_not_contribute_takes_leave_too(tmp_path: Path) -> None:
    pc = PC(tmp_path / "home", contribute=False)
    await pc.guest.start()
    assert pc.platform.sensor.going is not None
    await asyncio.to_thread(pc.platform.sensor.going, True)
    assert "rest" in pc.work.done
    assert "leave" not in pc.work.done
    await pc.guest.stop()


async def test_what_fails_once_is_done_the_next_time(pc: PC) -> None:
    async def broken(reason: str) -> None:
        raise OSError("a pipe broke")

    whole, pc.work.leave = pc.work.leave, broken  # type: ignore[method-assign]
    await pc.guest.pause("1h", finish_first=False)
    await pc.guest.resume()
    await pc.work.until(lambda done: "tell" in done)
    pc.work.leave = whole  # type: ignore[method-assign]
    await pc.guest.pause("1h", finish_first=False)
    await pc.work.until(lambda done: "leave" in done)


async def test_people_see_every_change(pc: PC) -> None:
    before = pc.shown
    await pc.guest.pause("1h", finish_first=False)
    assert pc.shown > before


async def test_the_fleet_hears_of_what_the_caps_leave(tmp_path: Path) -> None:
    pc = PC(tmp_path / "home", memory_limit_mb=1024, memory_reserve_mb=0, disk_limit_mb=10)
    pc.platform.sensor.own_memory = 256 << 20
    await pc.guest.start()
    assert pc.guest.memory_for_fleet() == 768 << 20
    assert pc.guest.disk_for_fleet(4 << 20) == 6 << 20
    await pc.guest.stop()


def test_devices_have_ticks() -> None:
    assert device_setting("NPU") == "contribute_npu"
    with pytest.raises(BadRequest, match="'TPU'"):
        device_setting("TPU")


async def test_the_hub_hears_at_once_of_devices_that_were_looked_for_after_the_greeting(
    tmp_path: Path,
) -> None:
    asked = threading.Event()

    def slow_driver() -> probe.Probe:
        asked.wait(5)
        return probe.Probe("2026.1", (probe.Device("CPU", "Core"), probe.Device("NPU", "Boost")))

    work = NotedWork()
    platform = FakePlatform(sensor=FakeSensors(idle=900.0, locked=True))
    settings = Settings(contribute=True)
    guest = Guest(
        Paths(tmp_path), platform, lambda: settings, lambda: None,
        Devices(lambda: "", slow_driver),
    )  # fmt: skip
    guest.attach(work)
    await guest.start()
    await work.until(lambda done: "tell" in done)
    work.done.clear()
    assert guest.devices.names == ()
    asked.set()
    await work.until(lambda done: "tell" in done)
    assert guest.devices.names == ("CPU: Core", "NPU: Boost")
    assert guest.lends == ("CPU",), "what is lent is as before: only the names are new"
    await guest.stop()
