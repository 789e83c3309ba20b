"""Processor and memory, ours apart from others', through psutil."""

from __future__ import annotations

import psutil

from fleetapp.platform.sensing import Usage


class UsageMeter:
    """Compares with its last look; one for one reader."""

    def __init__(self) -> None:
        self._total = self._busy = 0.0
        self._own: dict[tuple[int, float], float] = {}
        """Processor seconds of each of our processes; a pid alone may be another one by now."""
        self._begun = False

    def look(self) -> Usage:
        """See :class:`fleetapp.platform.sensing.Usage`."""
        total, busy = _processor_seconds()
        own, memory = _ours()
        spent = sum(seconds - self._own.get(process, 0.0) for process, seconds in own.items())
        others = None
        if self._begun and total > self._total:
            share = (busy - self._busy - spent) / (total - self._total)
            others = 100.0 * min(1.0, max(0.0, share))
        self._total, self._busy, self._own, self._begun = total, busy, own, True
        return Usage(others, memory)


def _processor_seconds() -> tuple[float, float]:
    """All seconds of all processors since the start, and those that were not idle."""
    times = psutil.cpu_times()
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    total = float(sum(times)) - guests  # Linux counts a guest's time as its host's, too
    return total, total - float(times.idle) - float(getattr(times, "iowait", 0.0))


def _ours() -> tuple[dict[tuple[int, float], float], int]:
    me = psutil.Process()
    found: dict[tuple[int, float], float] = {}
    memory = 0
    for process in [me, *_children(me)]:
        try:
            with process.oneshot():
                times = process.cpu_times()
                memory += int(process.memory_info().rss)
                key = (int(process.pid), float(process.create_time()))
                found[key] = float(times.user + times.system)
        except psutil.Error:
            continue  # it has just ended
    return found, memory


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.Error:
        return []


def programs() -> frozenset[str]:
    """See :meth:`fleetapp.platform.sensing.Sensors.programs`; with and without ``.exe``."""
    names = {str(p.info["name"] or "").lower() for p in psutil.process_iter(["name"])}
    return frozenset(names | {n.removesuffix(".exe") for n in names}) - {""}
