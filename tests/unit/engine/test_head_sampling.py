"""What a request may ask of sampling, around whole rings of the tiny model."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fleetapp.engine.answer import MAX_HISTORY, check_history
from fleetapp.engine.grammar import MAX_TEXT
from fleetapp.engine.pipe import TokenLogprob
from fleetapp.engine.sampling import Context, log_probabilities, verify
from fleetapp.errors import ContextTooLong
from fleetapp.types import Grammar, SamplingParams
from fleetapp.wire.codec import encode
from fleetapp.wire.frames import Open, Segment
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import EOS, FakeExecutor
from tests.support.fake_text import VOCABULARY, decode_bytes

PENALTIES = {
    "repetition_penalty": 1.3,
    "presence_penalty": 0.7,
    "frequency_penalty": 0.4,
    "logit_bias": ((101, 3.0), (EOS, -100.0)),
}
OTHERS = {"temperature": 9.0, "max_tokens": 12}


def chain_of(stages: int) -> FakeChain:
    chain = FakeChain(stages, blocks=400)
    chain.link()
    return chain


def expected(prompt: bytes, params: SamplingParams, count: int) -> list[tuple[int, float | None]]:
    """Tokens and log probabilities of the whole model, one position at a time."""
    executor = FakeExecutor(blocks=1 << 20)
    executor.open(0, 1)
    context = Context(params, tuple(prompt))
    ids, past = list(prompt), 0
    answer: list[tuple[int, float | None]] = []
    while len(answer) < count:
        logits = executor.forward(
            (Segment(0, 1, past, len(ids), sample=True),), np.array(ids, np.int64)
        )
        past += len(ids)
        (choice,) = verify(logits, (), context, past)
        if params.logprobs is not None:
            assert choice.logprob == log_probabilities(logits[0], choice.token, 0)[0]
        ids = [choice.token]
        answer.append((choice.token, choice.logprob))
    return answer


def reports(chain: FakeChain, request_id: str) -> list[TokenLogprob]:
    return [r for d in chain._deltas(request_id) for r in d.logprobs]


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("crowd", [0, 5])
@pytest.mark.parametrize("temperature", [0.0, 6.0])
def test_penalties_depend_on_nothing_but_the_request(
    stages: int, crowd: int, temperature: float
) -> None:
    chain = chain_of(stages)
    settings = {**PENALTIES, "temperature": temperature, "seed": 3}
    chain.ask("a", "to be or not to be", max_tokens=40, ignore_eos=True, **settings)
    for i in range(crowd):
        chain.ask(f"o{i}", "x" * (9 * i + 1), presence_penalty=0.1 * i, **OTHERS)
    chain.settle()
    wanted = expected(b"to be or not to be", SamplingParams(**settings), 40)
    assert chain.ids("a") == [t for t, _ in wanted]
    chain.assert_clean()


@pytest.mark.parametrize("stages", [1, 3])
def test_every_token_of_the_text_has_its_log_probability(stages: int) -> None:
    chain = chain_of(stages)
    settings = {"temperature": 60.0, "seed": 4, "logprobs": 3}  # many bytes, few characters
    chain.ask("a", "bytes", max_tokens=80, ignore_eos=True, **settings)
    chain.ask("b", "bytes", max_tokens=9)
    chain.settle()
    wanted = expected(b"bytes", SamplingParams(**settings), 80)
    got = reports(chain, "a")
    assert [(r.token, pytest.approx(r.logprob)) for r in got] == wanted
    assert b"".join(VOCABULARY.text(r.token) for r in got).decode("utf-8", "ignore") == (
        chain.text("a")
    )
    assert all(len(r.top) == 3 for r in got)
    assert all(a.text == VOCABULARY.name(a.token) for r in got for a in r.top)
    assert reports(chain, "b") == []


def test_a_token_that_ends_the_answer_has_no_report() -> None:
    chain = chain_of(2)
    bias = ((EOS, 300.0),)
    chain.ask("a", "end", max_tokens=9, logprobs=0, logit_bias=bias)
    chain.ask("b", "end", max_tokens=3, logprobs=0, logit_bias=bias, ignore_eos=True)
    chain.settle()
    assert (chain.finished()["a"].reason, reports(chain, "a")) == ("stop", [])
    assert [r.text for r in reports(chain, "b")] == [b"<299>"] * 3
    assert chain.text("b") == ""


def test_what_a_stop_string_swallows_is_not_reported() -> None:
    plain = chain_of(1)
    plain.ask("a", "cut me", max_tokens=30)
    plain.settle()
    stop = plain.text("a")[10:14]
    chain = chain_of(1)
    chain.ask("a", "cut me", max_tokens=30, stop=(stop,), logprobs=1)
    chain.settle()
    assert chain.finished()["a"].reason == "stop"
    shown = chain.text("a")
    assert shown == plain.text("a")[: plain.text("a").find(stop)]
    assert b"".join(r.text for r in reports(chain, "a")).decode() == shown


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_a_stop_id_ends_the_answer_and_is_not_shown(ignore_eos: bool) -> None:
    plain = chain_of(2)
    plain.ask("a", "ids", max_tokens=20)
    plain.settle()
    ids = plain.ids("a")
    stop = ids[7]
    chain = chain_of(2)
    chain.ask("a", "ids", max_tokens=20, stop_ids=(stop, 5), ignore_eos=ignore_eos)
    chain.settle()
    at = ids.index(stop)
    assert chain.ids("a") == ids[: at + 1]
    assert chain.text("a") == decode_bytes(ids[:at])
    end = chain.finished()["a"]
    assert (end.reason, end.usage.completion_tokens) == ("stop", at + 1)
    chain.assert_clean()


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"enum": [1, 22, 333]}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_an_answer_follows_its_schema_whatever_runs_beside_it() -> None:
    texts = []
    for stages, crowd in [(1, 0), (3, 0), (3, 4)]:
        chain = chain_of(stages)
        grammar = Grammar("json_schema", json.dumps(SCHEMA))
        for i in range(crowd):
            chain.ask(f"o{i}", "other" * i + "s", grammar=Grammar("regex", "[ab]{5}"), **OTHERS)
        chain.ask("a", "who", max_tokens=200, temperature=30.0, seed=11, grammar=grammar)
        chain.settle()
        assert chain.finished()["a"].reason == "stop"
        value = json.loads(chain.text("a"))
        assert value.keys() == {"name", "age"}
        texts.append(chain.text("a"))
        for i in range(crowd):
            assert len(chain.text(f"o{i}")) == 5
            assert set(chain.text(f"o{i}")) <= set("ab")
        chain.assert_clean()
    assert len(set(texts)) == 1


@pytest.mark.parametrize(
    ("sampling", "reason"),
    [
        ({"grammar": Grammar("json_schema", '{"type": "strin"}')}, "strin"),
        ({"grammar": Grammar("regex", "[")}, "unclosed"),
        ({"logit_bias": ((300, 1.0),)}, "logit_bias"),
        ({"stop_ids": (-1,)}, "stop"),
        ({"min_p": 1.5}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"presence_penalty": float("nan")}, "presence_penalty"),
        ({"frequency_penalty": 3.0}, "frequency_penalty"),
        ({"logprobs": 21}, "logprobs"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_computing(sampling, reason: str) -> None:
    chain = chain_of(2)
    chain.ask("a", "no", **sampling)
    chain.settle()
    end = chain.finished()["a"]
    assert (end.reason, end.code) == ("error", "bad_request")
    assert reason in end.message
    assert sum(e.calls for e in chain.executors) == 0
    chain.assert_clean()


def test_a_text_that_no_frame_could_carry_is_refused() -> None:
    check_history(MAX_HISTORY)
    with pytest.raises(ContextTooLong, match="penalties"):
        check_history(MAX_HISTORY + 1)
    opening = Open(
        1, 1, 1,
        SamplingParams(
            grammar=Grammar("json_schema", "x" * MAX_TEXT),
            logit_bias=tuple((2**31 - i, 1.5) for i in range(1024)),
        ),
        history=tuple(200_000 + i for i in range(MAX_HISTORY)),
    )  # fmt: skip
    assert len(b"".join(bytes(b) for b in encode(opening))) < 1 << 20
