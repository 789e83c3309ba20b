"""Sensors of Linux: /sys, /proc, and the services that a desktop has on its message buses.

Idle time comes from the X server, from GNOME's compositor, or from logind, in this order; a PC
without any (a server) has none. Full screen is not known: there is no road to it that Wayland
desktops share.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from fleetapp.platform import usage, x11
from fleetapp.platform.dbus import LOGIN, Bus, SleepWatch
from fleetapp.platform.sensing import Heat, Power, Presence, Usage

_MUTTER = "org.gnome.Mutter.IdleMonitor"
_NETWORK = "org.freedesktop.NetworkManager"
_SESSION = f"{LOGIN}.Session"
_METERED = {1: True, 2: False, 3: True, 4: False}
"""NetworkManager's NMMetered: yes, no, guessed yes, guessed no."""
_HOT_ZONES = ("x86_pkg_temp", "cpu", "soc")
_HOT_CHIPS = frozenset({"coretemp", "k10temp", "zenpower", "cpu_thermal"})


class LinuxSensors:
    """See :class:`fleetapp.platform.sensing.Sensors`.

    Args:
        sys: where sysfs is.
        environ: of this session.
    """

    def __init__(self, sys: Path = Path("/sys"), environ: dict[str, str] | None = None) -> None:
        self._sys = sys
        self._system, self._session = Bus("SYSTEM"), Bus("SESSION")
        self._x11 = x11.open_idle(dict(os.environ) if environ is None else environ)
        self._mutter = True
        self._meter = usage.UsageMeter()
        self._throttles: int | None = None
        self._sleep: SleepWatch | None = None

    def presence(self) -> Presence:
        session = self._system.properties(
            f"/{LOGIN.replace('.', '/')}/session/auto", LOGIN, _SESSION
        )
        locked = session.get("LockedHint")
        return Presence(self._idle(session), bool(locked) if isinstance(locked, bool) else None)

    def _idle(self, session: dict[str, object]) -> float | None:
        if self._x11 is not None and (seconds := self._x11.seconds()) is not None:
            return seconds
        if self._mutter:
            path = f"/{_MUTTER.replace('.', '/')}/Core"
            answer = self._session.call(path, _MUTTER, _MUTTER, "GetIdletime")
            if answer:
                return float(answer[0]) / 1000
            self._mutter = False  # another desktop; it does not come into being later
        since = session.get("IdleSinceHintMonotonic")
        if session.get("Type") not in ("x11", "wayland", "mir", "tty") or not isinstance(
            since, int
        ):
            return None
        if not session.get("IdleHint"):
            return 0.0
        return max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - since / 1e6)

    def power(self) -> Power:
        mains, levels, discharging = [], [], False
        for folder in self._folders("class/power_supply"):
            kind = _text(folder / "type")
            if kind == "Battery" and _text(folder / "scope") != "Device":  # not a mouse's
                if (level := _number(folder / "capacity")) is not None:
                    levels.append(float(level))
                discharging |= _text(folder / "status") == "Discharging"
            elif kind in ("Mains", "USB") and (online := _number(folder / "online")) is not None:
                mains.append(bool(online))
        profile = _text(self._sys / "firmware/acpi/platform_profile")
        saver = profile == "low-power" if profile else None
        if not levels:
            return Power(saver=saver)
        on_ac = any(mains) if mains else not discharging
        return Power(on_ac, sum(levels) / len(levels), saver)

    def metered(self) -> bool | None:
        found = self._system.properties(f"/{_NETWORK.replace('.', '/')}", _NETWORK, _NETWORK)
        value = found.get("Metered")
        return _METERED.get(value) if isinstance(value, int) else None

    def full_screen(self) -> bool | None:
        return None

    def heat(self) -> Heat:
        zones = [
            _number(zone / "temp")
            for zone in self._folders("class/thermal")
            if _text(zone / "type").lower().startswith(_HOT_ZONES)
        ]
        chips = [
            _number(chip / "temp1_input")
            for chip in self._folders("class/hwmon")
            if _text(chip / "name") in _HOT_CHIPS
        ]
        known = [n / 1000 for n in (*zones, *chips) if n is not None and n > 0]
        counter = self._sys / "devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"
        count, before = _number(counter), self._throttles
        self._throttles = count
        throttled = None if count is None else before is not None and count > before
        return Heat(max(known, default=None), throttled)

    def usage(self) -> Usage:
        return self._meter.look()

    def programs(self) -> frozenset[str]:
        return usage.programs()

    def slept(self) -> float:
        both = time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC  # the second stands still in sleep
        boot, awake = (time.clock_gettime(clock) for clock in both)
        return max(0.0, boot - awake)

    def watch_sleep(self, going: Callable[[bool], None]) -> None:
        self._sleep = SleepWatch(going)

    def close(self) -> None:
        if self._sleep is not None:
            self._sleep.close()
        if self._x11 is not None:
            self._x11.close()
        self._system.close()
        self._session.close()

    def _folders(self, where: str) -> list[Path]:
        with contextlib.suppress(OSError):
            return sorted((self._sys / where).iterdir())
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # absent, or a sensor that is switched off just now
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None
