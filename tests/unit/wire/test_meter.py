"""Estimates of links from what happens on them anyway."""

from __future__ import annotations

import pytest

from fleetapp.wire.meter import KEPT, OLD_SECONDS, Meter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_seen_is_nothing_known() -> None:
    assert Meter().estimates() == ()


def test_round_trips_are_judged_by_the_lower_ones() -> None:
    meter = Meter(Clock())
    for seconds in (0.010, 0.011, 0.0105, 0.0102, 0.3, 0.9, 0.2, 0.5):
        meter.round_trip("b", seconds)
    (found,) = meter.estimates()
    assert found.peer == "b"
    assert found.rtt == pytest.approx(0.0102)
    assert found.bandwidth == 0


def test_rates_are_judged_by_their_median() -> None:
    meter = Meter(Clock())
    for rate in (1e6, 1.1e6, 0.9e6, 50e6, 0.1e6):
        meter.transfer("a", 100_000, 100_000 / rate)
    assert meter.estimates()[0].bandwidth == pytest.approx(1e6)


def test_old_samples_give_way_to_new_ones_but_are_better_than_none() -> None:
    clock = Clock()
    meter = Meter(clock)
    meter.round_trip("b", 0.5)
    clock.now += OLD_SECONDS + 1
    assert meter.estimates()[0].rtt == 0.5
    meter.round_trip("b", 0.01)
    assert meter.estimates()[0].rtt == 0.01


def test_only_so_many_are_kept() -> None:
    meter = Meter(Clock())
    meter.round_trip("b", 0.001)
    for _ in range(KEPT):
        meter.round_trip("b", 0.5)
    assert meter.estimates()[0].rtt == 0.5


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_times_that_cannot_be_are_ignored(seconds: float) -> None:
    meter = Meter(Clock())
    meter.round_trip("b", seconds)
    meter.transfer("b", 1000, seconds)
    assert all(e.rtt == 0 and e.bandwidth == 0 for e in meter.estimates())


def test_each_neighbour_has_its_own() -> None:
    meter = Meter(Clock())
    meter.round_trip("next", 0.01)
    meter.transfer("previous", 1_000_000, 0.5)
    found = {e.peer: e for e in meter.estimates()}
    assert found["next"].rtt == 0.01
    assert found["previous"].bandwidth == 2e6
