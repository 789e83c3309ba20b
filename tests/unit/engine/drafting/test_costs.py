from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.engine.drafting.acceptance import Acceptance, Tally
from fleetapp.engine.drafting.costs import Curve, StepCost, width_class


def test_what_was_measured_is_what_is_expected() -> None:
    curve = Curve()
    for _ in range(40):
        for tokens, seconds in ((1, 0.010), (4, 0.013), (16, 0.030)):
            curve.observe(tokens, seconds)
    assert curve.estimate(4) == pytest.approx(0.013, rel=0.1)
    assert curve.estimate(10) == pytest.approx(0.0215, rel=0.1)
    assert curve.estimate(20) > curve.estimate(16)
    assert Curve().estimate(3) == 0.0


def test_one_width_alone_gives_a_guess_for_the_others() -> None:
    curve = Curve()
    curve.observe(4, 0.014)
    assert 0 < curve.estimate(1) < 0.014 < curve.estimate(8)


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(1e-6, 10)), min_size=1, max_size=60))
def test_a_wider_step_is_never_expected_to_be_faster(seen: list[tuple[int, float]]) -> None:
    curve = Curve()
    for tokens, seconds in seen:
        curve.observe(tokens, seconds)
    estimates = [curve.estimate(n) for n in range(1, 330)]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(estimates))
    assert all(e > 0 for e in estimates)


def test_a_slower_machine_is_noticed_at_every_width_at_once() -> None:
    curve = Curve()
    for _ in range(30):
        for tokens in (1, 5, 9):
            curve.observe(tokens, 0.01 + 0.001 * tokens)
    before = curve.estimate(1)
    for _ in range(30):
        curve.observe(5, 2 * 0.015)
    assert curve.estimate(1) > 1.5 * before


def test_one_hiccup_changes_little() -> None:
    curve = Curve()
    draw = random.Random(1)
    for _ in range(60):
        curve.observe(1, 0.01 * draw.uniform(0.95, 1.05))
    before = curve.estimate(1)
    curve.observe(1, 3.0)
    assert curve.estimate(1) < 1.25 * before


@given(st.integers(1, 4096))
def test_widths_of_one_class_are_close(tokens: int) -> None:
    first = width_class(tokens)
    assert first <= tokens <= max(first * 1.125, first)


def test_more_sequences_are_learnt_apart_and_begin_with_what_fewer_take() -> None:
    cost = StepCost()
    for _ in range(20):
        cost.observe(4, 1, 0.01)
    assert cost.estimate(4, 4) == cost.estimate(4, 1)
    for _ in range(20):
        cost.observe(4, 4, 0.02)
    assert cost.estimate(4, 4) == pytest.approx(0.02, rel=0.1)
    assert cost.estimate(4, 1) == pytest.approx(0.01, rel=0.1)
    assert cost.measured(4, 4) > 10


def test_acceptance_is_learnt_by_position_and_the_past_fades() -> None:
    acceptance = Acceptance(belief=0.5)
    assert acceptance.rate(3) == pytest.approx(0.5)
    for _ in range(200):
        acceptance.observe(4, 2)
    assert acceptance.rate(0) > 0.9
    assert acceptance.rate(1) > 0.9
    assert acceptance.rate(2) < 0.25
    assert acceptance.rate(3) < 0.25, "never reached: like the one before"
    for _ in range(200):
        acceptance.observe(4, 0)
    assert acceptance.rate(0) < 0.25


def test_a_sequence_begins_with_what_the_others_taught_and_returns_to_it() -> None:
    general = Acceptance(belief=0.5)
    for _ in range(100):
        Acceptance(general).observe(3, 3)
    own = Acceptance(general)
    assert own.rate(0) > 0.85
    for _ in range(30):
        own.observe(3, 0)
    low = own.rate(0)
    for _ in range(100):
        own.fade()
    assert own.rate(0) > low


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 10)), max_size=30))
def test_a_later_draft_never_adds_more(seen: list[tuple[int, int]]) -> None:
    acceptance = Acceptance()
    for drafted, accepted in seen:
        acceptance.observe(drafted, min(drafted, accepted))
    gains = acceptance.gains(10)
    assert gains == sorted(gains, reverse=True)
    assert all(0 <= g <= 1 for g in gains)


def test_drafts_are_counted_by_position() -> None:
    tally = Tally()
    tally.observe(3, 1)
    tally.observe(1, 1)
    assert (tally.drafted, tally.accepted) == ([2, 1, 1], [2, 0, 0])
