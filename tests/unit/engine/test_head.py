"""The generation loop over real stages, hop by hop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.engine import pipe
from fleetapp.types import SamplingParams
from fleetapp.wire import codec
from fleetapp.wire.frames import Passed, Tokens
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import VOCAB, reference


def chain_of(stages: int, **kwargs: object) -> FakeChain:
    chain = FakeChain(stages, **kwargs)  # type: ignore[arg-type]
    chain.link()
    return chain


def faults(chain: FakeChain) -> list[pipe.ChainFault]:
    return [m for m in chain.sent if isinstance(m, pipe.ChainFault)]


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("fast", [False, True])
def test_the_number_of_stages_does_not_change_the_answer(stages: int, fast: bool) -> None:
    chain = chain_of(stages, fast=fast)
    chain.ask("a", "Hello there", max_tokens=20)
    chain.settle()
    assert chain.ids("a") == reference(list(b"Hello there"), 20)
    assert chain.text("a") == bytes(chain.ids("a")).decode()
    end = chain.finished()["a"]
    assert (end.reason, end.usage.prompt_tokens, end.usage.completion_tokens) == ("length", 11, 20)
    chain.assert_clean()


@pytest.mark.parametrize("stages", [1, 3])
def test_requests_in_one_batch_do_not_disturb_each_other(stages: int) -> None:
    chain = chain_of(stages, blocks=400)
    prompts = {f"r{i}": "x" * (i * 7 + 1) for i in range(12)}
    for name, prompt in prompts.items():
        chain.ask(name, prompt, max_tokens=15)
    chain.settle()
    for name, prompt in prompts.items():
        assert chain.ids(name) == reference(list(prompt.encode()), 15)
    chain.assert_clean()


def test_a_sampled_answer_depends_on_its_seed_alone() -> None:
    answers = []
    for stages, others in [(1, 0), (3, 0), (3, 5)]:
        chain = chain_of(stages, blocks=400)
        chain.ask("a", "seeded", max_tokens=30, temperature=40.0, seed=7)
        for i in range(others):
            chain.ask(f"o{i}", "noise" * i + ".", max_tokens=9, temperature=40.0)
        chain.settle()
        answers.append(chain.ids("a"))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0] != reference(list(b"seeded"), 30)


def test_the_end_of_sequence_ends_the_answer_and_has_no_text() -> None:
    chain = chain_of(2)
    tokens = reference(list(b"abc"), 10)
    third = tokens[2]
    assert third not in tokens[:2]
    chain.head._requests._eos = frozenset({0, third})
    chain.ask("a", "abc", max_tokens=10)
    chain.ask("b", "abc", max_tokens=10, ignore_eos=True)
    chain.settle()
    assert chain.ids("a") == tokens[:3]
    assert chain.text("a") == bytes(tokens[:2]).decode()
    assert chain.finished()["a"].reason == "stop"
    assert chain.ids("b") == tokens
    chain.assert_clean()


def test_a_stop_string_is_cut_off_and_ends_the_answer_at_once() -> None:
    chain = chain_of(2)
    tokens = reference(list(b"abc"), 20)
    whole = bytes(tokens).decode()
    stop = whole[5:9]
    cut = whole.index(stop)
    chain.ask("a", "abc", max_tokens=20, stop=(stop, "\x00never"))
    chain.settle()
    assert chain.text("a") == whole[:cut]
    assert chain.ids("a") == tokens[: cut + 4]
    assert chain.finished()["a"].reason == "stop"
    assert not any(
        whole[cut] in d.text for d in chain._deltas("a") if whole[cut] not in whole[:cut]
    )
    chain.assert_clean()


def test_a_stop_string_completed_by_the_last_token_of_the_budget_counts_as_stop() -> None:
    chain = chain_of(1)
    whole = bytes(reference(list(b"abc"), 8)).decode()
    chain.ask("a", "abc", max_tokens=8, stop=(whole[-2:],))
    chain.settle()
    assert chain.finished()["a"].reason == "stop"
    assert chain.text("a") == whole[: whole.index(whole[-2:])]


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "answer"),
    [(63, 5, 1), (63, 0, 1), (60, 0, 4), (60, 10**9, 4), (8, 3, 3)],
)
def test_an_answer_is_clipped_to_what_fits(prompt: int, max_tokens: int, answer: int) -> None:
    chain = chain_of(2, max_context=64)
    chain.ask("a", "x" * prompt, max_tokens=max_tokens)
    chain.settle()
    assert chain.finished()["a"].usage.completion_tokens == answer
    assert chain.finished()["a"].reason == "length"
    chain.assert_clean()


@pytest.mark.parametrize("length", [64, 65, 1000])
def test_a_prompt_that_fills_the_context_is_refused_before_any_computing(length: int) -> None:
    chain = chain_of(2, max_context=64)
    chain.ask("a", "x" * length)
    chain.settle()
    end = chain.finished()["a"]
    assert (end.reason, end.code) == ("error", "context_length_exceeded")
    assert "64" in end.message
    assert str(length) in end.message
    assert chain.executors[0].calls == 0
    chain.assert_clean()


@pytest.mark.parametrize(
    "request_",
    [
        pipe.Generate("a", SamplingParams(max_tokens=3), prompt=""),
        pipe.Generate("a", SamplingParams(max_tokens=3), prompt=" \n"),
        pipe.Generate("a", SamplingParams(max_tokens=3), token_ids=()),
        pipe.Generate("a", SamplingParams(max_tokens=3), token_ids=(VOCAB,)),
        pipe.Generate("a", SamplingParams(max_tokens=3), token_ids=(-1,)),
        pipe.Generate("a", SamplingParams(max_tokens=3)),
        pipe.Generate("a", SamplingParams(max_tokens=3), prompt="x", token_ids=(1,)),
        pipe.Generate("a", SamplingParams(max_tokens=-1), prompt="x"),
        pipe.Generate("a", SamplingParams(temperature=float("nan")), prompt="x"),
        pipe.Generate("a", SamplingParams(temperature=-1.0), prompt="x"),
        pipe.Generate("a", SamplingParams(top_p=0.0), prompt="x"),
        pipe.Generate("a", SamplingParams(top_k=-2), prompt="x"),
        pipe.Generate("a", SamplingParams(stop=("ok", "")), prompt="x"),
    ],
)
def test_nonsense_is_refused_and_the_next_request_is_fine(request_: pipe.Generate) -> None:
    chain = chain_of(2)
    chain.head.handle(request_)
    chain.settle()
    end = chain.finished()["a"]
    assert (end.reason, end.code) == ("error", "bad_request")
    chain.ask("b", "fine")
    chain.settle()
    assert chain.ids("b") == reference(list(b"fine"), 8)
    chain.assert_clean()


def test_the_head_notices_by_itself_that_the_next_stage_is_gone() -> None:
    chain = chain_of(2)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.hops[0].cut = True
    chain.head.pump()
    (fault,) = faults(chain)
    assert (fault.code, fault.stage, fault.device) == ("chain_broken", 1, "d1")
    assert "d1" in fault.message
    assert chain.finished() == {}


def test_silence_beyond_the_step_deadline_breaks_the_chain() -> None:
    chain = chain_of(2)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.head.pump()
    chain.now += 19.9
    assert chain.head.wait_seconds() == pytest.approx(0.1)
    chain.head.pump()
    assert faults(chain) == []
    chain.now += 0.2
    chain.head.pump()
    (fault,) = faults(chain)
    assert fault.code == "stage_silent"
    assert "20 s" in fault.message


def test_a_late_reply_never_answers_the_next_request() -> None:
    chain = chain_of(2)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.head.pump()
    while chain.hops[0].frames:
        chain.deliver(0)
    (late,) = chain.hops[1].frames
    chain.now += 21
    chain.head.pump()
    chain.head.handle(pipe.Cancel("a"))
    chain.link()
    chain.ask("b", "another")
    chain.turn("tokenizer")
    chain.head.pump()
    chain.hops[1].frames.append(late)
    chain.settle()
    assert chain.ids("a") == []
    assert chain.ids("b") == reference(list(b"another"), 8)
    chain.assert_clean()


def test_tokens_of_a_step_that_nobody_asked_for_are_dropped() -> None:
    chain = chain_of(2)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.hops[1].frames.append(b"".join(codec.encode(Tokens(1, 77, ()))))
    chain.settle()
    assert chain.ids("a") == reference(list(b"question"), 8)


def test_a_ring_that_owes_nothing_may_be_quiet_for_ever() -> None:
    chain = chain_of(3)
    assert chain.head.wait_seconds() is None
    chain.now += 1e6
    chain.head.pump()
    assert chain.sent == [pipe.Linked(1)]
    chain.ask("a", "question")
    chain.settle()
    assert chain.finished()["a"].reason == "length"


def test_stages_that_get_on_are_waited_for_and_the_one_that_does_not_is_named() -> None:
    chain = chain_of(4)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.head.pump()
    for steps in [(0, 0, 0), (1, 0, 0)]:
        chain.transports[0].progress = tuple(
            Passed(f"d{i}", step) for i, step in enumerate(steps, 1)
        )
        for _ in range(19):
            chain.now += 1.0
            chain.head.pump()
        assert faults(chain) == []
    chain.now += 2.5
    chain.head.pump()
    (fault,) = faults(chain)
    assert (fault.stage, fault.device) == (2, "d2")
    assert "step 1" in fault.message
    chain.settle()
    told = [m for sent in chain.stage_sent for m in sent if isinstance(m, pipe.ChainFault)]
    assert [(f.stage, f.device) for f in told] == [(2, "d2")] * 3


def test_unusable_numbers_hurt_one_request_only() -> None:
    chain = chain_of(3)
    chain.executors[-1].poison.add((1, 10))
    chain.ask("sick", "12345678", max_tokens=12)
    chain.ask("well", "12345678", max_tokens=12)
    chain.settle()
    ends = chain.finished()
    assert (ends["sick"].reason, ends["well"].reason) == ("error", "length")
    assert "10" in ends["sick"].message
    assert chain.ids("well") == reference(list(b"12345678"), 12)
    chain.assert_clean()


def test_a_failing_inference_breaks_the_chain_with_its_cause() -> None:
    def fail(segments: object) -> None:
        raise MemoryError("no memory for this")

    chain = chain_of(3, before=fail)
    chain.ask("a", "question")
    chain.settle()
    (fault,) = faults(chain)
    assert "no memory for this" in fault.message
    assert (fault.code, fault.stage, fault.device) == ("runner_failed", 1, "d1")


def test_unlink_ends_requests_and_refuses_new_ones() -> None:
    chain = chain_of(2)
    chain.ask("a", "question")
    chain.turn("tokenizer")
    chain.head.pump()
    for node in chain.nodes:
        node.handle(pipe.Unlink())
    assert chain.finished()["a"].code == "unavailable"
    chain.ask("b", "question")
    assert chain.finished()["b"].code == "unavailable"
    chain.assert_clean()


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4))
def test_whatever_the_order_of_events_every_request_ends_once_and_right(
    data: st.DataObject, stages: int
) -> None:
    chain = chain_of(stages, blocks=40, slots=3, max_context=100)
    wanted: dict[str, tuple[str, int]] = {}
    cancelled: set[str] = set()
    for _ in range(data.draw(st.integers(10, 120))):
        running = sorted(set(wanted) - set(chain.finished()))
        choices = [*chain.choices(), "pump", *(["ask"] if len(wanted) < 8 else [])]
        choices += ["cancel"] if running else []
        match data.draw(st.sampled_from(choices)):
            case "ask":
                name = f"r{len(wanted)}"
                wanted[name] = ("p" * data.draw(st.integers(1, 60)), data.draw(st.integers(1, 12)))
                chain.ask(name, wanted[name][0], max_tokens=wanted[name][1])
            case "cancel":
                name = data.draw(st.sampled_from(running))
                chain.head.handle(pipe.Cancel(name))
                cancelled.add(name)
                assert chain.finished()[name].reason == "cancelled"
            case choice:
                chain.turn(choice)
    chain.settle()
    ends = chain.finished()
    assert set(ends) == set(wanted)
    for name, (prompt, count) in wanted.items():
        expected = reference(list(prompt.encode()), count)
        if name in cancelled:
            assert chain.ids(name) == expected[: len(chain.ids(name))]
        else:
            assert chain.ids(name) == expected
    chain.assert_clean()
