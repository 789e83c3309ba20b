"""How many drafts: the most tokens per second, and never a loss worth speaking of."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine.drafting.base import Offer
from fleetapp.engine.drafting.controller import Choice, Controller, Spent, usual
from tests.support.speculation import CPU, FLAT, STEEP, World, between


def taught(
    seconds: Callable[[int], float],
    *,
    chances: dict[str, tuple[int, ...]] | None = None,
    sequences: int = 1,
    hop: float = 0.0,
    stages: int = 1,
) -> Controller:
    """A controller that has measured every width up to 64 and verified many drafts.

    Args:
        seconds: of one stage by width.
        chances: grade to numbers accepted of 10 drafts, one verification each.
        sequences: of the steps.
        hop: seconds of all hops.
        stages: each takes ``seconds``.
    """
    controller = Controller()
    for step, tokens in enumerate(list(range(sequences, 65)) * 6):
        controller.launched(step, tokens, sequences, 1, plain=tokens == sequences)
        busy = seconds(tokens)
        controller.answered(step, Spent(stages * busy + hop, busy, busy if stages > 1 else 0.0))
    for grade, accepted in (chances or {}).items():
        for count in accepted * 40:
            controller.verified("somebody", grade, 10, count)
    return controller


def chosen(
    controller: Controller,
    *grades: str,
    most: int = 10,
    room: int = 200,
    sequential: bool = False,
    round_: float = 0.0,
) -> list[int]:
    """Drafts for one sequence per grade."""
    choices = controller.choose(
        tokens=len(grades),
        sequences=len(grades),
        answers=len(grades),
        offers=[
            (f"s{i}", [Offer(grade, most, sequential=sequential)]) for i, grade in enumerate(grades)
        ],
        room=room,
        seconds=lambda rounds: rounds * round_,
    )
    return [choice.count if choice else 0 for choice in choices]


GOOD, FAIR, BAD = (10,), (0, 1, 2, 10), (0, 0, 0, 0, 0, 0, 0, 0, 0, 1)


def test_where_drafts_are_right_and_width_is_cheap_all_are_taken() -> None:
    assert chosen(taught(between(FLAT), chances={"good": GOOD}), "good") == [10]


def test_where_drafts_are_wrong_none_are_taken() -> None:
    assert chosen(taught(between(CPU), chances={"bad": BAD}), "bad") == [0]


def test_where_width_costs_as_much_as_it_brings_none_are_taken() -> None:
    assert chosen(taught(lambda n: 0.01 * n, chances={"good": GOOD}), "good") == [0]


def test_slow_links_make_more_drafts_worth_while() -> None:
    counts = [
        chosen(taught(between(CPU), chances={"fair": FAIR}, hop=hop), "fair")[0]
        for hop in (0.0, 0.05, 0.5)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_slow_drafting_makes_fewer_worth_while() -> None:
    controller = taught(between(CPU), chances={"good": GOOD}, hop=0.05)
    counts = [
        chosen(controller, "good", sequential=True, round_=seconds)[0]
        for seconds in (0.0, 0.002, 0.02, 0.2)
    ]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (10, 0)


def test_the_room_goes_to_those_whose_drafts_are_best() -> None:
    controller = taught(between(FLAT), chances={"good": GOOD, "fair": FAIR}, sequences=2)
    assert chosen(controller, "fair", "good", room=10) == [0, 10]
    assert chosen(controller, "good", room=0) == [0]


def test_one_sequence_takes_the_better_of_its_offers() -> None:
    controller = taught(between(FLAT), chances={"good": GOOD, "fair": FAIR})
    (choice,) = controller.choose(
        tokens=1,
        sequences=1,
        answers=1,
        offers=[("a", [Offer("fair", 10), Offer("good", 6)])],
        room=99,
        seconds=lambda _: 0.0,
    )
    assert choice == Choice(1, 6)


def test_a_busy_pipeline_drafts_less_than_an_idle_one() -> None:
    """While other frames keep the stages busy, width costs their tokens, too."""

    def drafts(others: int) -> int:
        controller = taught(between(CPU), chances={"fair": FAIR}, stages=3, hop=0.03)
        for step in range(others):
            controller.launched(10_000 + step, 1, 1, 1.0, plain=True)
        return chosen(controller, "fair")[0]

    assert drafts(0) > drafts(6)


def test_nothing_is_drafted_before_a_step_without_drafts_was_measured() -> None:
    controller = Controller()
    assert chosen(controller, "good") == [0]
    controller.launched(1, 64, 1, 1, plain=True)
    controller.answered(1, Spent(0.1, 0.1, 0.0))
    assert chosen(controller, "good") == [0]


def test_other_stages_are_measured_anew() -> None:
    controller = taught(between(FLAT), chances={"good": GOOD})
    controller.relinked()
    assert chosen(controller, "good") == [0]


def test_a_frame_that_is_lost_teaches_nothing() -> None:
    controller = taught(between(FLAT), chances={"good": GOOD})
    before = controller.latency(5, 1)
    controller.launched(9999, 5, 1, 1, plain=False)
    controller.answered(9999, None)
    controller.answered(4711, Spent(9.0, 9.0, 9.0))
    assert controller.latency(5, 1) == before


def test_a_lasting_gain_is_checked_against_off_from_time_to_time() -> None:
    controller = taught(between(FLAT), chances={"good": GOOD})
    plain = 0
    for step in range(10_000, 10_600):
        (count,) = chosen(controller, "good")
        controller.launched(step, 1 + count, 1, 1, plain=count == 0)
        controller.answered(step, Spent(between(FLAT)(1 + count), 0.01, 0.0))
        plain += count == 0
    assert 1 <= plain <= 600 / 100


def test_an_idle_offer_costs_little_to_answer() -> None:
    """Two loops over what is offered, none over what was said."""
    controller = taught(between(CPU), chances={"fair": FAIR}, sequences=32)
    assert sum(chosen(controller, *["fair"] * 32)) <= 200


GRID = list(
    itertools.product(
        (CPU, FLAT, STEEP), (0.0, 0.2, 0.5, 0.7, 0.9, 1.0), (0.0, 0.02, 0.1), (0.0, 0.004)
    )
)


@pytest.mark.parametrize(("table", "chance", "hop", "draft"), GRID)
def test_it_is_never_slower_than_off_and_close_to_the_best_fixed_number(
    table: tuple[float, ...], chance: float, hop: float, draft: float
) -> None:
    """Measured with noise, learning and probing included; nothing is known at the beginning."""
    world = World((chance,), between(table), hop, draft)
    controller = Controller()
    off = world.rate(0)
    assert world.expected(world.run(128, controller, seed=1)[1]) > 0.97 * off
    assert world.expected(world.run(128, controller, seed=2)[1]) > 0.97 * off
    steady = world.expected(world.run(1000, controller, seed=3)[1])
    assert steady > 0.97 * off
    assert steady > 0.96 * world.best()


@settings(max_examples=25, deadline=None)
@given(
    chances=st.lists(st.floats(0, 1), min_size=1, max_size=5).map(tuple),
    start=st.floats(0.001, 0.1),
    slope=st.floats(0.0, 0.02),
    hop=st.floats(0, 0.2),
    draft=st.sampled_from([0.0, 0.001, 0.01]),
    offered=st.sampled_from([0.2, 1.0]),
    noise=st.floats(0, 0.1),
    seed=st.integers(0, 1000),
)
def test_no_world_makes_it_slower_than_off_by_more_than_three_percent(
    chances: tuple[float, ...],
    start: float,
    slope: float,
    hop: float,
    draft: float,
    offered: float,
    noise: float,
    seed: int,
) -> None:
    world = World(chances, lambda n: start + slope * n, hop, draft, noise=noise, offered=offered)
    controller = Controller()
    world.run(128, controller, seed)
    assert world.expected(world.run(600, controller, seed + 1)[1]) > 0.97 * world.rate(0)


def test_drafts_that_turn_bad_are_given_up_and_found_again_when_they_turn_good() -> None:
    controller = Controller()
    good = World((0.9,), between(CPU))
    bad = World((0.05,), between(CPU))
    good.run(300, controller, seed=1)
    assert bad.expected(bad.run(600, controller, seed=2)[1]) > 0.97 * bad.rate(0)
    assert good.expected(good.run(600, controller, seed=3)[1]) > 0.85 * good.best()


def test_a_machine_that_becomes_slower_does_not_confuse_it() -> None:
    controller = Controller()
    fast, slow = between(CPU), lambda n: 2.5 * between(CPU)(n)
    World((0.05,), fast).run(300, controller, seed=1)
    world = World((0.05,), slow)
    assert world.expected(world.run(400, controller, seed=2)[1]) > 0.97 * world.rate(0)
    world = World((0.9,), slow)
    assert world.expected(world.run(600, controller, seed=3)[1]) > 0.85 * world.best()


def test_frames_with_drafts_have_few_widths() -> None:
    widths = [w for w in range(1, 257) if usual(w)]
    assert len(widths) <= 48
    assert all(b <= a * 4 / 3 for a, b in itertools.pairwise(widths[11:]))
