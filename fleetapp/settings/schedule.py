"""Days and hours as people write them: ``mon-fri`` and ``18:00-08:00``. Pure."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MINUTES = 24 * 60
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)")


def parse_days(text: str) -> frozenset[int]:
    """Weekdays, 0 is Monday, of ``mon-fri, sun``; nothing stands for every day.

    Raises:
        ValueError: a sentence that can follow "must be".
    """
    found: set[int] = set()
    for part in _parts(text):
        first, dash, last = (p.strip() for p in part.partition("-"))
        if first not in DAYS or (dash and last not in DAYS):
            raise ValueError("days such as mon-fri or sat,sun")
        start = DAYS.index(first)
        span = (DAYS.index(last) - start) % 7 if dash else 0
        found |= {(start + i) % 7 for i in range(span + 1)}
    return frozenset(found) or frozenset(range(7))


def parse_hours(text: str) -> tuple[tuple[int, int], ...]:
    """(start, stop) in minutes after midnight of ``18:00-08:00, 12:00-13:00``; nothing: all day.

    A range whose end comes first runs over midnight.

    Raises:
        ValueError: a sentence that can follow "must be".
    """
    found = []
    for part in _parts(text):
        first, _, last = (p.strip() for p in part.partition("-"))
        start, stop = _clock(first), _clock(last)
        if start in (stop, _MINUTES):
            raise ValueError("hours such as 18:00-08:00, from one time to another")
        found.append((start, stop))
    return tuple(found) or ((0, _MINUTES),)


def _parts(text: str) -> list[str]:
    return [p.strip() for p in text.lower().split(",") if p.strip()]


def _clock(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    minutes = int(found[1]) * 60 + int(found[2]) if found else _MINUTES + 1
    if minutes > _MINUTES:
        raise ValueError("hours such as 18:00-08:00, from one time to another")
    return minutes


@dataclass(frozen=True)
class Schedule:
    """When something is open. A range over midnight belongs to the day on which it begins."""

    days: frozenset[int]
    hours: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, days: str, hours: str) -> Schedule:
        """Of two settings; raises ValueError as the parsers do."""
        return cls(parse_days(days), parse_hours(hours))

    def is_open(self, local: dt.datetime) -> bool:
        """Whether it is at this local time."""
        minute = local.hour * 60 + local.minute
        today, yesterday = local.weekday(), (local.weekday() - 1) % 7
        for start, stop in self.hours:
            if start < stop:
                if today in self.days and start <= minute < stop:
                    return True
            elif (today in self.days and minute >= start) or (
                yesterday in self.days and minute < stop
            ):
                return True
        return False

    def next_start(self, local: dt.datetime) -> dt.datetime:
        """When a range begins next, after ``local``."""
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        starts = (
            midnight + dt.timedelta(days=day, minutes=start)
            for day in range(8)
            for start, _ in self.hours
            if (local.weekday() + day) % 7 in self.days
        )
        return min(start for start in starts if start > local)
