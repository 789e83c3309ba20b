"""Limits that a container or a service manager sets on Linux, both cgroup versions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# a v1 hierarchy without a limit reports a number near 2**63
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Limits:
    """``None`` means unlimited. CPUs as a fraction, memory in bytes."""

    cpus: float | None = None
    memory_total: int | None = None
    memory_free: int | None = None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None


def _groups(proc: Path) -> dict[str, PurePosixPath]:
    """Controller -> this process's group; the unified hierarchy is under the empty name."""
    found: dict[str, PurePosixPath] = {}
    for line in _text(proc).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        for controller in controllers.split(","):
            found[controller] = PurePosixPath(group or "/")
    return found


def _upwards(mount: Path, group: PurePosixPath) -> list[Path]:
    """The group's folder and every one above it: the tightest limit anywhere counts.

    Inside a container the path may name a folder of the host; then only the mount itself exists.
    """
    inside = [mount.joinpath(*p.parts[1:]) for p in (group, *group.parents)]
    return list(dict.fromkeys([*inside, mount]))


def _least(values: list[float | None]) -> float | None:
    return min((v for v in values if v is not None), default=None)


def _cpu_v2(folder: Path) -> float | None:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _cpu_v1(folder: Path) -> float | None:
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _memory(folder: Path, limit: str, usage: str, idle: str) -> tuple[int | None, int | None]:
    total, used = _number(folder / limit), _number(folder / usage)
    if total is None or total > _UNLIMITED:
        return None, None
    # idle page cache counts as used but is given back on demand
    stat = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines())
    reclaimable = int(stat[idle]) if stat.get(idle, "").isdigit() else 0
    return total, max(0, total - (used or 0) + reclaimable)


def limits(proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> Limits:
    """Tightest limits on this process; a system without cgroups has none."""
    groups = _groups(proc)
    root = PurePosixPath("/")
    unified = _upwards(mount, groups.get("", root))
    cpu_v1 = _upwards(mount / "cpu", groups.get("cpu", root))
    memory_v1 = _upwards(mount / "memory", groups.get("memory", root))
    cpus = _least([_cpu_v2(f) for f in unified] + [_cpu_v1(f) for f in cpu_v1])
    pairs = [_memory(f, "memory.max", "memory.current", "inactive_file") for f in unified]
    pairs += [
        _memory(f, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        for f in memory_v1
    ]
    total, free = _least([p[0] for p in pairs]), _least([p[1] for p in pairs])
    return Limits(
        cpus=cpus,
        memory_total=None if total is None else int(total),
        memory_free=None if free is None else int(free),
    )
