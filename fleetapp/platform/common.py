"""The answers that psutil gives alike on every operating system."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import psutil

from fleetapp.errors import ReadOnly
from fleetapp.platform.files import storage_error
from fleetapp.platform.network import Address, RawInterface, rank

_POSIX_NICE = 10


def memory_total() -> int:
    """Bytes of physical memory."""
    return int(psutil.virtual_memory().total)


def memory_free() -> int:
    """Bytes that could be taken without swapping."""
    return int(psutil.virtual_memory().available)


def disk_free(path: Path) -> int:
    """Free bytes at the nearest existing folder above ``path``."""
    for candidate in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(candidate).free
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as exc:
            raise storage_error(exc, path) from exc
    raise ReadOnly(f"{path} lies on no disk of this PC.")


def affinity_cores() -> int:
    """Logical processors this process may be scheduled on."""
    try:
        return len(psutil.Process().cpu_affinity()) or psutil.cpu_count() or 1
    except (psutil.Error, OSError):
        return psutil.cpu_count() or 1


def lower_priority() -> None:
    """Below normal on Windows; a nice value of at least 10 elsewhere."""
    process = psutil.Process()
    if sys.platform == "win32":
        process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
    else:
        process.nice(max(_POSIX_NICE, process.nice()))


def login() -> str:
    """The account this process runs under, from the system and not from USER or LOGNAME."""
    try:
        return str(psutil.Process().username()).rpartition("\\")[2]
    except (psutil.Error, KeyError, OSError):
        return "unknown"


def addresses(*, loopback: bool = False) -> tuple[Address, ...]:
    """See :meth:`fleetapp.platform.base.Platform.addresses`."""
    return rank(system_interfaces(), loopback=loopback)


def system_interfaces() -> tuple[RawInterface, ...]:
    """Ask the operating system; an interface that vanishes meanwhile is simply absent."""
    stats = psutil.net_if_stats()
    result = []
    for name, addresses in psutil.net_if_addrs().items():
        stat = stats.get(name)
        flags = str(getattr(stat, "flags", "")).split(",")
        result.append(
            RawInterface(
                name=name,
                up=bool(getattr(stat, "isup", False)),
                point_to_point="pointopoint" in flags,
                addresses=tuple(
                    (a.address, a.netmask)
                    for a in addresses
                    if a.family.name in ("AF_INET", "AF_INET6")
                ),
            )
        )
    return tuple(result)
