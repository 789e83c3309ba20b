"""With drafts or without, ``exact`` gives the same tokens: the real model, drafts of any number."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest

from fleetapp.bench.prompts import PROMPTS
from fleetapp.engine import pipe
from fleetapp.engine.drafting.base import Drafter
from fleetapp.engine.drafting.controller import Controller
from fleetapp.engine.drafting.lookup import Lookup
from fleetapp.engine.drafting.model import DraftModel
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.executor.paged import PagedExecutor
from fleetapp.types import SamplingParams
from tests.support.fake_chain import FakeChain
from tests.support.stages import encode, executors

pytestmark = pytest.mark.model

GREEDY = SamplingParams(ignore_eos=True)
SEEDED = SamplingParams(temperature=0.8, top_k=50, top_p=0.95, seed=7, ignore_eos=True)
CALM = SamplingParams(temperature=0.3, min_p=0.05, repetition_penalty=1.1, seed=11, ignore_eos=True)
FULL = 128


@functools.cache
def stages_of(count: int) -> list[PagedExecutor]:
    return executors(count)


@functools.cache
def draft_executor() -> PagedExecutor:
    """The same model stands in for a smaller one with its vocabulary."""
    return executors(1)[0]


@functools.cache
def ids(kind: str) -> tuple[int, ...]:
    return tuple(encode(PROMPTS[kind]))


def run(
    stages: int,
    kinds: Sequence[str],
    params: SamplingParams,
    tokens: int,
    drafter: Drafter | None = None,
    k: int = 0,
) -> tuple[dict[str, list[int]], int]:
    """Tokens of all kinds at once, and how many drafts were right."""
    controller = Controller(fixed=k)
    speculator = Speculator([drafter] if drafter else [], controller)
    chain = FakeChain(executors=stages_of(stages), stages=stages, speculator=speculator)
    chain.link()
    for kind in kinds:
        params = SamplingParams(
            **{f: getattr(params, f) for f in params.__struct_fields__} | {"max_tokens": tokens}
        )
        chain.head.handle(pipe.Generate(kind, params, token_ids=ids(kind)))
    chain.settle()
    return {kind: chain.ids(kind) for kind in kinds}, sum(controller.tally.accepted)


@functools.cache
def alone(kind: str, params: SamplingParams, tokens: int) -> list[int]:
    """One stage, no drafts, nobody else."""
    return run(1, [kind], params, tokens)[0][kind]


def drafter_of(name: str) -> Drafter:
    return Lookup() if name == "lookup" else DraftModel(draft_executor())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("drafter", "params"),
    [("lookup", CALM), pytest.param("model", SEEDED, marks=pytest.mark.slow)],
)
def test_drafts_change_no_token_of_eight_answers_at_once(
    drafter: str, params: SamplingParams
) -> None:
    got, right = run(2, list(PROMPTS), params, 10, drafter_of(drafter), 4)
    for kind in PROMPTS:
        assert got[kind] == alone(kind, params, 10), kind
    assert right or drafter == "lookup"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("stages", "drafter", "k", "least"), [(1, "model", 7, 24), (3, "lookup", 10, 0)]
)
def test_drafts_change_no_token_of_an_answer_alone(
    stages: int, drafter: str, k: int, least: int
) -> None:
    """A draft model that is the model itself is nearly always right."""
    got, right = run(stages, ["list"], GREEDY, 33, drafter_of(drafter), k)
    assert got["list"] == alone("list", GREEDY, 33)
    assert right >= least


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("k", range(1, 11))
@pytest.mark.parametrize("drafter", ["lookup", "model"])
@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_every_number_of_drafts_alone_and_together_gives_the_same_tokens(
    stages: int, params: SamplingParams, drafter: str, k: int
) -> None:
    together, _ = run(stages, list(PROMPTS), params, FULL, drafter_of(drafter), k)
    for i, kind in enumerate(PROMPTS):
        expected = alone(kind, params, FULL)
        assert together[kind] == expected, kind
        if i % 4 != k % 4:
            continue  # over all k each kind is alone often enough
        got, _ = run(stages, [kind], params, FULL, drafter_of(drafter), k)
        assert got[kind] == expected, kind
