"""Penalties, log probabilities and the verification of drafts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine.history import Bag
from fleetapp.engine.sampling import Choice, Context, log_probabilities, sample, verify
from fleetapp.errors import StaleFrame
from fleetapp.types import SamplingParams

V = 12
rows = st.lists(
    st.lists(st.integers(-40, 40).map(lambda i: i / 8), min_size=V, max_size=V),
    min_size=6,
    max_size=6,
).map(lambda r: np.array(r, np.float32))
tokens = st.lists(st.integers(0, V - 1), max_size=20)
penalties = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.7, 1.3]),
    top_k=st.sampled_from([0, 5]),
    top_p=st.sampled_from([1.0, 0.9]),
    min_p=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 2**40),
    repetition_penalty=st.sampled_from([1.0, 0.8, 1.5]),
    presence_penalty=st.sampled_from([0.0, 0.9, -0.5]),
    frequency_penalty=st.sampled_from([0.0, 0.3, -0.2]),
    logit_bias=st.sampled_from([(), ((3, 2.5), (4, -100.0))]),
)


def by_definition(row, params: SamplingParams, prompt: list[int], answer: list[int]):
    """As the sources of sampling.py define them, one token at a time."""
    out = []
    for token, value in enumerate(row):
        x = np.float32(value) + np.float32(dict(params.logit_bias).get(token, 0))
        if token in prompt + answer:
            p = np.float32(params.repetition_penalty)
            x = x * p if x < 0 else x / p
        x -= np.float32(answer.count(token)) * np.float32(params.frequency_penalty)
        x -= np.float32(params.presence_penalty) * (token in answer)
        out.append(x)
    return np.array(out, np.float32)


@given(rows, tokens, tokens, penalties)
def test_penalties_are_those_of_the_definition(row, prompt, answer, params) -> None:
    row = row[0]
    before = row.copy()
    context = Context(params, tuple(prompt))
    for token in answer:
        context.push(token)
    expected = by_definition(row, params, prompt, answer)
    np.testing.assert_allclose(context.adjust(row), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(row, before)


@given(tokens, st.lists(st.integers(0, V - 1) | st.just(-1), max_size=60))
def test_a_bag_counts_what_came_and_went(start, operations) -> None:
    bag, held = Bag(start), list(start)
    for op in operations:
        if op >= 0:
            bag.add(op)
            held.append(op)
        elif held:
            bag.remove(held.pop())
    assert dict(zip(bag.ids.tolist(), bag.counts.tolist(), strict=True)) == {
        t: held.count(t) for t in set(held)
    }


def test_a_bag_of_many_distinct_tokens() -> None:
    bag = Bag(range(1000))
    assert sorted(bag.ids) == list(range(1000))
    for token in range(999):
        bag.remove(token)
    assert bag.ids.tolist() == [999]


@given(rows, tokens, penalties, st.integers(1, 5), st.data())
@settings(max_examples=200)
def test_drafts_change_no_token(logits, prompt, params, count, data) -> None:
    """Whatever the drafts, what comes out is what choosing one by one gives."""
    plain = Context(params, tuple(prompt))
    start = len(prompt)
    expected = [verify(logits[i : i + 1], (), plain, start + i)[0] for i in range(6)]
    right = [c.token for c in expected]
    drafts = [
        data.draw(st.sampled_from([right[i], (right[i] + 1) % V]), label=f"draft {i}")
        for i in range(count)
    ]
    context = Context(params, tuple(prompt))
    got = verify(logits[: count + 1], drafts, context, start)
    agreed = next((i for i in range(count) if drafts[i] != right[i]), count)
    assert list(got) == expected[: agreed + 1]
    # and what follows goes on as if there had been no drafts
    at = agreed + 1
    while at < 6:
        got += verify(logits[at : at + 1], (), context, start + at)
        at += 1
    assert list(got) == expected


@given(rows, tokens, penalties, st.integers(0, 5))
def test_what_is_computed_again_is_not_counted_twice(logits, prompt, params, cut) -> None:
    start = len(prompt)
    plain = Context(params, tuple(prompt))
    expected = [verify(logits[i : i + 1], (), plain, start + i)[0] for i in range(6)]
    answer = tuple(c.token for c in expected[:cut])
    again = Context(params, (*prompt, *answer), answered=cut)  # preempted and opened anew
    rest = [verify(logits[i : i + 1], (), again, start + i)[0] for i in range(cut, 6)]
    assert rest == expected[cut:]
    # rewound without being opened anew
    rest = [verify(logits[i : i + 1], (), plain, start + i)[0] for i in range(cut, 6)]
    assert rest == expected[cut:]


def test_a_past_that_is_not_known_is_refused() -> None:
    context = Context(SamplingParams(presence_penalty=1.0), (1, 2, 3))
    row = np.zeros((1, V), np.float32)
    with pytest.raises(StaleFrame, match="position 5"):
        verify(row, (), context, 5)
    with pytest.raises(StaleFrame, match="position 2"):
        verify(row, (), context, 2)
    verify(row, (), Context(SamplingParams()), 5)  # nothing depends on it


@pytest.mark.parametrize("draft", [0, 1, 4])
def test_a_verified_draft_follows_the_distribution(draft: int) -> None:
    """Tens of thousands of draws, with a good, a middling and a bad draft."""
    row = np.log(np.array([[0.45, 0.25, 0.15, 0.1, 0.04, 0.01]], np.float32))
    logits = np.repeat(row, 2, axis=0)
    n = 30_000
    counts, second, accepted = np.zeros(6), np.zeros(6), 0
    for seed in range(n):
        context = Context(SamplingParams(temperature=1.0, seed=seed))
        got = verify(logits, (draft,), context, 7)
        counts[got[0].token] += 1
        if len(got) == 2:
            accepted += 1
            second[got[1].token] += 1
    p = np.exp(row[0])
    assert ((counts - n * p) ** 2 / (n * p)).sum() < 25  # 5 degrees of freedom, p = 0.0001
    assert counts[draft] == accepted
    m = accepted
    assert ((second - m * p) ** 2 / (m * p)).sum() < 25


@given(rows, st.integers(0, V - 1), st.integers(0, V + 3))
def test_log_probabilities_are_those_of_the_row(logits, token: int, count: int) -> None:
    row = logits[0]
    exact = row.astype(np.float64) - np.log(np.exp(row.astype(np.float64)).sum())
    own, top = log_probabilities(row, token, count)
    assert own == pytest.approx(exact[token], abs=1e-5)
    assert [i for i, _ in top] == sorted(range(V), key=lambda i: (-row[i], i))[:count]
    assert [p for _, p in top] == pytest.approx([exact[i] for i, _ in top], abs=1e-5)


def test_log_probabilities_are_taken_before_anything_is_done_to_the_row() -> None:
    row = np.array([[1.0, 2.0, 3.0, -np.inf]], np.float32)
    params = SamplingParams(logprobs=4, logit_bias=((0, 100.0),), temperature=0.0)
    choice = verify(row, (), Context(params), 0)[0]
    assert choice.token == 0
    assert choice.logprob == pytest.approx(-2.4076, abs=1e-4)
    assert [i for i, _ in choice.top] == [2, 1, 0, 3]
    assert choice.top[-1][1] == -9999.0


def test_nothing_is_reported_unless_asked_for() -> None:
    row = np.zeros((1, V), np.float32)
    assert verify(row, (), Context(SamplingParams()), 0) == (Choice(0),)
    only = verify(row, (), Context(SamplingParams(logprobs=0)), 0)[0]
    assert only.logprob is not None
    assert only.top == ()


@given(rows, st.floats(0.01, 1.0), st.integers(0, 2**40))
def test_min_p_keeps_what_is_likely_enough(logits, min_p: float, seed: int) -> None:
    row = logits[0]
    params = SamplingParams(temperature=1.0, min_p=min_p, seed=seed)
    allowed = {i for i in range(V) if np.exp(row[i] - row.max()) >= min_p - 1e-6}
    assert {sample(row, params, i) for i in range(20)} <= allowed


def test_the_cost_of_a_token_does_not_grow_with_its_past() -> None:
    """No work over the history: pushing and adjusting touch distinct tokens only."""
    params = SamplingParams(presence_penalty=0.5, repetition_penalty=1.1)
    context = Context(params, tuple(i % 7 for i in range(100_000)))
    for i in range(1000):
        context.push(i % 7)
    assert context._history is not None
    assert context._history.all.ids.size == 7
