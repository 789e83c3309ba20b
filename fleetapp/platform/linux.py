"""Linux (and any other POSIX system psutil knows)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform as host
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleetapp.errors import BadSetting
from fleetapp.platform import cgroup, common
from fleetapp.platform.base import Policy, PolicyScope
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.linux_sensors import LinuxSensors
from fleetapp.platform.linux_startup import DesktopEntries
from fleetapp.platform.network import Address
from fleetapp.platform.startup import Startup

POLICY_FOLDER = Path("/etc/fleetapp")
_NET = Path("/sys/class/net")
_BUSES = frozenset({"pci", "virtio", "vmbus", "xen", "sdio"})
_HUGE_PAGES = "glibc.malloc.hugetlb"


class LinuxPlatform:
    """See :class:`fleetapp.platform.base.Platform`.

    Policies are ``policy.json`` and ``users/<login>.json`` in ``policy_folder``. No environment
    variable can move that folder, or any user could escape the policy.
    """

    name = "linux"

    def __init__(self, policy_folder: Path = POLICY_FOLDER) -> None:
        self._policy_folder = policy_folder

    def memory_total(self) -> int:
        total = common.memory_total()
        limit = cgroup.limits().memory_total
        return total if limit is None else min(total, limit)

    def memory_free(self) -> int:
        free = common.memory_free()
        limit = cgroup.limits().memory_free
        return free if limit is None else min(free, limit)

    def disk_free(self, path: Path) -> int:
        return common.disk_free(path)

    def cpu_name(self) -> str:
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return host.processor()
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Hardware", "cpu model"):
                return " ".join(value.split())
        return host.processor() or host.machine()

    def cores(self) -> int:
        allowed = common.affinity_cores()
        quota = cgroup.limits().cpus
        return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))

    def machine_facts(self) -> tuple[str, ...]:
        found = [_text(Path("/etc/machine-id")) or _text(Path("/var/lib/dbus/machine-id"))]
        found += sorted(_built_in_cards(_NET))
        return tuple(f for f in found if f)

    def addresses(self, *, loopback: bool = False) -> tuple[Address, ...]:
        return common.addresses(loopback=loopback)

    def make_private_dir(self, path: Path) -> None:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
        except OSError as exc:
            raise storage_error(exc, path) from exc

    def write_private(self, path: Path, data: bytes) -> None:
        write_atomic(path, data, mode=0o600)

    def lower_priority(self) -> None:
        common.lower_priority()

    def runner_environment(self, base: Mapping[str, str]) -> dict[str, str]:
        # glibc 2.35 and later; others ignore it. With 4 KiB pages a decode step misses the
        # processor's table of pages some ten thousand times.
        tunables = [t for t in base.get("GLIBC_TUNABLES", "").split(":") if t]
        if not any(t.startswith(_HUGE_PAGES) for t in tunables):
            tunables.append(f"{_HUGE_PAGES}=1")
        return {**base, "GLIBC_TUNABLES": ":".join(tunables)}

    def sensors(self) -> LinuxSensors:
        return LinuxSensors()

    def startup(self) -> Startup:
        return DesktopEntries().read()

    def set_startup(self, on: bool, command: Sequence[str]) -> None:
        DesktopEntries().write(on, command)

    def policy(self, scope: PolicyScope) -> Policy:
        if scope == "machine":
            file = self._policy_folder / "policy.json"
        else:
            login = common.login().replace("/", "_")
            file = self._policy_folder / "users" / f"{login}.json"
        try:
            text = file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return Policy(str(file))
        except (OSError, UnicodeDecodeError) as exc:
            raise _bad_policy(file, str(exc)) from exc
        try:
            values = json.loads(text)
        except ValueError as exc:
            raise _bad_policy(file, str(exc)) from exc
        if not isinstance(values, dict):
            raise _bad_policy(file, "it is not a JSON object")
        return Policy(str(file), values)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _built_in_cards(net: Path) -> set[str]:
    """Hardware addresses that came with the card, of cards that are built in (also virtually).

    Not of docking stations and sticks (USB), virtual interfaces (no device), or Wi-Fi that makes up
    a new address for each network (``addr_assign_type`` is then not 0).
    """
    found = set()
    with contextlib.suppress(OSError):
        for card in net.iterdir():
            bus = Path(os.path.realpath(card / "device" / "subsystem")).name
            if bus in _BUSES and _text(card / "addr_assign_type") == "0":
                found.add(_text(card / "address"))
    return found


def _bad_policy(file: Path, why: str) -> BadSetting:
    return BadSetting(
        f"The policy file {file} cannot be used: {why}.",
        remedy="Ask the administrator to correct it.",
    )
