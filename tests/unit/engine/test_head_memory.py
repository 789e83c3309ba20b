"""Prefixes, preemption, priorities and spilling over real stages of the tiny model."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine import pipe
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import reference


def chain_of(stages: int, **kwargs: object) -> FakeChain:
    chain = FakeChain(stages, **kwargs)  # type: ignore[arg-type]
    chain.link()
    return chain


def computed(chain: FakeChain) -> list[int]:
    """Positions that each stage has computed so far."""
    return [worker.tokens for worker in chain.workers]


@pytest.mark.parametrize("stages", [1, 3])
def test_a_turn_with_its_history_computes_only_what_is_new(stages: int) -> None:
    chain = chain_of(stages, max_context=600, blocks=200)
    first = "x" * 300
    chain.ask("a", first, max_tokens=40)
    chain.settle()
    before = computed(chain)
    second = first + chain.text("a") + "and now?"
    chain.ask("b", second, max_tokens=10)
    chain.settle()
    assert chain.ids("b") == reference(list(second.encode()), 10)
    new = 1 + len("and now?") + 9  # the first turn's last token was never fed
    assert computed(chain) == [b + new for b in before]
    assert chain.finished()["b"].usage.cached_tokens == 339
    assert chain.finished()["a"].usage.cached_tokens == 0
    chain.assert_clean()


def test_users_of_one_system_prompt_share_it_while_they_run() -> None:
    chain = chain_of(3, max_context=400, blocks=60)
    system = "You are helpful. " * 10
    for i in range(6):
        chain.ask(f"r{i}", f"{system}Question {i}", max_tokens=12)
    chain.settle()
    for i in range(6):
        prompt = f"{system}Question {i}"
        assert chain.ids(f"r{i}") == reference(list(prompt.encode()), 12)
    cached = [chain.finished()[f"r{i}"].usage.cached_tokens for i in range(6)]
    assert cached[0] == 0
    assert all(c >= len(system) - 8 for c in cached[1:])
    chain.assert_clean()


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("spill_blocks", [0, 12])
def test_preempted_answers_are_unchanged(stages: int, spill_blocks: int) -> None:
    chain = chain_of(stages, blocks=12, max_context=90, spill_blocks=spill_blocks)
    prompts = {f"r{i}": f"{i}" * 20 for i in range(5)}
    for name, prompt in prompts.items():
        chain.ask(name, prompt, max_tokens=50, temperature=30.0, seed=3)
    chain.settle()
    assert chain.head._chain is not None
    assert chain.head._chain.scheduler.preemptions > 0
    for name, prompt in prompts.items():
        alone = chain_of(1, blocks=100)
        alone.ask("a", prompt, max_tokens=50, temperature=30.0, seed=3)
        alone.settle()
        assert chain.ids(name) == alone.ids("a")
        assert len(chain.ids(name)) == 50
    chain.assert_clean()


def test_a_preempted_answer_keeps_the_seed_that_was_drawn_for_it() -> None:
    chain = chain_of(2, blocks=12, max_context=90)
    for i in range(5):
        chain.ask(f"r{i}", "q" * (20 + i), max_tokens=50, temperature=30.0)
    chain.settle()
    for i in range(5):
        alone = chain_of(1, blocks=100)
        alone.ask("a", "q" * (20 + i), max_tokens=50, temperature=30.0, seed=i + 1)
        alone.settle()
        assert chain.ids(f"r{i}") == alone.ids("a")


def test_an_interactive_request_takes_the_slot_of_a_batch_one() -> None:
    chain = chain_of(2, slots=1)
    chain.ask("batch", "work", max_tokens=60, priority="batch")
    for _ in range(12):
        chain.head.pump()
        for choice in chain.choices()[-1:]:
            chain.turn(choice)
    chain.ask("now", "hello", max_tokens=5)
    chain.settle()
    ends = list(chain.finished())
    assert ends == ["now", "batch"]
    assert chain.ids("batch") == reference(list(b"work"), 60)
    chain.assert_clean()


def test_spilled_conversations_come_back() -> None:
    chain = chain_of(3, blocks=20, max_context=150, spill_blocks=60)
    texts = {}
    for i in range(4):
        chain.ask(f"a{i}", f"{i}" * 60, max_tokens=20)
        chain.settle()
        texts[i] = f"{i}" * 60 + chain.text(f"a{i}")
    assert [len(e._cache._spilled) for e in chain.executors] == [3, 3, 3]
    for i in range(4):
        chain.ask(f"b{i}", texts[i] + "?", max_tokens=20)
        chain.settle()
        assert chain.ids(f"b{i}") == reference(list((texts[i] + "?").encode()), 20)
        assert chain.finished()[f"b{i}"].usage.cached_tokens == 79
    chain.assert_clean()


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_stage_that_lost_a_kept_sequence_costs_time_and_nothing_else(stage: int) -> None:
    chain = chain_of(3)
    chain.ask("a", "x" * 100, max_tokens=10)
    chain.settle()
    for keep in list(chain.executors[stage].slots._kept):
        chain.executors[stage].drop(keep)
    chain.ask("other", "y" * 30, max_tokens=30)
    chain.ask("b", "x" * 100 + "more", max_tokens=10)
    chain.settle()
    assert chain.ids("b") == reference(list(b"x" * 100 + b"more"), 10)
    assert chain.ids("other") == reference(list(b"y" * 30), 30)
    assert chain.finished()["b"].reason == "length"
    chain.assert_clean()


def test_a_new_epoch_forgets_what_was_kept() -> None:
    chain = chain_of(2)
    chain.ask("a", "x" * 100, max_tokens=10)
    chain.settle()
    chain.link()
    chain.ask("b", "x" * 100, max_tokens=10)
    chain.settle()
    assert chain.finished()["b"].usage.cached_tokens == 0
    assert chain.ids("b") == chain.ids("a")
    chain.assert_clean()


def test_a_long_prompt_fills_all_stages() -> None:
    chain = chain_of(3, max_context=1000, blocks=200)
    chain.ask("a", "x" * 900, max_tokens=2)
    chain.turn("tokenizer")
    while chain.head.pump():
        pass
    assert chain.head._chain is not None
    assert len(chain.head._chain.scheduler.in_flight) == 3
    chain.settle()
    assert chain.ids("a") == reference([120] * 900, 2)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(0, 20))
def test_whatever_is_shared_preempted_or_spilled_every_answer_is_right(
    data: st.DataObject, stages: int, spill: int
) -> None:
    """Few blocks, prompts that begin alike, turns that build on answers, both priorities."""
    chain = chain_of(stages, blocks=14, slots=4, max_context=100, spill_blocks=spill)
    wanted: dict[str, tuple[str, int]] = {}
    cancelled: set[str] = set()
    for _ in range(data.draw(st.integers(10, 150))):
        ended = chain.finished()
        running = sorted(set(wanted) - set(ended))
        answered = sorted(set(ended) - cancelled)
        choices = [*chain.choices(), "pump", *(["ask"] if len(wanted) < 12 else [])]
        choices += ["cancel"] if running else []
        match data.draw(st.sampled_from(choices)):
            case "ask":
                name = f"r{len(wanted)}"
                prompt = data.draw(st.sampled_from("pq")) * data.draw(st.integers(1, 50))
                if answered and data.draw(st.booleans()):
                    before = data.draw(st.sampled_from(answered))
                    prompt = wanted[before][0] + chain.text(before) + "?"
                count = data.draw(st.integers(1, 30))
                if len(prompt) + count > 100:
                    continue
                wanted[name] = (prompt, count)
                priority = data.draw(st.sampled_from(["interactive", "batch"]))
                chain.ask(name, prompt, max_tokens=count, priority=priority)
            case "cancel":
                name = data.draw(st.sampled_from(running))
                chain.head.handle(pipe.Cancel(name))
                cancelled.add(name)
            case choice:
                chain.turn(choice)
    chain.settle()
    assert set(chain.finished()) == set(wanted)
    for name, (prompt, count) in wanted.items():
        expected = reference(list(prompt.encode()), count)
        got = chain.ids(name)
        assert got == (expected[: len(got)] if name in cancelled else expected)
    chain.assert_clean()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_thousand_requests_with_random_cancels_leave_nothing() -> None:
    chain = chain_of(3, blocks=60, slots=8, max_context=200, spill_blocks=60)
    rng = random.Random(5)
    threads = threading.active_count()
    alive: list[str] = []
    for i in range(10_000):
        system = rng.choice(["", "Be brief. " * 5, "Be kind and helpful. " * 4])
        prompt = system + f"{rng.random()} " * rng.randint(1, 3)
        name = f"r{i}"
        priority = rng.choice(["interactive", "interactive", "batch"])
        chain.ask(name, prompt, max_tokens=rng.randint(1, 12), priority=priority)
        alive.append(name)
        for _ in range(rng.randint(0, 30)):
            chain.head.pump()
            choices = chain.choices()
            if choices:
                chain.turn(rng.choice(choices))
        if rng.random() < 0.3:
            chain.head.handle(pipe.Cancel(alive.pop(rng.randrange(len(alive)))))
        if len(alive) > 100:
            chain.settle()
            alive.clear()
    chain.settle()
    assert len(chain.finished()) == 10_000
    assert not any(e.reason == "error" for e in chain.finished().values())
    chain.assert_clean()
    head = chain.head
    assert head._chain is not None
    scheduler = head._chain.scheduler
    assert len(head._requests) == 0
    assert not scheduler.in_flight
    assert scheduler.memory.kept <= scheduler.limits.keep_sequences
    memory = scheduler.memory
    for keep in list(memory._kept):
        memory.forget(keep)
    chain.settle()
    for executor in chain.executors:
        assert executor.free_blocks == executor.info.blocks
        assert len(executor._cache._spilled) == 0
        assert executor._cache._spilled.memory_bytes == 0
    assert len(memory._computed) == 0
    assert threading.active_count() == threads
