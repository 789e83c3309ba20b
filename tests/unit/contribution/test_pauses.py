import datetime as dt
from pathlib import Path

import pytest

from fleetapp.contribution.caps import disk_for_fleet, memory_for_fleet
from fleetapp.contribution.pauses import PauseFile, pause_for
from fleetapp.contribution.snapshot import Pause
from fleetapp.errors import BadRequest
from fleetapp.platform.fake import FakePlatform
from fleetapp.settings import Settings

ZONE = dt.timezone(dt.timedelta(hours=2))
EVENING = dt.datetime(2026, 3, 10, 23, 40, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("length", "end"),
    [
        ("30m", dt.datetime(2026, 3, 11, 0, 10, tzinfo=ZONE)),
        ("1h", dt.datetime(2026, 3, 11, 0, 40, tzinfo=ZONE)),
        ("4h", dt.datetime(2026, 3, 11, 3, 40, tzinfo=ZONE)),
        ("tomorrow", dt.datetime(2026, 3, 11, 6, 0, tzinfo=ZONE)),
    ],
)
def test_a_pause_ends_when_it_says(length: str, end: dt.datetime) -> None:
    assert pause_for(length, EVENING) == Pause(end.timestamp())


def test_one_that_ends_with_a_word_and_one_that_waits() -> None:
    assert pause_for("forever", EVENING, finish_first=True) == Pause(None, finish_first=True)


def test_a_length_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadRequest) as refused:
        pause_for("2 weeks", EVENING)
    assert "30m, 1h, 4h, tomorrow, forever" in refused.value.remedy


def test_a_pause_outlives_the_agent_but_not_its_end(tmp_path: Path) -> None:
    file = tmp_path / "home" / "pause.json"
    pause = pause_for("1h", EVENING, finish_first=True)
    PauseFile(file, FakePlatform()).save(pause)
    again = PauseFile(file, FakePlatform())
    assert again.load(EVENING.timestamp() + 3599) == pause
    assert again.load(EVENING.timestamp() + 3600) is None
    again.save(None)
    again.save(None)
    assert again.load(EVENING.timestamp()) is None


def test_a_broken_file_does_not_make_a_pause_vanish(tmp_path: Path) -> None:
    file = tmp_path / "pause.json"
    file.write_text('{"until": "soon')
    assert PauseFile(file, FakePlatform()).load(0.0) == Pause()


def test_the_fleet_is_told_of_less_than_there_is() -> None:
    gib = 1 << 30
    reserve = Settings(memory_reserve_mb=1024, disk_reserve_mb=0)
    assert memory_for_fleet(reserve, 4 * gib, 0) == 3 * gib
    assert memory_for_fleet(reserve, gib // 2, 0) == 0
    limited = Settings(memory_reserve_mb=0, memory_limit_mb=2048, disk_limit_mb=1024)
    assert memory_for_fleet(limited, 8 * gib, 0) == 2 * gib
    assert memory_for_fleet(limited, 7 * gib, gib) == gib
    assert memory_for_fleet(limited, 5 * gib, 3 * gib) == 0
    assert disk_for_fleet(limited, 100 * gib, gib // 4) == gib - gib // 4
