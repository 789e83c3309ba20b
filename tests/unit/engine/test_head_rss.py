"""Two thousand prompts, no two of one length, through the whole engine in one process."""

from __future__ import annotations

import gc

import numpy as np
import psutil
import pytest

from fleetapp.engine import pipe
from fleetapp.engine.executor.paged import load
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.types import SamplingParams
from tests.support.fake_chain import FakeChain
from tests.support.stages import shards

pytestmark = [pytest.mark.model, pytest.mark.slow]

MB = 1 << 20
LENGTHS = 2000


@pytest.mark.timeout(7200)
def test_memory_is_flat_over_two_thousand_lengths() -> None:
    """All begin alike, as turns of a chat do, so that new parts are of 1 to 200 tokens.

    The cache is so small that all of its pages are resident after the warm-up.
    """
    executors = [
        load(
            path,
            precision="fast",
            threads=1,
            kv_bytes=26 * MB,
            max_context=2100,
            spilled=Spilled(8 * MB),
        )
        for path in shards(2)
    ]
    chain = FakeChain(2, executors=executors, fast=True)
    chain.link()
    rng = np.random.default_rng(1)
    text = rng.integers(100, 40_000, LENGTHS + 8).tolist()
    process = psutil.Process()

    def run(lengths: list[int]) -> int:
        for length in lengths:
            new = min(length, int(rng.integers(1, 200)))
            ids = (*text[: length - new], *rng.integers(100, 40_000, new).tolist())
            params = SamplingParams(max_tokens=2, ignore_eos=True)
            name = f"n{length}-{len(chain.sent)}"
            chain.head.handle(pipe.Generate(name, params, token_ids=ids))
            chain.settle()
            end = chain.sent[-1]
            assert isinstance(end, pipe.Finished)
            assert end.reason == "length"
            chain.sent.clear()
        gc.collect()
        return int(process.memory_info().rss)

    order = rng.permutation(np.arange(1, LENGTHS + 1)).tolist()
    run([LENGTHS])
    begin = run(order[:600])
    later = (run(order[600:]) - begin) / MB
    assert later < 60, f"{later:.0f} MiB more"
    for executor in executors:
        assert executor.free_blocks + executor.kept_blocks == executor.info.blocks
