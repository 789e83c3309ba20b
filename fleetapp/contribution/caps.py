"""What this PC tells the fleet is free on it: less than the system says. Pure."""

from __future__ import annotations

from typing import Final

from fleetapp.settings import Settings

_MIB: Final = 1 << 20


def memory_for_fleet(settings: Settings, free: int, own: int) -> int:
    """Bytes that a plan may still use, of ``free`` ones, while the fleet has ``own`` already."""
    return _within(free - settings.memory_reserve_mb * _MIB, settings.memory_limit_mb, own)


def disk_for_fleet(settings: Settings, free: int, own: int) -> int:
    """Bytes that shards may still take, while they take ``own`` already."""
    return _within(free - settings.disk_reserve_mb * _MIB, settings.disk_limit_mb, own)


def _within(free: int, limit_mb: int, own: int) -> int:
    if limit_mb:
        free = min(free, limit_mb * _MIB - own)
    return max(0, free)
