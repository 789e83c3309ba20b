import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.settings.schedule import Schedule, parse_days, parse_hours

MONDAY = dt.datetime(2026, 3, 9, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("", range(7)),
        ("mon-fri", range(5)),
        ("Sat, sun", (5, 6)),
        ("fri-mon", (4, 5, 6, 0)),
        ("wed", (2,)),
        ("mon-mon", (0,)),
    ],
)
def test_days(text: str, days: range | tuple[int, ...]) -> None:
    assert parse_days(text) == frozenset(days)


@pytest.mark.parametrize("text", ["monday", "mon-", "-fri", "mon fri", "1-5", "mon-fri-sun"])
def test_days_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="days such as"):
        parse_days(text)


def test_hours() -> None:
    assert parse_hours("") == ((0, 1440),)
    assert parse_hours("18:00-08:00, 12:00-24:00") == ((1080, 480), (720, 1440))


@pytest.mark.parametrize(
    "text", ["8-18", "25:00-26:00", "24:30-02:00", "08:00-08:00", "24:00-08:00", "08:60-09:00", "8"]
)
def test_hours_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="hours such as"):
        parse_hours(text)


@pytest.mark.parametrize(
    ("days", "hours", "day", "clock", "open_"),
    [
        ("mon-fri", "18:00-08:00", 0, "07:00", False),  # Sunday's night is not in it
        ("mon-fri", "18:00-08:00", 0, "18:00", True),
        ("mon-fri", "18:00-08:00", 5, "07:59", True),  # Friday's night is
        ("mon-fri", "18:00-08:00", 5, "08:00", False),
        ("", "09:00-17:00", 6, "16:59", True),
        ("", "09:00-17:00", 6, "17:00", False),
    ],
)
def test_open(days: str, hours: str, day: int, clock: str, open_: bool) -> None:
    hour, minute = map(int, clock.split(":"))
    at = MONDAY + dt.timedelta(days=day, hours=hour, minutes=minute)
    assert Schedule.of(days, hours).is_open(at) is open_


@given(
    st.frozensets(st.integers(0, 6), min_size=1),
    st.lists(
        st.tuples(st.integers(0, 1439), st.integers(1, 1440)).filter(lambda r: r[0] != r[1]),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 30 * 1440).map(lambda m: MONDAY + dt.timedelta(minutes=m)),
)
def test_the_next_start_is_open_and_comes_within_eight_days(
    days: frozenset[int], hours: list[tuple[int, int]], at: dt.datetime
) -> None:
    schedule = Schedule(days, tuple(hours))
    start = schedule.next_start(at)
    assert at < start <= at + dt.timedelta(days=8)
    assert schedule.is_open(start)
