"""The crux: however a model is split and batched, ``exact`` gives the same tokens."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from fleetapp.bench.prompts import PROMPTS
from fleetapp.engine.inprocess import InProcessPipeline, Prompt
from fleetapp.engine.reference import Reference
from fleetapp.engine.worker import Worker
from fleetapp.types import SamplingParams
from fleetapp.wire.activations import widened
from fleetapp.wire.frames import Open, Segment, Step
from tests.support.sample_model import MODEL
from tests.support.stages import encode, executors, library, pipeline

pytestmark = pytest.mark.model

GREEDY = SamplingParams()
SEEDED = SamplingParams(temperature=0.8, top_k=50, top_p=0.95, seed=7)
ENOUGH_TO_TELL = 24
FULL = 128


@functools.cache
def split(stages: int, threads: int = 1) -> InProcessPipeline:
    return pipeline(stages, threads=threads)


@functools.cache
def ids(kind: str) -> tuple[int, ...]:
    return tuple(encode(PROMPTS[kind]))


@functools.cache
def whole(kind: str, sampling: SamplingParams, tokens: int) -> list[int]:
    """One stage, one thread, alone."""
    return split(1).generate(ids(kind), tokens, sampling, ignore_eos=True).tokens


@functools.cache
def reference() -> Reference:
    return Reference(library().folder(MODEL), precision="exact", threads=1)


def together(stages: int, sampling: SamplingParams, tokens: int, threads: int = 1):
    prompts = [Prompt(ids(kind), sampling) for kind in PROMPTS]
    results = split(stages, threads).generate_batch(prompts, tokens, ignore_eos=True)
    return {kind: r.tokens for kind, r in zip(PROMPTS, results, strict=True)}


def test_one_stage_equals_the_unsplit_model_of_openvino_genai() -> None:
    for kind in ("short fact", "code"):
        expected = reference().generate(ids(kind), ENOUGH_TO_TELL).tokens
        assert whole(kind, GREEDY, ENOUGH_TO_TELL) == expected


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_three_stages_equal_one(sampling: SamplingParams) -> None:
    for kind in ("short fact", "code", "translation"):
        got = split(3).generate(ids(kind), ENOUGH_TO_TELL, sampling, ignore_eos=True).tokens
        assert got == whole(kind, sampling, ENOUGH_TO_TELL)


def test_eight_at_once_equal_each_alone() -> None:
    batch = together(3, SEEDED, 12)
    for kind in PROMPTS:
        assert batch[kind] == whole(kind, SEEDED, 12)


def test_a_request_that_ends_early_leaves_the_others_as_they_were() -> None:
    kinds = ("short fact", "list", "chat")
    alone = {kind: whole(kind, SEEDED, ENOUGH_TO_TELL) for kind in kinds}
    stop = alone["list"][5]
    pipe = InProcessPipeline(split(3).executors, eos_ids=[stop])
    results = pipe.generate_batch([Prompt(ids(k), SEEDED) for k in kinds], ENOUGH_TO_TELL)
    for kind, result in zip(kinds, results, strict=True):
        cut = alone[kind].index(stop) + 1 if stop in alone[kind] else ENOUGH_TO_TELL
        assert result.tokens == alone[kind][:cut]
    assert all(e.free_blocks == e.info.blocks for e in pipe.executors)


def test_prefill_in_chunks_among_decodes_changes_nothing() -> None:
    pipe = InProcessPipeline(split(3).executors, prefill_chunk=5)
    kinds = ("reasoning", "short fact", "chat")
    results = pipe.generate_batch([Prompt(ids(k), SEEDED) for k in kinds], 12, ignore_eos=True)
    for kind, result in zip(kinds, results, strict=True):
        assert result.tokens == whole(kind, SEEDED, 12)


def test_under_fast_a_split_computes_the_very_same_numbers() -> None:
    """Other batches round differently under fast; another split does not."""
    prompt = np.array(ids("reasoning"), np.int64)
    logits = []
    for stages in (1, 3):
        pipe = InProcessPipeline(executors(stages, precision="fast"))
        for executor in pipe.executors:
            executor.open(0, 1)
        rows = [pipe.forward((Segment(0, 1, 0, len(prompt), True),), prompt).copy()]
        for position in range(len(prompt), len(prompt) + 4):
            token = rows[-1].argmax(axis=1)
            rows.append(pipe.forward((Segment(0, 1, position, 1, True),), token).copy())
        logits.append(np.concatenate(rows))
    assert np.array_equal(*logits)


def test_what_a_fast_stage_sends_is_what_it_computed() -> None:
    assert executors(3)[0].info.activations == "f32"
    first = executors(3, precision="fast")[0]
    if first.info.activations == "f32":
        pytest.skip("this CPU computes in f32 under fast too")
    worker = Worker(first, device_id="d", fast=True)
    worker.reset(1, 0)
    worker.open(Open(1, 0, 1, GREEDY))
    prompt = np.array(ids("chat"), np.int64)
    segments = (Segment(0, 1, 0, len(prompt), True),)
    outcome = worker.step(1, segments, prompt)
    assert isinstance(outcome.frame, Step)
    assert outcome.payload is not None
    assert outcome.frame.dtype == first.info.activations
    sent = widened(outcome.payload, outcome.frame.dtype)
    assert np.array_equal(sent, first.forward(segments, prompt))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_model_equals_openvino_genai_for_every_kind() -> None:
    for kind in PROMPTS:
        assert whole(kind, GREEDY, FULL) == reference().generate(ids(kind), FULL).tokens


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sampling", [GREEDY, SEEDED], ids=["greedy", "seeded"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_every_split_alone_and_together_gives_the_same_tokens(
    stages: int, threads: int, sampling: SamplingParams
) -> None:
    batch = together(stages, sampling, FULL, threads)
    for kind in PROMPTS:
        expected = whole(kind, sampling, FULL)
        alone = split(stages, threads).generate(ids(kind), FULL, sampling, ignore_eos=True)
        assert alone.tokens == expected, kind
        assert batch[kind] == expected, kind


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_long_prompts_agree_too() -> None:
    rng = np.random.default_rng(1)
    for length in (31, 32, 33, 500, 900):
        prompt = rng.integers(100, 40_000, length).tolist()
        expected = split(1).generate(prompt, 16, SEEDED, ignore_eos=True).tokens
        assert split(3).generate(prompt, 16, SEEDED, ignore_eos=True).tokens == expected
