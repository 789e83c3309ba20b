"""What members report of their links."""

from __future__ import annotations

import pytest

from fleetapp.fleet.control import HopMeasurement
from fleetapp.hub.links import KEPT_SECONDS, LinkBook
from fleetapp.hub.planner.costs import DEFAULT_BANDWIDTH, DEFAULT_RTT
from fleetapp.types import DeviceId

A, B, C = DeviceId("a"), DeviceId("b"), DeviceId("c")


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


def found(book: LinkBook) -> dict[tuple[str, str], tuple[float, float]]:
    return {(k.source, k.target): (k.rtt, k.bandwidth) for k in book.links([A, B, C])}


def test_round_trips_hold_both_ways_and_rates_one() -> None:
    book = LinkBook(Clock())
    book.add(A, [HopMeasurement(B, 0.02, 5e6)])
    book.add(B, [HopMeasurement(A, 0.0, 1e6)])
    assert found(book) == {(A, B): (0.02, 1e6), (B, A): (0.02, 5e6)}


def test_a_rate_of_one_direction_stands_for_the_other_until_that_is_known() -> None:
    book = LinkBook(Clock())
    book.add(A, [HopMeasurement(B, 0.0, 5e6)])
    assert found(book) == {(A, B): (DEFAULT_RTT, 5e6), (B, A): (DEFAULT_RTT, 5e6)}


def test_a_round_trip_alone_leaves_the_rate_to_the_assumption() -> None:
    book = LinkBook(Clock())
    book.add(C, [HopMeasurement(A, 0.05)])
    assert found(book)[(A, C)] == (0.05, DEFAULT_BANDWIDTH)


def test_reports_are_averaged_and_old_ones_forgotten() -> None:
    clock = Clock()
    book = LinkBook(clock)
    book.add(A, [HopMeasurement(B, 0.02)])
    book.add(A, [HopMeasurement(B, 0.04)])
    assert found(book)[(A, B)][0] == pytest.approx(0.03)
    clock.now += KEPT_SECONDS + 1
    assert found(book) == {}
    book.add(A, [HopMeasurement(B, 0.1)])
    assert found(book)[(A, B)][0] == pytest.approx(0.1)


@pytest.mark.parametrize("rtt", [-1.0, 1e13, float("nan")])
def test_nonsense_is_ignored(rtt: float) -> None:
    book = LinkBook(Clock())
    book.add(A, [HopMeasurement(B, rtt, rtt), HopMeasurement(A, 0.01, 1e6)])
    assert found(book) == {}
