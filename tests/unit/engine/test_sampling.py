import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fleetapp.engine.sampling import exponentials, sample
from fleetapp.errors import BadRequest, FleetError
from fleetapp.types import SamplingParams

LARGE = (np.random.default_rng(3).standard_normal(20_000) * 3).astype(np.float32)

rows = arrays(
    np.float32,
    st.integers(2, 60),
    elements=st.integers(-120, 120).map(lambda i: i / 4),  # equal or clearly different
)
ties = arrays(np.float32, st.integers(2, 60), elements=st.sampled_from([-1.0, 0.0, 2.0]))


def softmax(row, temperature: float = 1.0):
    w = np.exp((row.astype(np.float64) - row.max()) / temperature)
    return w / w.sum()


def draws(row, params: SamplingParams, n: int) -> list[int]:
    return [sample(row, params, position) for position in range(n)]


@given(rows | ties)
def test_greedy_is_the_lowest_id_of_the_maximum(row) -> None:
    token = sample(row, SamplingParams(), 5)
    assert row[token] == row.max()
    assert not (row[:token] == row.max()).any()


@given(rows | ties, st.integers(1, 70), st.integers(0, 2**40))
def test_top_k_stays_within_the_k_best(row, k: int, seed: int) -> None:
    allowed = set(sorted(range(len(row)), key=lambda i: (-row[i], i))[:k])
    params = SamplingParams(temperature=1.5, top_k=k, seed=seed)
    assert set(draws(row, params, 20)) <= allowed


@given(rows | ties, st.floats(0.01, 0.99), st.integers(0, 2**40))
def test_top_p_stays_within_the_smallest_set_that_reaches_p(row, p: float, seed: int) -> None:
    probabilities = softmax(row)
    order = sorted(range(len(row)), key=lambda i: (-probabilities[i], i))
    mass, allowed = 0.0, set()
    for i in order:
        allowed.add(i)
        mass += probabilities[i]
        if mass >= p + 1e-9:  # a mass that only just reaches p may round either way
            break
    params = SamplingParams(temperature=1.0, top_p=p, seed=seed)
    assert set(draws(row, params, 20)) <= allowed


@pytest.mark.parametrize("k", [1, 2, 40, 78, 79, 5000, 19_999, 20_000])
def test_top_k_of_a_large_vocabulary_is_the_same_set(k: int) -> None:
    row = np.round(LARGE, 1)  # many ties
    allowed = set(np.argsort(-row, kind="stable")[:k].tolist())
    params = SamplingParams(temperature=50.0, top_k=k, seed=2)
    got = set(draws(row, params, 400))
    assert got <= allowed
    assert len(got) > min(k, 300) // 2


def test_a_large_vocabulary_is_drawn_from_in_proportion() -> None:
    row = LARGE[:10_000].copy()
    expected = softmax(row)
    groups = np.arange(10_000) * 8 // 10_000
    n = 4000
    got = groups[draws(row, SamplingParams(temperature=1.0, seed=5), n)]
    mass = np.bincount(groups, weights=expected)
    chi2 = ((np.bincount(got, minlength=8) - n * mass) ** 2 / (n * mass)).sum()
    assert chi2 < 30


def test_a_nucleus_in_a_large_vocabulary_is_the_same_set() -> None:
    rng = np.random.default_rng(3)
    for spread in (0.1, 3.0):  # the first needs more than the best thousand, the second does not
        row = (rng.standard_normal(20_000) * spread).astype(np.float32)
        probabilities = softmax(row)
        order = np.argsort(-probabilities, kind="stable")
        size = int(np.searchsorted(np.cumsum(probabilities[order]), 0.5)) + 1
        allowed = set(order[: size + 1].tolist())
        got = draws(row, SamplingParams(temperature=1.0, top_p=0.5, seed=1), 300)
        assert set(got) <= allowed


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0, seed=11),
        SamplingParams(temperature=0.7, seed=12),
        SamplingParams(temperature=1.3, top_k=4, seed=13),
        SamplingParams(temperature=1.0, top_p=0.8, seed=14),
        SamplingParams(temperature=1.0, top_k=5, top_p=0.9, seed=15),
    ],
)
def test_frequencies_follow_the_distribution(params: SamplingParams) -> None:
    row = np.array([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0], np.float32)
    expected = softmax(row, params.temperature)
    order = np.argsort(-expected, kind="stable")
    if params.top_k:
        expected[order[params.top_k :]] = 0
        expected /= expected.sum()
    if params.top_p < 1:
        size = int(np.searchsorted(np.cumsum(expected[order]), params.top_p)) + 1
        expected[order[size:]] = 0
    expected /= expected.sum()
    n = 4000
    counts = np.bincount(draws(row, params, n), minlength=8)
    assert counts[expected == 0].sum() == 0
    live = expected > 0
    chi2 = (((counts - n * expected) ** 2)[live] / (n * expected[live])).sum()
    assert chi2 < 30  # 7 degrees of freedom: once in ten thousand, and the seed is fixed


