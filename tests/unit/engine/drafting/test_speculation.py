"""Drafts change how fast an answer comes, and nothing else: real head, real stages, fake model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine import pipe
from fleetapp.engine.drafting.controller import Controller
from fleetapp.engine.drafting.lookup import Lookup
from fleetapp.engine.drafting.model import DraftModel
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.errors import RunnerFailed
from tests.support.drafters import Pattern, Scripted
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import EOS, LAYERS, VOCAB, FakeExecutor, reference

PROMPT = "Once upon a time"


def scripted(pattern: Pattern) -> Scripted:
    return Scripted(reference, pattern, lambda token: (token + 1) % VOCAB)


def always(count: int, right: int) -> Pattern:
    return lambda _: (count, right)


def chain_with(drafter: object, stages: int = 2, **more: object) -> FakeChain:
    speculator = Speculator([drafter], Controller(fixed=10))  # type: ignore[list-item]
    chain = FakeChain(stages, speculator=speculator, **more)  # type: ignore[arg-type]
    chain.link()
    return chain


def answer(chain: FakeChain, name: str = "a", **sampling: object) -> list[int]:
    chain.ask(name, PROMPT, **sampling)
    chain.settle()
    return chain.ids(name)


@pytest.mark.parametrize("k", range(1, 11))
def test_a_draft_rejected_at_any_position_changes_no_token(k: int) -> None:
    for right in range(k + 1):
        drafter = scripted(always(k, right))
        chain = chain_with(drafter)
        assert answer(chain, max_tokens=40) == reference(list(PROMPT.encode()), 40)
        end = chain.finished()["a"]
        assert (end.reason, end.usage.completion_tokens) == ("length", 40)
        assert end.timings is not None
        assert end.timings.drafted == sum(n for n, _ in drafter.drafted)
        assert end.timings.accepted == sum(n for _, n in drafter.drafted)
        chain.assert_clean()


def test_right_drafts_save_steps() -> None:
    chain = chain_with(scripted(always(9, 9)))
    answer(chain, max_tokens=41)
    assert chain.executors[1].calls == 1 + 4


@settings(max_examples=150, deadline=None)
@given(
    stages=st.sampled_from([1, 2, 3]),
    patterns=st.lists(
        st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    ),
    budget=st.integers(1, 30),
    temperature=st.sampled_from([0.0, 0.0, 20.0]),
    cancel=st.none() | st.integers(0, 40),
    data=st.data(),
)
def test_any_pattern_of_right_and_wrong_drafts_changes_no_token(
    stages: int,
    patterns: list[list[tuple[int, int]]],
    budget: int,
    temperature: float,
    cancel: int | None,
    data: st.DataObject,
) -> None:
    """Several sequences, any order of events, one perhaps cancelled on its way."""
    names = [f"r{i}" for i in range(len(patterns))]

    def run(speculator: Speculator | None, *, shuffled: bool) -> FakeChain:
        chain = FakeChain(stages, blocks=400, speculator=speculator)
        chain.link()
        for i, name in enumerate(names):
            prompt = f"{name} says {i * 'ha'}"
            chain.ask(name, prompt, max_tokens=budget, temperature=temperature, seed=i)
        turns = 0
        while shuffled and turns < 60:
            turns += 1
            choices = [*chain.choices(), "pump"]
            chain.turn(data.draw(st.sampled_from(choices)))
            if turns == cancel:
                chain.head.handle(pipe.Cancel(names[0]))
        if cancel is not None:
            chain.head.handle(pipe.Cancel(names[0]))
        chain.settle()
        return chain

    plain = FakeChain(stages, blocks=400)
    plain.link()
    expected: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        plain.ask(
            name, f"{name} says {i * 'ha'}", max_tokens=budget, temperature=temperature, seed=i
        )
        plain.settle()
        expected[name] = plain.ids(name)

    def truth(text: list[int] | tuple[int, ...], count: int) -> list[int]:
        if temperature == 0.0:
            return reference(text, count)
        name = next(n for n in names if list(text[: len(n) + 5]) == list(f"{n} says".encode()))
        start = len(f"{name} says {int(name[1:]) * 'ha'}")
        rest = expected[name][len(text) - start :]
        return (rest + [7] * count)[:count]

    def pattern(turn: int) -> tuple[int, int]:
        mine = patterns[turn % len(patterns)]
        return mine[turn % len(mine)]

    drafter = Scripted(truth, pattern, lambda token: (token + 1) % 128)
    chain = run(Speculator([drafter], Controller(fixed=10)), shuffled=True)
    for i, name in enumerate(names):
        if i == 0 and cancel is not None:
            assert chain.ids(name) == expected[name][: len(chain.ids(name))]
        else:
            assert chain.ids(name) == expected[name]
            assert chain.text(name) == plain.text(name)
            assert chain.finished()[name].reason == plain.finished()[name].reason
    chain.assert_clean()


def test_a_sampled_answer_is_the_same_with_drafts() -> None:
    plain = FakeChain(2)
    plain.link()
    expected = answer(plain, max_tokens=60, temperature=30.0, seed=5)

    def truth(text: list[int] | tuple[int, ...], count: int) -> list[int]:
        return (expected[len(text) - len(PROMPT) :] + [0] * count)[:count]

    for k in (1, 4, 10):
        drafter = Scripted(truth, lambda turn, k=k: (k, turn % (k + 1)), lambda t: t + 1)
        chain = chain_with(drafter)
        assert answer(chain, max_tokens=60, temperature=30.0, seed=5) == expected
        assert any(right for _, right in drafter.drafted)


@pytest.mark.parametrize("place", ["accepted", "rejected", "bonus"])
def test_the_end_of_sequence_in_a_draft_ends_the_answer_there(place: str) -> None:
    tokens = reference(list(PROMPT.encode()), 30)
    at = next(i for i in range(3, 30) if tokens[i] not in tokens[:i])
    end = tokens[at]
    before = at - 1 if place == "accepted" else at
    plans: dict[str, Pattern] = {
        "accepted": always(10, 10),
        "rejected": lambda turn: (10, 0) if turn >= before else (0, 0),
        "bonus": lambda turn: (at - 1, at - 1) if turn == 0 else (10, 10),
    }
    chain = chain_with(scripted(plans[place]))
    chain.head._requests._eos = frozenset({EOS, end})
    assert answer(chain, max_tokens=60) == tokens[: at + 1]
    assert chain.text("a") == bytes(tokens[:at]).decode()
    assert chain.finished()["a"].reason == "stop"
    assert answer(chain, "b", max_tokens=30, ignore_eos=True) == tokens
    chain.assert_clean()


def test_an_end_of_sequence_that_was_only_guessed_ends_nothing() -> None:
    drafter = Scripted(reference, always(4, 1), lambda _: EOS)
    chain = chain_with(drafter)
    assert answer(chain, max_tokens=30) == reference(list(PROMPT.encode()), 30)


@pytest.mark.parametrize("budget", range(1, 14))
def test_the_budget_ends_inside_a_draft(budget: int) -> None:
    chain = chain_with(scripted(always(10, 10)))
    assert answer(chain, max_tokens=budget) == reference(list(PROMPT.encode()), budget)
    assert chain.finished()["a"].reason == "length"
    chain.assert_clean()


@pytest.mark.parametrize("room", range(1, 14))
def test_the_context_ends_inside_a_draft(room: int) -> None:
    size = len(PROMPT) + room
    chain = chain_with(scripted(always(10, 10)), max_context=size)
    assert answer(chain, max_tokens=0) == reference(list(PROMPT.encode()), room)
    chain.assert_clean()


def test_a_stop_string_across_accepted_drafts_ends_the_answer_where_it_ends_without() -> None:
    whole = bytes(reference(list(PROMPT.encode()), 30)).decode()
    for start in range(2, 9):
        stop = whole[start : start + 4]
        results = []
        for drafter in (scripted(always(0, 0)), scripted(always(10, 10)), scripted(always(7, 3))):
            chain = chain_with(drafter)
            ids = answer(chain, max_tokens=30, stop=(stop,))
            end = chain.finished()["a"]
            results.append((ids, chain.text("a"), end.reason, end.usage))
            chain.assert_clean()
        assert results[0] == results[1] == results[2]
        assert results[0][1] == whole[: whole.index(stop)]


@pytest.mark.parametrize("position", range(1, 8))
def test_numbers_that_break_inside_a_draft_fail_after_the_same_tokens(position: int) -> None:
    outcomes = []
    for drafter in (scripted(always(0, 0)), scripted(always(5, 5))):
        chain = chain_with(drafter)
        chain.executors[-1].poison.add((1, len(PROMPT) + position))
        ids = answer(chain, max_tokens=20)
        end = chain.finished()["a"]
        outcomes.append((ids, end.reason, end.code))
        assert answer(chain, "b", max_tokens=20) == reference(list(PROMPT.encode()), 20)
        chain.assert_clean()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] == "error"


def test_full_cache_leaves_drafts_out_and_nothing_else() -> None:
    chain = chain_with(scripted(always(10, 10)), blocks=7, block_size=8, max_context=56)
    assert answer(chain, max_tokens=40) == reference(list(PROMPT.encode()), 40)
    chain.assert_clean()


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("others", [0, 7])
@pytest.mark.parametrize("make", [Lookup, lambda: DraftModel(FakeExecutor(0, LAYERS, blocks=999))])
def test_every_drafter_alone_and_among_others(
    stages: int, others: int, make: Callable[[], object]
) -> None:
    chain = chain_with(make(), stages, blocks=999)
    prompts = {f"r{i}": f"{i} the cat and the cat {'again ' * i}" for i in range(others + 1)}
    for name, prompt in prompts.items():
        chain.ask(name, prompt, max_tokens=60)
    chain.settle()
    for name, prompt in prompts.items():
        assert chain.ids(name) == reference(list(prompt.encode()), 60)
    chain.assert_clean()


def test_a_drafter_that_breaks_costs_no_answer() -> None:
    broken: list[bool] = []

    def before(_: object) -> None:
        if broken:
            raise RunnerFailed("The draft model's device is gone.")

    drafter = DraftModel(FakeExecutor(0, LAYERS, blocks=999, before=before))
    chain = chain_with(drafter)
    chain.ask("a", PROMPT, max_tokens=30)
    while len(chain.ids("a")) < 8:
        chain.head.pump()
        if choices := chain.choices():
            chain.turn(choices[-1])
    broken.append(True)
    chain.settle()
    assert chain.ids("a") == reference(list(PROMPT.encode()), 30)
    assert answer(chain, "b", max_tokens=5) == reference(list(PROMPT.encode()), 5)
    assert not chain.head._speculator.on
    chain.assert_clean()


def test_the_head_counts_acceptance_by_position() -> None:
    chain = chain_with(scripted(always(3, 2)))
    answer(chain, max_tokens=31)
    chain.head.handle(pipe.QueryStats())
    stats = chain.sent.pop()
    assert isinstance(stats, pipe.RunnerStats)
    assert stats.chain is not None
    assert stats.chain.drafted == (10, 10, 9)
    assert stats.chain.accepted == (10, 10, 0)
