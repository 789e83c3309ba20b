"""The monitor over a fake platform and clocks moved by hand."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from fleetapp.contribution import monitor as module
from fleetapp.contribution.snapshot import Pause
from fleetapp.platform.fake import FakeSensors
from fleetapp.platform.sensing import Heat, Power, Presence
from tests.support.guests import NOON, Watched, soon


async def test_a_server_without_sensors_contributes(tmp_path: Path) -> None:
    watched = Watched(tmp_path, FakeSensors())
    await watched.monitor.open()
    assert [d.reason for d in watched.told] == ["contributing"]
    await watched.monitor.close()
    assert watched.sensors.closed


async def test_only_changes_are_told(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    await watched.monitor.open()
    for _ in range(5):
        await watched.after(0.5)
    watched.sensors.idle = 0.0
    for _ in range(5):
        await watched.after(0.5)
    assert [d.reason for d in watched.told] == ["contributing", "user_active"]


async def test_without_consent_nobody_is_watched(tmp_path: Path) -> None:
    class Curious(FakeSensors):
        def presence(self) -> Presence:
            raise AssertionError("asked without consent")

    watched = Watched(tmp_path, Curious(), contribute=False)
    await watched.monitor.open()
    assert watched.monitor.decision.reason == "not_consented"
    watched.settings = Watched(tmp_path).settings
    watched.monitor.pause = Pause()
    await watched.after(1.0)
    assert watched.monitor.decision.reason == "paused"


@pytest.mark.parametrize(
    ("field", "value", "seconds", "reason"),
    [
        ("locked", False, 0.5, "contributing"),
        ("supply", Power(on_ac=False, battery=90.0), 5.0, "on_battery"),
        ("supply", Power(on_ac=True, saver=True), 5.0, "battery_saver"),
        ("is_metered", True, 16.0, "metered"),
        ("fills_screen", True, 3.0, "full_screen"),
        ("running", frozenset({"blender"}), 11.0, "exclusive_app"),
        ("warmth", Heat(101.0), 70.0, "hot"),
        ("others_cpu", 90.0, 70.0, "cpu_busy"),
    ],
)
async def test_every_sensor_is_looked_at_in_time(
    tmp_path: Path, field: str, value: object, seconds: float, reason: str
) -> None:
    watched = Watched(tmp_path, exclusive_apps="Blender")
    await watched.monitor.open()
    setattr(watched.sensors, field, value)
    assert (await watched.after(seconds)).reason == reason


async def test_memory_and_disk_are_looked_at(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    await watched.monitor.open()
    watched.platform.free = 1 << 20
    assert (await watched.after(70.0)).reason == "memory_low"
    watched.platform.free, watched.platform.disk = 8 << 30, 1 << 20
    assert (await watched.after(70.0)).reason == "disk_low"


async def test_one_busy_moment_of_others_is_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.sensors.others_cpu = 2.0
    await watched.monitor.open()
    for _ in range(20):
        await watched.after(4.0)
    watched.sensors.others_cpu = 60.0
    assert (await watched.after(4.0)).contribute
    assert (await watched.after(4.0)).reason == "cpu_busy"


async def test_a_pause_ends_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.monitor.pause = Pause(until=NOON + 1000 + 1800)
    await watched.monitor.open()
    assert (await watched.after(1799)).reason == "paused"
    assert (await watched.after(1)).contribute
    assert watched.monitor.pause is None


async def test_the_user_is_watched_while_answers_are_finished(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.work = 1
    await watched.monitor.open()
    watched.monitor.pause = Pause(finish_first=True)
    assert (await watched.after(0.5)).draining
    watched.sensors.idle = 0.0
    assert (await watched.after(0.5)).reason == "paused"


async def test_a_sensor_that_hangs_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SENSOR_DEADLINE", 0.1)
    hang = threading.Event()

    class Hanging(FakeSensors):
        def metered(self) -> bool | None:
            hang.wait(10)
            return None

    watched = Watched(tmp_path, Hanging(idle=900.0))
    begun = time.monotonic()
    await watched.monitor.open()
    for _ in range(20):
        assert (await watched.after(0.5)).contribute
    assert time.monotonic() - begun < 3.0
    hang.set()
    watched.sensors.idle = 0.0
    for _ in range(500):  # as soon as the thread is free again
        if not (await watched.after(20.0)).contribute:
            break
        await asyncio.sleep(0.01)
    assert watched.monitor.decision.reason == "user_active"
    await watched.monitor.close()


async def test_a_broken_sensor_does_not_end_the_watch(tmp_path: Path) -> None:
    class Broken(FakeSensors):
        def heat(self) -> Heat:
            raise OSError("the driver has gone")

    watched = Watched(tmp_path, Broken(idle=900.0))
    await watched.monitor.open()
    assert (await watched.after(10.0)).contribute
    watched.sensors.idle = 0.0
    assert (await watched.after(10.0)).reason == "user_active"
    await watched.monitor.close()


async def test_the_loop_notices_the_user_within_a_second(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    await watched.monitor.open()
    running = asyncio.create_task(watched.monitor.run())
    await asyncio.sleep(0)
    watched.sensors.idle = 0.0
    begun = time.monotonic()
    await soon(lambda: not watched.monitor.decision.contribute)
    assert time.monotonic() - begun < 1.0
    running.cancel()
    await watched.monitor.close()


async def test_sleep_that_nobody_told_of_is_seen_by_the_clocks(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    await watched.monitor.open()
    watched.sensors.asleep_seconds = 0.4  # clocks are read one after the other
    await watched.after(2.0)
    assert watched.slept == []
    watched.sensors.asleep_seconds = 3600.4
    watched.sensors.is_metered = True  # in another place now
    decision = await watched.after(0.5)
    assert watched.slept == [3600.0]
    assert decision.reason == "metered", "what was known before sleep is asked again at once"
    await watched.after(0.5)
    assert watched.slept == [3600.0]


async def test_before_sleep_the_system_waits_until_leave_is_taken(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    await watched.monitor.open()
    assert watched.sensors.going is not None
    going = asyncio.create_task(asyncio.to_thread(watched.sensors.going, True))
    await soon(lambda: watched.sleeping > 0)
    assert watched.monitor.decision.reason == "suspending"
    assert not going.done()
    watched.monitor.settled()
    await asyncio.wait_for(going, 2)
    watched.sensors.asleep_seconds = 600.0
    await asyncio.wait_for(asyncio.to_thread(watched.sensors.going, False), 5)
    await watched.after(60.0)
    assert watched.slept == [600.0], "told once, although the clocks show it too"
    assert watched.monitor.decision.contribute


async def test_looking_is_cheap(tmp_path: Path) -> None:
    """An idle agent must stay under one percent of a core; a look has 5 ms of every 500."""
    watched = Watched(tmp_path)
    await watched.monitor.open()
    begun = time.process_time()
    for _ in range(100):
        await watched.after(0.5)
    assert (time.process_time() - begun) / 100 < 0.005
    await watched.monitor.close()
