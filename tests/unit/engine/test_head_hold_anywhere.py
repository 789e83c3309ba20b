"""Rings that break anywhere, requests of every kind: each stream is that of a quiet run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetapp.engine import pipe
from fleetapp.engine.drafting.controller import Controller
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.types import Grammar, SamplingParams
from tests.support.drafters import Scripted
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import EOS, VOCAB, reference

PROMPTS = ("a", "Who goes there?", "Who goes where?", "x" * 40, "y" * 90)
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 30.0},
    {"temperature": 60.0, "logprobs": 2, "ignore_eos": True},
    {"temperature": 9.0, "repetition_penalty": 1.3, "frequency_penalty": 0.4},
    {"presence_penalty": 0.8, "logit_bias": ((EOS, -50.0), (101, 2.0))},
    {"temperature": 30.0, "grammar": Grammar("regex", "[a-f]{4,12}")},
    {"temperature": 20.0, "priority": "batch"},
)


@st.composite
def request(draw: st.DrawFn) -> pipe.Generate:
    """Without a name."""
    prompt = draw(st.sampled_from(PROMPTS))
    changes = draw(st.sampled_from(CHANGES))
    params = SamplingParams(
        **{**changes, "max_tokens": draw(st.integers(1, 25)), "seed": draw(st.integers(0, 3))}
    )
    if "grammar" not in changes and draw(st.booleans()):
        text = quiet(pipe.Generate("q", params, prompt=prompt))[0]
        start = draw(st.integers(0, max(0, len(text) - 1)))
        stop = text[start : start + draw(st.integers(1, 4))]
        almost = text[: draw(st.integers(1, 5))] + "\x00"
        stops = tuple(s for s in (stop, almost) if s)
        params = SamplingParams(**{**_fields(params), "stop": stops})
    return pipe.Generate("", params, prompt=prompt)


def _fields(params: SamplingParams) -> dict[str, Any]:
    return {name: getattr(params, name) for name in params.__struct_fields__}


Outcome = tuple[str, tuple[int, ...], tuple[pipe.TokenLogprob, ...], str, int]


def outcome(chain: FakeChain, name: str) -> Outcome:
    """Text, tokens, reports, end and length of an answer."""
    end = chain.finished()[name]
    reports = tuple(r for d in chain._deltas(name) for r in d.logprobs)
    used = end.usage.completion_tokens
    return chain.text(name), tuple(chain.ids(name)), reports, end.reason, used


@cache
def quiet(asked: pipe.Generate) -> Outcome:
    """One request alone on a chain that nothing happens to."""
    chain = FakeChain(1, blocks=400)
    chain.link()
    chain.head.handle(asked)
    chain.settle()
    return outcome(chain, asked.request_id)


def drafts(patterns: Sequence[tuple[int, int]]) -> Speculator:
    """Of which some are right, for greedy answers at least."""
    drafter = Scripted(
        reference, lambda turn: patterns[turn % len(patterns)], lambda token: (token + 1) % VOCAB
    )
    return Speculator([drafter], Controller(fixed=5))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    stages=st.integers(1, 3),
    asked=st.lists(request(), min_size=1, max_size=5),
    patterns=st.none() | st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1),
    data=st.data(),
)
def test_wherever_rings_break_every_stream_is_that_of_a_quiet_run(
    stages: int,
    asked: list[pipe.Generate],
    patterns: list[tuple[int, int]] | None,
    data: st.DataObject,
) -> None:
    speculator = drafts(patterns) if patterns is not None else None
    chain = FakeChain(stages, blocks=40, slots=3, speculator=speculator)
    if data.draw(st.booleans()):
        chain.link()
    names: list[str] = []
    cancelled: set[str] = set()
    breaks = 0
    for _ in range(data.draw(st.integers(5, 60))):
        running = sorted(set(names) - set(chain.finished()))
        choices = [*chain.choices(), "pump", "run", "run"]
        choices += ["ask"] * 2 if len(names) < len(asked) else []
        choices += ["break", "leave", "link"] if breaks < 5 else []
        choices += ["cancel"] if running and not cancelled else []
        match data.draw(st.sampled_from(choices)):
            case "ask":
                wanted = asked[len(names)]
                names.append(f"r{len(names)}")
                chain.head.handle(pipe.Generate(names[-1], wanted.sampling, prompt=wanted.prompt))
            case "run":
                for _ in range(data.draw(st.integers(1, 60))):
                    chain.head.pump()
                    for choice in chain.choices()[-1:]:
                        chain.turn(choice)
            case "cancel":
                name = data.draw(st.sampled_from(running))
                cancelled.add(name)
                chain.head.handle(pipe.Cancel(name))
            case "break" if chain.head._chain is not None and chain.stages > 1:
                breaks += 1
                chain.lose(data.draw(st.integers(1, chain.stages - 1)))
            case "leave":
                for node in chain.nodes:
                    node.handle(pipe.Unlink(hold=True))
            case "link":
                breaks += 1
                if stages > 1 and data.draw(st.booleans()):
                    size = data.draw(st.sampled_from([4, 8, 16]))
                    chain.replace(data.draw(st.integers(2, 3)), blocks=400 // size, block_size=size)
                chain.link()
            case choice if choice in chain.choices() or choice == "pump":
                chain.turn(choice)
            case _:
                pass
    chain.settle()
    if set(chain.finished()) != set(names):
        assert chain.head._chain is None, "only without a ring may anything be left"
    chain.link()
    chain.settle()
    assert set(chain.finished()) == set(names)
    for name, wanted in zip(names, asked, strict=False):
        expected = quiet(pipe.Generate("q", wanted.sampling, prompt=wanted.prompt))
        got = outcome(chain, name)
        if name in cancelled and got[3] == "cancelled":
            assert expected[1][: len(got[1])] == got[1]
        else:
            assert got == expected
    chain.assert_clean()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), request(), st.lists(st.integers(0, 30), max_size=3))
def test_head_after_head_goes_on_where_the_one_before_was_cut_off(
    stages: int, asked: pipe.Generate, cuts: list[int]
) -> None:
    """Each dies after some of its Deltas, whatever else it had computed."""
    expected = quiet(pipe.Generate("q", asked.sampling, prompt=asked.prompt))
    said: list[int] = []
    text, reports = "", []
    for cut in [*cuts, None]:
        chain = FakeChain(stages, blocks=60)
        chain.link()
        chain.head.handle(pipe.Generate("a", asked.sampling, prompt=asked.prompt, said=tuple(said)))
        chain.settle()
        for delta in chain._deltas("a")[:cut]:
            said += delta.token_ids
            text += delta.text
            reports += delta.logprobs
        chain.assert_clean()
    end = chain.finished()["a"]
    got = text, tuple(said), tuple(reports), end.reason, end.usage.completion_tokens
    assert got == expected
