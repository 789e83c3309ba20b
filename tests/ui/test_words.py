"""States, phases, sizes and times are said in words that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import AgentNotRunning
from tests.support.fake_local_api import GB, assignment, joined_status, lonely_status
from ui import words
from ui.view import AgentView


@pytest.mark.parametrize(
    ("view", "icon", "headline"),
    [
        (AgentView(), "connecting", "Starting"),
        (AgentView("connected", lonely_status()), "not_joined", "Not in a fleet"),
        (AgentView("connected", joined_status(state="connecting")), "connecting", "Connecting"),
        (AgentView("connected", joined_status()), "ready", "Ready"),
        (
            AgentView("connected", joined_status(state="contributing")),
            "contributing",
            "Contributing",
        ),
        (
            AgentView("connected", joined_status(assignments=(assignment(phase="ready"),))),
            "ready",
            "Standing by",
        ),
        (
            AgentView("connected", joined_status(state="connecting", removed=True)),
            "attention",
            "Removed from the fleet",
        ),
        (AgentView("connected", joined_status(state="attention")), "attention", "Needs attention"),
        (AgentView("stopped", problem=AgentNotRunning("Gone.")), "stopped", "Agent not running"),
        (AgentView("refused", problem=AgentNotRunning("Odd.")), "attention", "Needs attention"),
    ],
)
def test_every_state_has_its_icon_and_words(view: AgentView, icon: str, headline: str) -> None:
    assert (view.icon, words.headline(view)) == (icon, headline)


def test_preparing_says_how_far_over_all_shards() -> None:
    shards = (
        assignment(done=GB // 2, total=GB),
        assignment(stage=2, done=0, total=GB),
        assignment(stage=0, phase="compiling", done=0, total=0),
    )
    view = AgentView("connected", joined_status(state="preparing", assignments=shards))
    assert words.headline(view) == "Downloading 25%"


def test_preparing_without_a_known_size_claims_no_number() -> None:
    shards = (assignment(phase="compiling", done=0, total=0),)
    view = AgentView("connected", joined_status(state="preparing", assignments=shards))
    assert words.headline(view) == "Compiling"


@given(st.text(max_size=400), st.integers(20, 200))
def test_a_status_line_is_one_line_and_fits(reason: str, length: int) -> None:
    line = words.status_line(AgentView("connected", joined_status(reason=reason)), length)
    assert len(line) <= length
    assert "\n" not in line
    assert line.startswith("Ready")


def test_a_problem_is_said_with_its_remedy() -> None:
    view = AgentView("stopped", problem=AgentNotRunning("It ended.", remedy="Start it."))
    assert words.status_line(view) == "Agent not running · It ended. Start it."


def test_progress_names_phase_bytes_and_time() -> None:
    line = words.progress_line(assignment(from_cache=2_000_000), 65)
    assert line == "Downloading · 410.1 MiB of 953.7 MiB · 1.9 MiB already here · about 60 s left"


def test_a_finished_shard_shows_no_progress() -> None:
    assert words.progress_line(assignment(phase="linked"), None) == "In use"


def test_a_failed_shard_says_why() -> None:
    failed = assignment(phase="failed", message="The disk is full.")
    assert words.progress_line(failed, None) == "Failed · The disk is full."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3, "a few seconds left"),
        (33, "about 30 s left"),
        (100, "about 2 min left"),
        (7200, "about 2 h left"),
    ],
)
def test_time_left_is_rounded(seconds: float, said: str) -> None:
    assert words.time_left(seconds) == said


def test_time_left_follows_a_steady_rate() -> None:
    pace = words.Pace()
    told = [pace.seconds_left(assignment(done=s * GB // 100), float(s)) for s in range(51)]
    assert told[:2] == [None, None]
    assert told[50] == pytest.approx(50, rel=0.01)


def test_time_left_starts_over_with_a_new_phase_and_is_silent_when_nothing_moves() -> None:
    pace = words.Pace()
    for second in range(10):
        pace.seconds_left(assignment(done=second * GB // 100), float(second))
    assert pace.seconds_left(assignment(phase="verifying", done=0), 10.0) is None
    for second in range(11, 20):
        assert pace.seconds_left(assignment(phase="verifying", done=0), float(second)) is None
