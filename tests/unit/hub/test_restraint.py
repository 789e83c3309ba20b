"""How often a fleet is divided anew without need."""

from __future__ import annotations

from fleetapp.hub.restraint import SETTLE_MOST, Restraint
from fleetapp.types import DeviceId

TWO = frozenset({DeviceId("a"), DeviceId("b")})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_waits_twice_as_long_each_time() -> None:
    clock = Clock()
    restraint = Restraint(10.0, clock)
    assert not restraint.holds(TWO), "nothing has been dealt yet"
    for pause in (10.0, 20.0, 40.0):
        restraint.changed(TWO)
        clock.now += pause - 0.1
        assert restraint.holds(TWO)
        clock.now += 0.2
        assert not restraint.holds(TWO)


def test_it_never_waits_longer_than_the_most() -> None:
    clock = Clock()
    restraint = Restraint(10.0, clock)
    for _ in range(20):
        restraint.changed(TWO)
    clock.now += SETTLE_MOST
    assert not restraint.holds(TWO)


def test_other_pcs_end_the_wait_and_the_restraint() -> None:
    clock = Clock()
    restraint = Restraint(10.0, clock)
    restraint.changed(TWO)
    restraint.changed(TWO)
    three = TWO | {DeviceId("c")}
    assert not restraint.holds(three)
    restraint.changed(three)
    clock.now += 10.1
    assert not restraint.holds(three)
