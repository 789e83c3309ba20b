"""Penalties, grammars and log probabilities where positions are computed again or guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleetapp.engine.drafting.controller import Controller
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.types import Grammar
from tests.support.drafters import Scripted
from tests.support.fake_chain import FakeChain
from tests.support.fake_executor import EOS

SCHEMA = json.dumps({"type": "array", "items": {"enum": ["one", "zwei", "三"]}, "minItems": 8})
ASKED: dict[str, dict[str, Any]] = {
    "penalties": {
        "repetition_penalty": 1.3,
        "presence_penalty": 0.7,
        "frequency_penalty": 0.4,
        "temperature": 6.0,
        "ignore_eos": True,
        "logprobs": 2,
    },
    "greedy penalties": {"presence_penalty": 1.5, "frequency_penalty": 0.9},
    "schema": {"temperature": 20.0, "grammar": Grammar("json_schema", SCHEMA)},
    "regex": {"temperature": 9.0, "grammar": Grammar("regex", r"([a-f]{3} ){10}"), "logprobs": 0},
    "biased": {"temperature": 5.0, "logit_bias": ((120, 20.0), (EOS, -50.0))},
}
COUNT = 60


def ask(chain: FakeChain) -> dict[str, tuple[list[int], str, list[tuple[int, float]]]]:
    """All of them at once, and what became of them."""
    for seed, (name, sampling) in enumerate(ASKED.items()):
        chain.ask(name, f"{name} again and again", max_tokens=COUNT, seed=seed, **sampling)
    chain.settle()
    found = {}
    for name in ASKED:
        reports = [(r.token, r.logprob) for d in chain._deltas(name) for r in d.logprobs]
        found[name] = (chain.ids(name), chain.text(name), reports)
        assert chain.finished()[name].reason in ("stop", "length")
    chain.assert_clean()
    return found


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, tuple[list[int], str, list[tuple[int, float]]]]:
    chain = FakeChain(2, blocks=400)
    chain.link()
    return ask(chain)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("spill_blocks", [0, 40])
def test_being_preempted_changes_nothing(undisturbed, stages: int, spill_blocks: int) -> None:
    chain = FakeChain(stages, blocks=24, spill_blocks=spill_blocks)
    chain.link()
    assert chain.head._chain is not None
    scheduler = chain.head._chain.scheduler
    assert ask(chain) == undisturbed
    assert scheduler.preemptions > 0


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("blocks", [400, 24])
def test_drafts_change_nothing(undisturbed, stages: int, k: int, blocks: int) -> None:
    prompts = {n: list(f"{n} again and again".encode()) for n in ASKED}

    def truth(text: list[int] | tuple[int, ...], count: int) -> list[int]:
        name = next(n for n, p in prompts.items() if list(text[: len(p)]) == p)
        rest = undisturbed[name][0][len(text) - len(prompts[name]) :]
        return (rest + [EOS] * count)[:count]

    drafter = Scripted(truth, lambda turn: (k, turn % (k + 1)), lambda token: (token + 1) % 128)
    chain = FakeChain(stages, blocks=blocks, speculator=Speculator([drafter], Controller(fixed=k)))
    chain.link()
    assert ask(chain) == undisturbed
    assert any(right for _, right in drafter.drafted)


def test_a_text_that_is_there_already_is_not_computed_and_yet_counted(undisturbed) -> None:
    """The prompt's tokens count for the repetition penalty where its blocks are reused."""
    chain = FakeChain(2, blocks=400)
    chain.link()
    sampling = {"max_tokens": COUNT, "seed": 0, **ASKED["penalties"]}
    for name in ("first", "second"):
        chain.ask(name, "penalties again and again", **sampling)
        chain.settle()
        assert chain.ids(name) == undisturbed["penalties"][0]
    assert chain.finished()["second"].usage.cached_tokens > 0
