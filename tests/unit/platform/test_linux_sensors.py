"""The sensors of Linux: files as the kernel shows them, a real bus, a real X server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("Linux only", allow_module_level=True)

from jeepney import DBusAddress, MessageType, message_bus, new_error, new_method_return, new_signal
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from fleetapp.platform import dbus, linux_sensors
from fleetapp.platform.linux_sensors import LinuxSensors
from fleetapp.platform.sensing import Heat, Power, Presence


@pytest.fixture(autouse=True)
def _no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the machine that runs the tests."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")


def files(root: Path, tree: dict[str, str]) -> LinuxSensors:
    for name, text in tree.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return LinuxSensors(root, {})


BATTERY = {
    "class/power_supply/BAT0/type": "Battery",
    "class/power_supply/BAT0/capacity": "64",
    "class/power_supply/BAT0/status": "Discharging",
}
MOUSE = {
    "class/power_supply/hidpp/type": "Battery",
    "class/power_supply/hidpp/scope": "Device",
    "class/power_supply/hidpp/capacity": "9",
    "class/power_supply/hidpp/status": "Discharging",
}


@pytest.mark.parametrize(
    ("tree", "power"),
    [
        ({}, Power()),
        (MOUSE, Power()),
        (BATTERY, Power(on_ac=False, battery=64.0)),
        ({**BATTERY, "class/power_supply/AC/type": "Mains", "class/power_supply/AC/online": "1"},
         Power(on_ac=True, battery=64.0)),
        ({**BATTERY, **MOUSE, "class/power_supply/AC/type": "Mains",
          "class/power_supply/AC/online": "0"}, Power(on_ac=False, battery=64.0)),
        ({**BATTERY, "class/power_supply/AC/type": "Mains", "class/power_supply/AC/online": "0",
          "class/power_supply/ucsi/type": "USB", "class/power_supply/ucsi/online": "1"},
         Power(on_ac=True, battery=64.0)),
        ({"firmware/acpi/platform_profile": "low-power"}, Power(saver=True)),
        ({"firmware/acpi/platform_profile": "balanced"}, Power(saver=False)),
    ],
)  # fmt: skip
def test_power(tmp_path: Path, tree: dict[str, str], power: Power) -> None:
    assert files(tmp_path, tree).power() == power


def test_heat_is_that_of_the_processor(tmp_path: Path) -> None:
    assert files(tmp_path, {}).heat() == Heat()
    count = "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"
    sensors = files(
        tmp_path,
        {
            "class/thermal/thermal_zone0/type": "acpitz",
            "class/thermal/thermal_zone0/temp": "99000",
            "class/thermal/thermal_zone1/type": "x86_pkg_temp",
            "class/thermal/thermal_zone1/temp": "71000",
            "class/hwmon/hwmon0/name": "nvme",
            "class/hwmon/hwmon0/temp1_input": "80000",
            "class/hwmon/hwmon1/name": "k10temp",
            "class/hwmon/hwmon1/temp1_input": "72500",
            count: "7",
        },
    )
    assert sensors.heat() == Heat(72.5, throttled=False)
    (tmp_path / count).write_text("9")
    assert sensors.heat() == Heat(72.5, throttled=True)
    assert sensors.heat().throttled is False


def test_a_server_without_desktop_or_bus_knows_nothing_and_says_so_quickly(tmp_path: Path) -> None:
    sensors = files(tmp_path, {})
    begun = time.monotonic()
    for _ in range(50):
        assert sensors.presence() == Presence()
        assert sensors.metered() is None
    assert time.monotonic() - begun < 2.0
    assert sensors.full_screen() is None
    assert sensors.slept() >= 0.0
    sensors.close()


# ---------------------------------------------------------------------- a real bus


class Services:
    """logind, NetworkManager and Mutter on a bus of their own, as far as the sensors ask them."""

    def __init__(self, address: str) -> None:
        self.session: dict[str, tuple[str, Any]] = {
            "Type": ("s", "wayland"),
            "IdleHint": ("b", False),
            "IdleSinceHintMonotonic": ("t", 0),
            "LockedHint": ("b", False),
        }
        self.metered = 4
        self.idle_ms: int | None = None
        self.asked: list[str] = []
        self.inhibited = threading.Event()
        self.bus: DBusConnection = open_dbus_connection(address, enable_fds=True)
        for name in ("login1", "NetworkManager"):
            self.bus.send_and_get_reply(message_bus.RequestName(f"org.freedesktop.{name}"))
        self.bus.send_and_get_reply(message_bus.RequestName("org.gnome.Mutter.IdleMonitor"))
        self.lock_read, self._lock_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                asked = self.bus.receive()
            except (OSError, EOFError, ValueError):
                return
            if asked.header.message_type is not MessageType.method_call:
                continue
            fields = {field.name: value for field, value in asked.header.fields.items()}
            self.asked.append(str(fields["member"]))
            self.bus.send(self._answer(asked, fields))
            if fields["member"] == "Inhibit":
                os.close(self._lock_write)  # the other end has its own copy now
                self.inhibited.set()

    def _answer(self, asked: Any, fields: dict[str, Any]) -> Any:
        match fields["member"], fields["path"]:
            case "GetAll", "/org/freedesktop/login1/session/auto":
                return new_method_return(asked, "a{sv}", (self.session,))
            case "GetAll", "/org/freedesktop/NetworkManager":
                return new_method_return(asked, "a{sv}", ({"Metered": ("u", self.metered)},))
            case "GetIdletime", "/org/gnome/Mutter/IdleMonitor/Core" if self.idle_ms is not None:
                return new_method_return(asked, "t", (self.idle_ms,))
            case "Inhibit", "/org/freedesktop/login1":
                assert asked.body[0] == "sleep"
                assert asked.body[3] == "delay"
                return new_method_return(asked, "h", (self._lock_write,))
        return new_error(asked, "org.freedesktop.DBus.Error.UnknownMethod")

    def sleep(self, going: bool) -> None:
        manager = DBusAddress("/org/freedesktop/login1", interface="org.freedesktop.login1.Manager")
        self.bus.send(new_signal(manager, "PrepareForSleep", "b", (going,)))


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Services]:
    daemon = shutil.which("dbus-daemon")
    if daemon is None:
        pytest.skip("no dbus-daemon here")
    address = f"unix:path={tmp_path}/bus"
    process = subprocess.Popen(
        [daemon, "--session", "--nofork", "--nosyslog", f"--address={address}", "--print-address"],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        for which in ("SYSTEM", "SESSION"):
            monkeypatch.setenv(f"DBUS_{which}_BUS_ADDRESS", address)
        found = Services(address)
        yield found
        found.bus.close()
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_logind_tells_who_is_there(services: Services, tmp_path: Path) -> None:
    sensors = LinuxSensors(tmp_path, {})
    assert sensors.presence() == Presence(0.0, locked=False)
    since = time.clock_gettime(time.CLOCK_MONOTONIC) - 400
    services.session |= {
        "IdleHint": ("b", True),
        "IdleSinceHintMonotonic": ("t", int(since * 1e6)),
        "LockedHint": ("b", True),
    }
    presence = sensors.presence()
    assert presence.locked is True
    assert presence.idle == pytest.approx(400, abs=5)
    sensors.close()


def test_a_session_without_a_screen_has_no_idle_time(services: Services, tmp_path: Path) -> None:
    services.session["Type"] = ("s", "unspecified")
    assert LinuxSensors(tmp_path, {}).presence().idle is None


def test_gnome_knows_it_better(services: Services, tmp_path: Path) -> None:
    services.idle_ms = 12_500
    assert LinuxSensors(tmp_path, {}).presence().idle == 12.5


@pytest.mark.parametrize(("value", "metered"), [(0, None), (1, True), (2, False), (3, True)])
def test_network_manager_tells_whether_it_costs(
    services: Services, tmp_path: Path, value: int, metered: bool | None
) -> None:
    services.metered = value
    assert LinuxSensors(tmp_path, {}).metered() is metered


def test_looking_is_cheap(services: Services, tmp_path: Path) -> None:
    """Twice a second, for ever: well under one percent of a core."""
    sensors = LinuxSensors(tmp_path, {})
    sensors.presence()
    begun = time.thread_time()
    for _ in range(50):
        sensors.presence()
    assert (time.thread_time() - begun) / 50 < 0.005


def test_a_bus_that_ends_is_unknown_and_asked_again_later(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensors = LinuxSensors(tmp_path, {})
    assert sensors.metered() is False
    monkeypatch.setattr(dbus, "RETRY_SECONDS", 0.0)
    good = os.environ["DBUS_SYSTEM_BUS_ADDRESS"]
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent")
    sensors._system._connection.sock.close()  # type: ignore[union-attr]
    assert sensors.metered() is None
    assert sensors.metered() is None
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", good)
    sensors._system._try_at = 0.0
    assert sensors.metered() is False


def test_sleep_waits_until_we_have_taken_leave(services: Services, tmp_path: Path) -> None:
    sensors = LinuxSensors(tmp_path, {})
    heard: list[bool] = []
    told, may_go = threading.Event(), threading.Event()

    def going(asleep: bool) -> None:
        heard.append(asleep)
        told.set()
        assert may_go.wait(10)

    sensors.watch_sleep(going)
    assert services.inhibited.wait(10)
    services.sleep(True)
    assert told.wait(10)
    os.set_blocking(services.lock_read, False)
    with pytest.raises(BlockingIOError):
        os.read(services.lock_read, 1)  # the lock is still held
    may_go.set()
    os.set_blocking(services.lock_read, True)
    assert os.read(services.lock_read, 1) == b""  # and now it is not
    sensors.close()
    assert heard == [True]


# ---------------------------------------------------------------------- a real X server


@pytest.fixture
def display() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    server = shutil.which("Xvfb")
    if server is None:
        pytest.skip("no Xvfb here")
    read, write = os.pipe()
    process = subprocess.Popen(
        [server, "-displayfd", str(write), "-screen", "0", "64x64x8", "-nolisten", "tcp"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as numbers:
        number = numbers.readline().strip()
    yield f":{number}", process
    process.kill()
    process.wait(10)


CHILD = """
import os, sys, time
from fleetapp.platform.x11 import open_idle
idle = open_idle(dict(os.environ))
if idle is None:
    print("none", flush=True); sys.exit()
first = idle.seconds(); time.sleep(0.3)
print(first, idle.seconds(), flush=True)
sys.stdin.readline()
print(idle.seconds(), flush=True)
idle.close()
"""


def test_x11_tells_it_and_its_end_is_not_ours(
    display: tuple[str, subprocess.Popen[bytes]],
) -> None:
    """In a process of its own: Xlib would end it."""
    name, server = display
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("WAYLAND", "XDG"))}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**environ, "DISPLAY": name},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    said = child.stdout.readline().split()
    if said == ["none"]:
        child.communicate(timeout=10)
        pytest.skip("no libXss, or a libX11 older than 1.7")
    assert float(said[1]) - float(said[0]) == pytest.approx(0.3, abs=0.25)
    server.kill()
    server.wait(10)
    rest, _ = child.communicate("go\n", timeout=20)
    assert (rest.strip(), child.returncode) == ("None", 0)


def test_waylands_stand_in_for_x11_is_not_asked() -> None:
    assert linux_sensors.x11.open_idle({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}) is None
    assert linux_sensors.x11.open_idle({"DISPLAY": ":0", "XDG_SESSION_TYPE": "wayland"}) is None
    assert linux_sensors.x11.open_idle({}) is None
