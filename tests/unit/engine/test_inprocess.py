from itertools import pairwise

import pytest

from fleetapp.engine.inprocess import InProcessPipeline, Prompt
from fleetapp.errors import BadRequest, NoCapacity
from fleetapp.types import SamplingParams
from tests.support.fake_executor import LAYERS, FakeExecutor

SEEDED = SamplingParams(temperature=1.0, seed=3)
PROMPTS = [Prompt([65, 66, 67], SEEDED), Prompt([70], SEEDED), Prompt([80] * 30, SEEDED)]


def split(*cuts: int, **kw: int) -> list[FakeExecutor]:
    bounds = [0, *cuts, LAYERS]
    return [FakeExecutor(a, b, **kw) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("cuts", [(3,), (1, 2), (1, 2, 3, 4, 5)])
@pytest.mark.parametrize("chunk", [1, 4, 512])
def test_neither_split_nor_chunks_nor_company_change_the_tokens(cuts, chunk: int) -> None:
    alone = [
        InProcessPipeline(split()).generate(p.token_ids, 20, p.sampling).tokens for p in PROMPTS
    ]
    stages = split(*cuts)
    results = InProcessPipeline(stages, prefill_chunk=chunk).generate_batch(PROMPTS, 20)
    assert [r.tokens for r in results] == alone
    assert all(s.free_blocks == s.info.blocks for s in stages)


def test_a_request_ends_at_any_of_the_end_ids_or_at_its_budget() -> None:
    tokens = InProcessPipeline(split()).generate([65], 20, SEEDED).tokens
    assert len(tokens) == 20
    pipe = InProcessPipeline(split(), eos_ids=[9999, tokens[4], tokens[7]])
    end = min(tokens.index(tokens[4]), tokens.index(tokens[7]))
    assert pipe.generate([65], 20, SEEDED).tokens == tokens[: end + 1]
    assert pipe.generate([65], 20, SEEDED, ignore_eos=True).tokens == tokens


def test_every_token_has_its_time_and_is_told_as_it_comes() -> None:
    told: list[tuple[int, int]] = []
    pipe = InProcessPipeline(split(2))
    results = pipe.generate_batch(PROMPTS, 5, on_token=lambda i, t: told.append((i, t)))
    for i, result in enumerate(results):
        assert [t for j, t in told if j == i] == result.tokens
        assert result.times == sorted(result.times)
        assert len(result.times) == len(result.tokens)


def test_a_failure_frees_what_it_held() -> None:
    stages = split(3, blocks=4)
    with pytest.raises(NoCapacity):
        InProcessPipeline(stages).generate_batch(PROMPTS, 60)
    assert all(s.free_blocks == s.info.blocks for s in stages)


def test_an_empty_prompt_and_half_a_pipeline_are_refused() -> None:
    with pytest.raises(BadRequest):
        InProcessPipeline(split()).generate([], 5)
    for broken in ([], split(3)[:1], split(3)[1:]):
        with pytest.raises(BadRequest):
            InProcessPipeline(broken)
