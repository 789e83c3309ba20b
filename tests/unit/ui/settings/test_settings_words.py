"""Days and hours as the window writes them are what the agent understands, and the same days."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.settings import Settings
from fleetapp.settings.schedule import Schedule, parse_days, parse_hours
from fleetapp.settings.schema import SCHEMA
from fleetapp.settings.view import settings_view
from ui.settings.schedule_controls import days_of, hours_of, normal_hours, text_of_days
from ui.settings.setting_row import CONTROLS, default_text

minutes = st.integers(0, 23 * 60 + 59)


@given(st.frozensets(st.integers(0, 6), min_size=1))
def test_days_come_back_as_they_were(days: frozenset[int]) -> None:
    text = text_of_days(days)
    assert parse_days(text) == days_of(text) == days


@pytest.mark.parametrize("text", ["", "mon-fri", "sat,sun", "fri-mon", " Mon , wed-wed"])
def test_days_are_read_as_the_agent_reads_them(text: str) -> None:
    assert days_of(text) == parse_days(text)


@given(st.lists(st.tuples(minutes, minutes).filter(lambda r: r[0] != r[1]), max_size=3))
def test_normal_hours_are_the_same_hours(ranges: list[tuple[int, int]]) -> None:
    def clock(minute: int) -> str:
        return f"{minute // 60}:{minute % 60:02}"

    text = ",".join(f"{clock(a)}-{clock(b)}" for a, b in ranges)
    normal = normal_hours(text)
    assert len(hours_of(normal)) == len(ranges)
    every_day = frozenset(range(7))
    before, after = (Schedule(every_day, parse_hours(t)) for t in (text, normal))
    day = dt.datetime(2026, 3, 4)  # noqa: DTZ001 - local time is what a schedule knows
    for minute in range(0, 1440, 7):
        at = day + dt.timedelta(minutes=minute)
        assert before.is_open(at) == after.is_open(at)


def test_a_whole_day_stays_one() -> None:
    assert normal_hours("0:00-24:00") == "00:00-24:00"
    assert normal_hours("") == ""


def test_every_kind_of_setting_has_a_control_and_every_default_words() -> None:
    for view in settings_view(Settings()).settings:
        assert view.kind in CONTROLS
        assert default_text(view, "on", "off") or view.name in {"node_name"}
    assert {s.kind.name for s in SCHEMA.values()} == set(CONTROLS)
