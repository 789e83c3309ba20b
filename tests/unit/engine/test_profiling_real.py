"""Measuring real layers: it says something sensible, and answers are the same afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from fleetapp.engine import pipe
from fleetapp.engine.executor.paged import load
from fleetapp.engine.profiling import Profiler
from fleetapp.engine.worker import Worker
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import Open, Segment, Tokens
from tests.support.stages import executors, shard

pytestmark = pytest.mark.model

PROMPT = np.array([504, 3575, 282, 4649, 314, 260, 1528, 28, 30, 198])


def answer(worker: Worker) -> list[int]:
    """A few greedy tokens."""
    worker.open(Open(1, 0, 1, SamplingParams()))
    tokens, past, inputs = [], 0, PROMPT
    for step in range(5):
        outcome = worker.step(step, (Segment(0, 1, past, len(inputs), True),), inputs)
        assert isinstance(outcome.frame, Tokens)
        past += len(inputs)
        tokens.append(outcome.frame.tokens[0].token)
        inputs = np.array(tokens[-1:])
    return tokens


@pytest.mark.slow
def test_a_whole_model_measures_itself_and_answers_as_before() -> None:
    executor = executors(1)[0]
    executor.reset()
    worker = Worker(executor, device_id="d", fast=False)
    before = answer(worker)
    worker.reset(1, 0)
    order = pipe.Measure(widths=(1, 4), pieces=(32, 128), seconds=5.0)
    found = Profiler(worker, order, lambda: False).run()
    assert found.complete
    assert executor.free_blocks == executor.info.blocks
    chosen = {p.size: p.seconds for p in found.chosen}
    prefill = {p.size: p.seconds for p in found.prefill}
    assert 0 < chosen[1] < 30, "larger sizes are left out on a busy machine"
    assert 0 < prefill[32] < 30
    assert answer(worker) == before


def test_a_middle_stage_measures_itself() -> None:
    middle = load(shard(14, 16), precision="exact", threads=1, kv_bytes=8 << 20)
    worker = Worker(middle, device_id="d", fast=False)
    order = pipe.Measure(widths=(1, 2), pieces=(32,), seconds=2.0)
    found = Profiler(worker, order, lambda: False).run()
    assert found.complete
    assert found.chosen == found.decode
    assert [p.size for p in found.decode] == [1, 2]