def test_frequencies_over_seeds_follow_the_distribution_too() -> None:
    row = np.log(np.array([0.5, 0.3, 0.2], np.float32))
    got = [sample(row, SamplingParams(temperature=1.0, seed=s), 7) for s in range(4000)]
    assert np.abs(np.bincount(got, minlength=3) / 4000 - [0.5, 0.3, 0.2]).max() < 0.03


@given(rows, st.integers(0, 2**64 - 1), st.integers(0, 10**6))
def test_the_same_request_draws_the_same_token(row, seed: int, position: int) -> None:
    params = SamplingParams(temperature=0.9, top_k=20, top_p=0.95, seed=seed)
    padded = np.stack([row[::-1], row, row * 2])  # a row of a batch
    assert sample(row, params, position) == sample(padded[1], params, position)


@given(st.integers(-(2**63), 2**64), st.integers(0, 2**40))
def test_random_numbers_are_positive_and_do_not_repeat(seed: int, at: int) -> None:
    names = np.array([0, 1, 255, 2**40, 2**40 + 1])
    drawn = np.concatenate(
        [exponentials(seed, at, names), exponentials(seed, at + 1, names),
         exponentials(seed + 1, at, names)]
    )  # fmt: skip
    assert (drawn > 0).all()
    assert np.isfinite(drawn).all()
    assert len(set(drawn.tolist())) == len(drawn)


def test_random_numbers_are_exponentially_distributed() -> None:
    drawn = np.concatenate([exponentials(7, at, np.arange(500)) for at in range(100)])
    assert abs(drawn.mean() - 1) < 0.02
    assert abs(drawn.std() - 1) < 0.02
    assert abs((drawn < np.log(2)).mean() - 0.5) < 0.01
    rows = np.stack([exponentials(7, at, np.arange(200)) for at in range(400)])
    near = np.corrcoef(rows[:-1].ravel(), rows[1:].ravel())[0, 1]
    assert abs(near) < 0.02, "neighbouring positions have nothing to do with each other"
    near = np.corrcoef(rows[:, :-1].ravel(), rows[:, 1:].ravel())[0, 1]
    assert abs(near) < 0.02, "nor have neighbouring tokens"


def test_random_numbers_are_pinned_for_good() -> None:
    assert exponentials(42, 0, np.arange(3)).round(6).tolist() == PINNED


def test_what_another_batch_rounds_in_the_sixth_digit_changes_no_token() -> None:
    rng = np.random.default_rng(1)
    row = rng.normal(0, 3, 30_000).astype(np.float32)
    params = SamplingParams(temperature=0.9, seed=5)
    other = row + rng.normal(0, 1e-5, row.size).astype(np.float32)
    changed = sum(sample(row, params, at) != sample(other, params, at) for at in range(500))
    assert changed == 0


PINNED = [0.949397, 0.081951, 2.487514]


@pytest.mark.parametrize("bad", [np.nan, -np.inf, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_nothing_to_choose_from_is_named(bad: float, temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=1)
    with pytest.raises(FleetError, match="position 9"):
        sample(np.full(8, bad, np.float32), params, 9)
    with pytest.raises(FleetError, match="position 9"):
        sample(np.array([1, np.nan, 2], np.float32), params, 9)


@given(st.integers(0, 10_000), st.floats(1e-30, 5))
@settings(max_examples=50)
def test_forbidden_tokens_are_never_drawn(seed: int, temperature: float) -> None:
    row = np.array([-np.inf, 1.0, -np.inf, 0.0, -np.inf], np.float32)
    for params in (
        SamplingParams(temperature=temperature, seed=seed),
        SamplingParams(temperature=temperature, top_k=4, seed=seed),
        SamplingParams(temperature=temperature, top_p=0.99, seed=seed),
    ):
        assert set(draws(row, params, 10)) <= {1, 3}


def test_sampling_without_a_seed_is_refused() -> None:
    with pytest.raises(BadRequest):
        sample(np.zeros(4, np.float32), SamplingParams(temperature=1.0), 0)
