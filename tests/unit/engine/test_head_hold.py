"""Answers that outlive their ring: held while there is none, and gone on with in the next."""

from __future__ import annotations

import pytest

from fleetapp.engine import pipe
from fleetapp.engine.drafting.controller import Controller
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.transport import LinkFailed
from fleetapp.errors import PeerTimeout
from fleetapp.types import Grammar
from tests.support.drafters import Scripted
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import EOS, VOCAB, reference

QUESTION = "Who goes there?"


def chain_of(stages: int, **kwargs: object) -> FakeChain:
    chain = FakeChain(stages, **kwargs)  # type: ignore[arg-type]
    chain.link()
    return chain


def faults(chain: FakeChain) -> list[pipe.ChainFault]:
    return [m for m in chain.sent if isinstance(m, pipe.ChainFault)]


def until(chain: FakeChain, name: str, tokens: int) -> None:
    """Let things happen until an answer has so many tokens."""
    while len(chain.ids(name)) < tokens:
        chain.head.pump()
        for choice in chain.choices()[-1:]:
            chain.turn(choice)


def whole(prompt: str = QUESTION, **sampling: object) -> FakeChain:
    """The same request to a chain that nothing happens to."""
    chain = chain_of(1, blocks=400)
    chain.ask("a", prompt, **sampling)
    chain.settle()
    return chain


def same(chain: FakeChain, name: str, undisturbed: FakeChain) -> None:
    """Tokens, text, reports and end are those of the undisturbed run."""
    assert chain.ids(name) == undisturbed.ids("a")
    assert chain.text(name) == undisturbed.text("a")
    assert [r for d in chain._deltas(name) for r in d.logprobs] == [
        r for d in undisturbed._deltas("a") for r in d.logprobs
    ]
    end, expected = chain.finished()[name], undisturbed.finished()["a"]
    assert (end.reason, end.usage.completion_tokens) == (
        expected.reason,
        expected.usage.completion_tokens,
    )
    started = [m for m in chain.sent if isinstance(m, pipe.Started) and m.request_id == name]
    assert len(started) == 1


def test_a_lost_stage_is_told_at_once_and_ends_no_request() -> None:
    chain = chain_of(3, slots=2)
    for i in range(4):
        chain.ask(f"r{i}", "question", max_tokens=50)
    for _ in range(3):
        chain.turn("tokenizer")
    for _ in range(30):
        chain.head.pump()
        chain.turn(chain.choices()[0])
    chain.lose(1)
    chain.settle()
    assert [(f.epoch, f.stage, f.device) for f in faults(chain)] == [(1, 1, "d1")]
    chain.ask("late", "anyone there?")
    chain.settle()
    assert chain.finished() == {}
    chain.link()
    chain.settle()
    for i in range(4):
        assert chain.ids(f"r{i}") == reference(list(b"question"), 50)
    assert chain.ids("late") == reference(list(b"anyone there?"), 8)
    assert set(chain.finished()) == {"late", "r0", "r1", "r2", "r3"}
    chain.assert_clean()


SETTINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "sampled": {"temperature": 30.0, "seed": 5},
    "seed drawn here": {"temperature": 30.0},
    "penalties": {
        "temperature": 9.0, "seed": 2, "repetition_penalty": 1.3, "presence_penalty": 0.7,
        "frequency_penalty": 0.4, "ignore_eos": True,
    },
    "log probabilities": {"temperature": 60.0, "seed": 4, "logprobs": 2, "ignore_eos": True},
    "grammar": {
        "temperature": 30.0, "seed": 11, "grammar": Grammar("regex", "[a-f]{10,30}"),
    },
}  # fmt: skip


