"""The parts of ``bench planner`` that need no model."""

from __future__ import annotations

import pytest

from fleetapp.bench import emulated, planner
from fleetapp.bench.runners import Answer
from fleetapp.engine.pipe import Delta, Measured, Point
from fleetapp.errors import RunnerFailed
from fleetapp.hub.planner.predict import Cut
from fleetapp.types import LayerRange


def answer(began: float, gap: float, tokens: int) -> Answer:
    made = Answer(asked=0.0)
    made.deltas = [Delta("r", "x", (1,)) for _ in range(tokens)]
    made.times = [began + gap * i for i in range(tokens)]
    return made


def test_small_fleets_are_compared_with_everything_there_is() -> None:
    assert planner.compare(8) == 8


def test_the_rate_is_that_of_the_time_in_which_everybody_gets_tokens() -> None:
    slow, quick = answer(5.0, 0.1, 50), answer(0.0, 0.1, 80)
    assert emulated.rate_between([slow, quick]) == pytest.approx(20, rel=0.1)


def test_steps_that_others_slowed_down_do_not_count_as_the_devices_own() -> None:
    hindered = answer(0.0, 0.1, 40)
    for number in range(20, 40):
        hindered.times[number] += 0.4 * (number - 19)
    assert emulated.undisturbed_rate([hindered, answer(0.0, 0.1, 60)]) == pytest.approx(20)
    assert emulated.rate_between([hindered, answer(0.0, 0.1, 60)]) < 17


def test_answers_that_do_not_overlap_give_no_rate() -> None:
    with pytest.raises(RunnerFailed):
        emulated.rate_between([answer(0, 0.1, 10), answer(5, 0.1, 10)])


def test_users_are_dealt_in_turn() -> None:
    a, b = Cut((0,), (0, 3)), Cut((1,), (0, 3))
    assert emulated._shared([a, b], 5) == [(a, 3), (b, 2)]
    assert emulated._shared([a, b], 1) == [(a, 1)]


def test_links_are_told_in_bytes_and_round_trips() -> None:
    there, back = emulated.links_of(emulated.ENVIRONMENTS[-1])
    assert (there.source, there.target) == ("pc0", "pc1")
    assert there.rtt == pytest.approx(0.020)
    assert (there.bandwidth, back.bandwidth) == (125e6 / 8, 20e6 / 8)


def test_what_a_runner_says_is_what_a_member_would_report() -> None:
    points = (Point(1, 0.5), Point(2, 0.6))
    found = Measured(points, points, points, complete=True, seconds=1.0)
    profile = emulated.stage_profile(
        found, model="d", layers=LayerRange(3, 6), of=6, device="CPU", runtime="r", precision="fast"
    )
    assert (profile.first, profile.last) == (False, True)
    assert profile.decode == ((1, 0.5), (2, 0.6))


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def busy(interval: float, percpu: bool) -> list[float]:
        looks.append(interval)
        return [90.0, 5.0]

    monkeypatch.setattr(emulated.psutil, "cpu_percent", busy)
    patience = emulated.Patience(1.0)
    patience.wait([1])
    assert len(looks) == 1, "that core is idle"
    patience.wait([0, 1])
    patience.wait([0, 1])
    assert len(looks) == 5
