"""Cables are pulled, slowed down and moved while three PCs answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetapp.bench.link import Shape
from tests.netlab.lab import Lab, until
from tests.netlab.promise import begin, kept, whole

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]

TOKENS = 400
"""Of an answer that is disturbed: long enough to be still running when the loss is noticed."""
GONE_WITHIN = 6.0
LIVE_WITHIN = 120.0
"""Generous: three PCs share this machine with whatever else runs on it (s)."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, library: Path) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab"), 3, {"FLEETAPP_MODELS_DIR": str(library)}) as lab:
        lab.start()
        lab.form()
        lab.serve(deadline=LIVE_WITHIN)
        yield lab


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> list[int]:
    lab.hosts[0].until_live(3, LIVE_WITHIN)  # the test before may have left it in the middle
    return whole(lab.hosts[0], TOKENS)


@pytest.fixture(autouse=True)
def healed(lab: Lab) -> Iterator[None]:
    """Every test begins with a fleet of three and leaves one."""
    lab.hosts[0].until_live(3, LIVE_WITHIN)
    yield
    lab.heal()


def slow(lab: Lab) -> None:
    """So slow that an answer is still running whatever the test does meanwhile."""
    lab.shape(Shape(delay=0.02))


def test_a_frozen_agent_is_not_evicted_after_five_seconds(lab: Lab) -> None:
    first, second, _ = lab.hosts
    epoch = first.chain()["epoch"]
    second.freeze()
    try:
        seen = set()
        end = time.monotonic() + 5.0
        while time.monotonic() < end:
            seen.add(first.state_of(second))
            time.sleep(0.1)
    finally:
        second.thaw()
    until(lambda: first.state_of(second) == "online", 3.0, "it is online again")
    assert "suspected" in seen, "it was noticed"
    assert "offline" not in seen, "and nobody was evicted"
    assert first.chain()["epoch"] == epoch, "the chain was not made anew"


def test_the_hub_sees_within_six_seconds_that_a_cable_was_pulled(lab: Lab) -> None:
    first, _, third = lab.hosts
    lab.cut(third)
    took = until(lambda: first.state_of(third) == "offline", 2 * GONE_WITHIN, "it is offline")
    assert took < GONE_WITHIN
    lab.heal()
    until(lambda: first.state_of(third) == "online", 20.0, "it is back")


def test_a_cable_is_pulled_during_an_answer_and_plugged_in_again(
    lab: Lab, undisturbed: list[int]
) -> None:
    first, second, _ = lab.hosts
    slow(lab)
    answer = begin(first, TOKENS)
    lab.cut(second)
    kept(answer, undisturbed)
    lab.heal()
    first.until_live(3, LIVE_WITHIN)
    assert whole(first, 32) == undisturbed[:32]


def test_two_neighbours_do_not_reach_each_other_but_both_the_coordinator(
    lab: Lab, undisturbed: list[int]
) -> None:
    first, second, third = lab.hosts
    slow(lab)
    answer = begin(first, TOKENS)
    lab.partition(second, third)
    kept(answer, undisturbed)
    assert {first.state_of(second), first.state_of(third)} == {"online"}
    lab.heal()
    first.until_live(3, LIVE_WITHIN)
    assert whole(first, 32) == undisturbed[:32]


@pytest.mark.parametrize(
    ("shape", "loss"),
    [
        (Shape(delay=0.025), 0.0),
        (Shape(delay=0.005, rate=20e6, jitter=0.01), 0.0),
        (Shape(delay=0.002), 0.02),
    ],
    ids=["50 ms away", "20 Mbit/s with jitter", "2% lost"],
)
def test_a_poor_network_changes_no_token(
    lab: Lab, undisturbed: list[int], shape: Shape, loss: float
) -> None:
    first = lab.hosts[0]
    epoch = first.chain()["epoch"]
    lab.shape(shape, loss=loss)
    assert whole(first, 48) == undisturbed[:48]
    assert first.chain()["epoch"] == epoch, "the chain held"


def test_the_coordinator_gets_another_address(lab: Lab, undisturbed: list[int]) -> None:
    first, *others = lab.hosts
    first.move(31)
    for host in others:
        host.until(lambda h: first.address in h.get("status")["hub"], LIVE_WITHIN)
    until(
        lambda: first.connected_from() == {first.address},
        LIVE_WITHIN,
        "its ring and its members have its new address only",
    )
    first.until_live(3, LIVE_WITHIN)
    assert whole(first, 32) == undisturbed[:32]


def test_a_pc_gets_another_address(lab: Lab, undisturbed: list[int]) -> None:
    first, _, third = lab.hosts
    third.move(33)

    until(
        lambda: third.connected_from() == {third.address},
        LIVE_WITHIN,
        "it is connected from its new address only",
    )
    first.until_live(3, LIVE_WITHIN)
    assert whole(first, 32) == undisturbed[:32]