@pytest.mark.parametrize("sampling", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("stages", [2, 3])
def test_an_answer_goes_on_as_if_nothing_had_happened(
    stages: int, sampling: dict[str, object]
) -> None:
    undisturbed = whole(max_tokens=40, **sampling)
    chain = chain_of(stages)
    chain.ask("a", QUESTION, max_tokens=40, **sampling)
    for tokens in (1, 7, 8):
        until(chain, "a", tokens)
        chain.lose(stages - 1)
        chain.settle()
        chain.link()
    chain.settle()
    same(chain, "a", undisturbed)
    chain.assert_clean()


def test_the_next_ring_may_have_other_stages_and_other_caches() -> None:
    undisturbed = whole(max_tokens=60, temperature=30.0, seed=1)
    chain = chain_of(2, blocks=40)
    chain.ask("a", QUESTION, max_tokens=60, temperature=30.0, seed=1)
    for stages, blocks, size in [(4, 30, 8), (3, 50, 16), (2, 90, 4)]:
        until(chain, "a", len(chain.ids("a")) + 9)
        chain.lose(1)
        chain.replace(stages, blocks=blocks, block_size=size)
        chain.link()
    chain.settle()
    same(chain, "a", undisturbed)
    chain.assert_clean()


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("how", ["link", "unlink"])
def test_a_ring_that_is_left_on_purpose_ends_no_request(stages: int, how: str) -> None:
    undisturbed = whole(max_tokens=40)
    chain = chain_of(stages)
    chain.ask("a", QUESTION, max_tokens=40)
    until(chain, "a", 5)
    if how == "unlink":
        for node in chain.nodes:
            node.handle(pipe.Unlink("The user of this PC is back.", hold=True))
        chain.settle()
        assert chain.finished() == {}
    chain.link()
    chain.settle()
    assert faults(chain) == []
    same(chain, "a", undisturbed)
    chain.assert_clean()


def test_drafts_that_were_on_their_way_change_nothing() -> None:
    undisturbed = whole(max_tokens=60)
    drafter = Scripted(reference, lambda turn: (6, turn % 7), lambda token: (token + 1) % VOCAB)
    chain = FakeChain(3, speculator=Speculator([drafter], Controller(fixed=6)))
    chain.link()
    chain.ask("a", QUESTION, max_tokens=60)
    for tokens in (3, 12, 30):
        until(chain, "a", tokens)
        chain.head.pump()
        chain.lose(2)
        chain.settle()
        chain.link()
    chain.settle()
    same(chain, "a", undisturbed)
    assert any(right for _, right in drafter.drafted)
    chain.assert_clean()


def test_order_and_priority_are_kept() -> None:
    chain = chain_of(2, slots=1)
    chain.ask("slow", "work", max_tokens=9, priority="batch")
    chain.ask("first", "one", max_tokens=9)
    for _ in range(2):
        chain.turn("tokenizer")
    until(chain, "first", 2)
    chain.lose(1)
    chain.ask("second", "two", max_tokens=9)
    chain.settle()
    chain.ask("third", "three", max_tokens=9)
    chain.link()
    chain.settle()
    assert list(chain.finished()) == ["first", "second", "third", "slow"]
    chain.assert_clean()


def test_requests_before_the_first_link_wait_for_it() -> None:
    chain = FakeChain(2)
    chain.ask("a", "early")
    chain.settle()
    assert chain.sent == []
    chain.link()
    chain.settle()
    assert chain.ids("a") == reference(list(b"early"), 8)
    chain.assert_clean()


def test_one_that_waits_in_vain_is_told_who_left_and_what_to_try() -> None:
    chain = chain_of(3)
    chain.ask("a", QUESTION, max_tokens=50)
    until(chain, "a", 5)
    chain.lose(1)
    chain.settle()
    chain.now += 20.0
    chain.ask("b", QUESTION)
    chain.head.pump()
    assert chain.head.wait_seconds() == pytest.approx(40.0)
    chain.now += 39.9
    chain.head.pump()
    assert chain.finished() == {}
    chain.now += 0.2
    chain.head.pump()
    end = chain.finished()["a"]
    assert (end.reason, end.code) == ("error", "chain_broken")
    assert "d1" in end.message
    assert "60 s" in end.message
    assert end.remedy
    assert chain.ids("a") == reference(list(QUESTION.encode()), 50)[: len(chain.ids("a"))]
    assert chain.head.wait_seconds() == pytest.approx(19.9)
    chain.now += 20.0
    chain.head.pump()
    assert chain.finished()["b"].code == "chain_broken"
    assert chain.head.wait_seconds() is None
    chain.link()
    chain.settle()
    chain.assert_clean()


def test_a_ring_that_cannot_be_formed_does_not_hide_who_left() -> None:
    chain = chain_of(3)
    chain.ask("a", QUESTION, max_tokens=50)
    until(chain, "a", 5)
    chain.lose(1)
    chain.settle()
    chain.epoch += 1
    chain.head.handle(chain._link(0))
    chain.head.handle(LinkFailed(chain.epoch, PeerTimeout("Nobody is there.")))
    assert isinstance(chain.sent[-1], pipe.Failed)
    chain.now += 61.0
    chain.head.pump()
    assert "d1" in chain.finished()["a"].message


def test_before_any_ring_the_error_is_another_one() -> None:
    chain = FakeChain(2)
    chain.ask("a", "early")
    chain.now += 61.0
    chain.settle()
    end = chain.finished()["a"]
    assert (end.reason, end.code, bool(end.remedy)) == ("error", "unavailable", True)


def test_one_that_breaks_every_ring_ends_and_so_frees_the_others() -> None:
    """Time without a ring adds up as long as a request gets no token."""
    chain = chain_of(2)
    chain.ask("a", QUESTION, max_tokens=50)
    for _ in range(3):
        chain.turn("tokenizer") if chain.jobs else None
        chain.head.pump()
        chain.lose(1)
        chain.now += 19.0
        chain.link()
        chain.now += 500.0
    assert chain.finished() == {}
    chain.head.pump()
    chain.lose(1)
    chain.now += 4.0
    chain.head.pump()
    assert chain.finished()["a"].code == "chain_broken"


def test_a_cancel_works_while_held() -> None:
    chain = chain_of(2)
    chain.ask("a", QUESTION, max_tokens=50)
    until(chain, "a", 5)
    chain.ask("b", QUESTION)
    chain.lose(1)
    for name in ("a", "b"):
        chain.head.handle(pipe.Cancel(name))
        assert chain.finished()[name].reason == "cancelled"
    chain.link()
    chain.settle()
    assert len(chain.ids("a")) < 50
    chain.assert_clean()


@pytest.mark.parametrize("again", [False, True])
def test_unlink_ends_what_is_held_when_the_hub_gives_up(again: bool) -> None:
    chain = chain_of(2)
    chain.ask("a", QUESTION, max_tokens=50)
    until(chain, "a", 5)
    chain.lose(1)
    chain.head.handle(pipe.Unlink("Stage 1 left and nobody takes its place."))
    end = chain.finished()["a"]
    assert (end.code, "nobody takes its place" in end.message) == ("chain_broken", True)
    chain.ask("b", QUESTION)
    assert chain.finished()["b"].code == "chain_broken"
    if again:
        chain.epoch += 1
        chain.head.handle(chain._link(0))
        chain.ask("c", QUESTION)
        assert "c" not in chain.finished()


def test_one_that_the_new_ring_has_no_room_for_ends_and_the_others_go_on() -> None:
    chain = chain_of(2, blocks=32, max_context=256)
    chain.ask("long", "x" * 150, max_tokens=60)
    chain.ask("clipped", "y" * 20, max_tokens=60)
    chain.ask("short", "z", max_tokens=30)
    for _ in range(3):
        chain.turn("tokenizer")
    until(chain, "long", 2)
    chain.lose(1)
    chain.replace(2, blocks=8)
    chain.link()
    ends = chain.finished()
    assert list(ends) == ["long"]
    assert ends["long"].code == "context_length_exceeded"
    assert "64" in ends["long"].message
    chain.settle()
    ends = chain.finished()
    assert {n: e.reason for n, e in ends.items()} == {
        "long": "error", "clipped": "length", "short": "length",
    }  # fmt: skip
    assert chain.ids("clipped") == reference(list(b"y" * 20), 44)
    assert chain.ids("short") == reference(list(b"z"), 30)
    chain.assert_clean()


def test_room_that_comes_back_is_used() -> None:
    chain = chain_of(2, blocks=32, max_context=256)
    chain.ask("a", "y" * 20, max_tokens=60)
    until(chain, "a", 5)
    chain.replace(2, blocks=8)
    chain.link()
    until(chain, "a", 10)
    chain.replace(2, blocks=32)
    chain.link()
    chain.settle()
    assert chain.ids("a") == reference(list(b"y" * 20), 60)
    chain.assert_clean()


# -- another head ------------------------------------------------------------------------------


def deltas(chain: FakeChain, name: str = "a") -> list[tuple[str, tuple[int, ...], object]]:
    return [(d.text, d.token_ids, d.logprobs) for d in chain._deltas(name)]


STOPS = {
    **SETTINGS,
    "a stop string half matched": {"stop": ("~~",)},
    "characters of several bytes": {
        "temperature": 40.0, "seed": 3, "logprobs": 1, "ignore_eos": True,
        "logit_bias": tuple((i, 40.0) for i in (0xF0, 0x9F, 0x98, 0x80, 0xE6, 0x97, 0xA5)),
    },
}  # fmt: skip


@pytest.mark.parametrize("sampling", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("stages", [1, 3])
def test_another_head_goes_on_after_any_delta(stages: int, sampling: dict[str, object]) -> None:
    if sampling.get("stop"):
        text = whole(max_tokens=40).text("a")
        sampling = {"stop": (text[4:6] + "\x00", text[9:11] + "\x00", text[20:23])}
    sampling = {"seed": 1, **sampling, "max_tokens": 40}
    undisturbed = whole(**sampling)
    sent = deltas(undisturbed)
    assert len(sent) > 5 or sampling.get("grammar")
    for cut in range(len(sent) + 1):
        said = tuple(i for _, ids, _ in sent[:cut] for i in ids)
        chain = chain_of(stages)
        chain.ask("a", QUESTION, said=said, **sampling)
        chain.settle()
        rest = deltas(chain)
        joined = sent[:cut] + rest
        assert "".join(t for t, _, _ in joined) == undisturbed.text("a")
        assert [i for _, ids, _ in joined for i in ids] == undisturbed.ids("a")
        assert [r for _, _, more in joined for r in more] == [r for _, _, m in sent for r in m]  # type: ignore[attr-defined]
        end, expected = chain.finished()["a"], undisturbed.finished()["a"]
        assert (end.reason, end.usage) == (expected.reason, expected.usage)
        chain.assert_clean()


@pytest.mark.parametrize(
    ("said", "sampling", "reason"),
    [
        ((65, EOS), {}, "stop"),
        ((65, 66), {"stop_ids": (66,)}, "stop"),
        (tuple(b"one two"), {"stop": ("two",)}, "stop"),
        (tuple(b"12345678"), {}, "length"),
        (tuple(b"12345678"), {"stop": ("89",)}, "length"),
    ],
)
@pytest.mark.parametrize("ring", [False, True])
def test_an_answer_that_was_said_to_its_end_ends_at_once(
    said: tuple[int, ...], sampling: dict[str, object], reason: str, ring: bool
) -> None:
    chain = FakeChain(2)
    if ring:
        chain.link()
    chain.ask("a", QUESTION, said=said, **sampling)
    chain.settle()
    end = chain.finished()["a"]
    assert (end.reason, end.usage.completion_tokens) == (reason, len(said))
    assert chain._deltas("a") == []
    assert sum(e.calls for e in chain.executors) == 0
    chain.assert_clean()


@pytest.mark.parametrize(
    ("said", "code"), [((-1,), "bad_request"), ((VOCAB,), "bad_request"), ((65,) * 60, "context")]
)
def test_what_cannot_have_been_said_is_refused(said: tuple[int, ...], code: str) -> None:
    chain = chain_of(2, max_context=64)
    chain.ask("a", QUESTION, said=said, max_tokens=100)
    chain.settle()
    end = chain.finished()["a"]
    assert end.reason == "error"
    assert end.code.startswith(code)
    chain.assert_clean()


def test_a_head_that_breaks_later_goes_on_with_what_it_was_given() -> None:
    undisturbed = whole(max_tokens=40, presence_penalty=0.5, temperature=9.0, seed=3)
    said = tuple(undisturbed.ids("a")[:11])
    chain = chain_of(3)
    settings = {"max_tokens": 40, "presence_penalty": 0.5, "temperature": 9.0, "seed": 3}
    chain.ask("a", QUESTION, said=said, **settings)
    until(chain, "a", 6)
    chain.lose(1)
    chain.settle()
    chain.link()
    chain.settle()
    assert [*said, *chain.ids("a")] == undisturbed.ids("a")
    assert chain.finished()["a"].usage.completion_tokens == 40
    chain.assert_clean()
