"""From measured stages to what the planner asks."""

from __future__ import annotations

from typing import Any

import pytest

from fleetapp.fleet.control import StageProfile
from fleetapp.hub.planner.inputs import Model
from fleetapp.hub.profiles import KEPT_EACH, KEPT_SECONDS, ProfileBook
from fleetapp.types import LayerRange

MODEL = Model("m", (1000,) * 10, 500, 2000, 4, 64)
LAYER, HEAD = 0.001, 0.004
DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


def stage(start: int, stop: int, *, layer: float = LAYER, **more: Any) -> StageProfile:
    """Measured: each further sequence adds a tenth to layers, a half to the head."""
    last = stop == 10
    count = stop - start

    def took(width: int, rows: int) -> float:
        head = HEAD * (1 + 0.5 * (rows - 1)) if last else 0.0
        return count * layer * (1 + 0.1 * (width - 1)) + head

    fields = {
        "model": "digest",
        "layers": LayerRange(start, stop),
        "first": start == 0,
        "last": last,
        "device": "CPU",
        "runtime": "r1",
        "precision": "fast",
        "decode": tuple((w, took(w, 1)) for w in (1, 2, 4)),
        "chosen": tuple((w, took(w, w)) for w in (1, 2, 4)),
        "prefill": tuple((n, took(n, 1)) for n in (32, 128)),
        **more,
    }
    return StageProfile(**fields)  # type: ignore[arg-type]


def book(*stages: StageProfile, clock: Clock | None = None) -> ProfileBook:
    made = ProfileBook(clock or Clock())
    made.add("node", stages)
    return made


def asked(made: ProfileBook, **other: str) -> Any:
    key = {"node": "node", "device": "CPU", "digest": "digest", "precision": "fast", **other}
    return made.profile(**key, model=MODEL)  # type: ignore[arg-type]


def test_stages_with_and_without_the_head_give_both_costs_exactly() -> None:
    found = asked(book(stage(0, 6), stage(6, 10)))
    assert found.measured
    assert dict(found.decode) == pytest.approx({1: LAYER, 2: LAYER * 1.1, 4: LAYER * 1.3})
    assert dict(found.output) == pytest.approx({1: HEAD, 2: HEAD * 1.5, 4: HEAD * 2.5})
    assert dict(found.prefill)[32] == pytest.approx(LAYER * 4.1)


def test_a_whole_model_is_told_apart_by_bytes_and_its_sum_stays_right() -> None:
    found = asked(book(stage(0, 10)))
    for width in (1, 2, 4):
        whole = 10 * dict(found.decode)[width] + dict(found.output)[width]
        assert whole == pytest.approx(dict(stage(0, 10).chosen)[width])
    assert 0 < dict(found.output)[1] < HEAD


def test_without_a_last_stage_the_head_is_estimated_from_its_bytes() -> None:
    found = asked(book(stage(0, 6)))
    assert dict(found.output)[1] == pytest.approx(LAYER, rel=0.01)  # a start counts most here


def test_a_slow_device_measured_at_one_size_is_not_taken_to_batch_for_nothing() -> None:
    slow = stage(0, 6, decode=((1, 6.0),), chosen=((1, 6.0),), prefill=((32, 60.0),))
    found = asked(book(slow))
    assert found.decode == ((1.0, 1.0), (2.0, pytest.approx(1.08)))
    assert found.prefill == ((32.0, 10.0), (64.0, 20.0))


def test_several_measurements_are_merged_by_the_median() -> None:
    clock = Clock()
    made = book(clock=clock)
    for layer in (0.001, 0.0011, 0.009):
        clock.now += 10
        made.add("node", [stage(0, 6, layer=layer)])
    assert dict(asked(made).decode)[1] == pytest.approx(0.0011)


def test_the_newest_few_count() -> None:
    clock = Clock()
    made = book(clock=clock)
    for _ in range(KEPT_EACH + 3):
        clock.now += 10
        made.add("node", [stage(0, 6, layer=0.01)])
    for _ in range(KEPT_EACH):
        clock.now += 10
        made.add("node", [stage(0, 6)])
    assert made.known() == KEPT_EACH
    assert dict(asked(made).decode)[1] == pytest.approx(LAYER)


def test_the_same_report_again_counts_once() -> None:
    clock = Clock()
    made = book(stage(0, 6, age=100.0), clock=clock)
    clock.now += 50
    assert not made.add("node", [stage(0, 6, age=150.0)])
    assert made.known() == 1


def test_old_measurements_are_forgotten() -> None:
    clock = Clock()
    made = book(stage(0, 6), clock=clock)
    clock.now += KEPT_SECONDS + 1
    assert asked(made) is None
    assert not made.add("node", [stage(0, 6, age=8 * DAY)])


def test_another_runtime_replaces_what_was_measured_with_the_old_one() -> None:
    clock = Clock()
    made = book(stage(0, 6, layer=0.01), clock=clock)
    clock.now += 10
    made.add("node", [stage(0, 6, runtime="r2")])
    assert dict(asked(made).decode)[1] == pytest.approx(LAYER)


@pytest.mark.parametrize("other", ["node", "device", "digest", "precision"])
def test_what_was_measured_elsewhere_says_nothing(other: str) -> None:
    assert asked(book(stage(0, 6)), **{other: "else"}) is None


@pytest.mark.parametrize(
    "nonsense",
    [
        {"decode": ()},
        {"decode": ((1, 0.0),)},
        {"chosen": ((0, 1.0),)},
        {"prefill": ((1, float("nan")),)},
        {"decode": ((1, -1.0),)},
        {"age": -5.0},
        {"layers": LayerRange(4, 4)},
        {"layers": LayerRange(5, 99)},
    ],
)
def test_nonsense_from_a_member_is_ignored(nonsense: dict[str, Any]) -> None:
    assert asked(book(stage(0, 6, **nonsense))) is None
