"""The sensors of Windows over libraries that answer as Windows does."""

from __future__ import annotations

import ctypes
import time

import pytest

from fleetapp.platform.sensing import Heat, Power, Presence
from fleetapp.platform.windows_sensors import WindowsSensors, _OnSuspend
from tests.support.fake_windows import FakeWindows


@pytest.fixture
def windows() -> FakeWindows:
    return FakeWindows()


@pytest.fixture
def sensors(windows: FakeWindows) -> WindowsSensors:
    return WindowsSensors(windows.calls())


def test_presence(windows: FakeWindows, sensors: WindowsSensors) -> None:
    assert sensors.presence() == Presence(10.0, locked=False)
    windows.session_flags = 0
    assert sensors.presence().locked is True
    windows.session_flags = -1  # WTS_SESSIONSTATE_UNKNOWN
    assert sensors.presence().locked is None
    assert windows.freed == 3


def test_idle_time_survives_the_counters_wrapping(
    windows: FakeWindows, sensors: WindowsSensors
) -> None:
    windows.tick, windows.last_input = (1 << 32) + 500, (1 << 32) - 1500
    assert sensors.presence().idle == 2.0


def test_what_cannot_be_asked_is_unknown(windows: FakeWindows, sensors: WindowsSensors) -> None:
    windows.works, windows.ole_fails = False, True
    assert sensors.presence() == Presence()
    assert sensors.power() == Power()
    assert sensors.full_screen() is None
    assert sensors.metered() is None
    assert sensors.heat() == Heat()
    assert windows.initialized == 0


@pytest.mark.parametrize(
    ("raw", "power"),
    [
        ((1, 8, 77, 0), Power(on_ac=True, battery=77.0, saver=False)),
        ((0, 1, 40, 1), Power(on_ac=False, battery=40.0, saver=True)),
        ((1, 128, 255, 0), Power(saver=False)),  # a desktop
        ((255, 255, 255, 0), Power(saver=False)),
        ((0, 1, 255, 0), Power(on_ac=False, saver=False)),
    ],
)
def test_power(
    windows: FakeWindows, sensors: WindowsSensors, raw: tuple[int, ...], power: Power
) -> None:
    windows.power = raw  # type: ignore[assignment]
    assert sensors.power() == power


@pytest.mark.parametrize(
    ("state", "filled"), [(1, False), (2, True), (3, True), (4, True), (5, False), (7, False)]
)
def test_full_screen(
    windows: FakeWindows, sensors: WindowsSensors, state: int, filled: bool
) -> None:
    windows.notification = state
    assert sensors.full_screen() is filled


@pytest.mark.parametrize(
    ("cost", "metered"), [(0, None), (1, False), (2, True), (4, True), (0x40001, True)]
)
def test_a_com_object_is_asked_what_the_network_costs_and_given_back(
    windows: FakeWindows, sensors: WindowsSensors, cost: int, metered: bool | None
) -> None:
    windows.cost = cost
    assert sensors.metered() is metered
    assert (windows.released, windows.initialized) == (1, 0)


def test_sleep_shows_in_one_clock_only(windows: FakeWindows, sensors: WindowsSensors) -> None:
    before = sensors.slept()
    windows.tick += 65_000
    windows.awake_ms += 5_000
    assert sensors.slept() - before == pytest.approx(60.0)


def test_windows_tells_before_sleep_and_after(
    windows: FakeWindows, sensors: WindowsSensors
) -> None:
    heard: list[bool] = []
    sensors.watch_sleep(heard.append)
    tell = ctypes.cast(windows.callback, _OnSuspend)
    for kind in (4, 0x12, 7):
        assert tell(None, kind, None) == 0
    assert heard == [True, False]
    sensors.close()
    assert windows.unregistered


def test_usage_tells_our_own_work_from_that_of_others(sensors: WindowsSensors) -> None:
    first = sensors.usage()
    assert first.others_cpu is None
    assert first.own_memory > 10 << 20
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    later = sensors.usage()
    assert later.others_cpu is not None
    assert 0 <= later.others_cpu <= 100
    assert any("python" in name or "pytest" in name for name in sensors.programs())


def test_a_clock_that_lags_is_no_sleep_backwards() -> None:
    fake = FakeWindows()
    fake.tick, fake.awake_ms = 1_000_000, 1_000_010
    assert WindowsSensors(fake.calls()).slept() == 0.0
