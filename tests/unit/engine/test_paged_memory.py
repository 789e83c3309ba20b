"""Every new prompt length is a new shape; memory must not remember them all (openvino#34289)."""

import gc

import numpy as np
import psutil
import pytest

from fleetapp.engine.executor.paged import load
from fleetapp.wire.frames import Segment
from tests.support.stages import shard

pytestmark = pytest.mark.model

MB = 1 << 20


def growth(lengths: list[int], warm: int, start: int, stop: int) -> tuple[float, float]:
    """RSS gained while the first ``warm`` lengths are run, and while the rest are, in MiB."""
    stage = load(shard(start, stop), precision="fast", threads=1, kv_bytes=64 << 20)
    rows = np.random.default_rng(0).standard_normal((max(lengths), 576), dtype=np.float32)
    process = psutil.Process()
    stage.open(0, 1)

    def run(part: list[int]) -> int:
        for n in part:
            stage.forward((Segment(0, 1, 0, n, True),), rows[:n])
            stage.forward((Segment(0, 1, n, 1, True),), rows[:1])
        gc.collect()
        return process.memory_info().rss

    run([max(lengths)])
    begin = process.memory_info().rss
    warmed = run(lengths[:warm])
    return (warmed - begin) / MB, (run(lengths[warm:]) - warmed) / MB


def test_memory_is_flat_over_a_hundred_new_lengths() -> None:
    order = np.random.default_rng(1).permutation(np.arange(1, 301)).tolist()
    _, later = growth(order, 200, 14, 16)
    assert later < 60  # without a bound on its kernels: about 150


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_flat_over_six_hundred_lengths() -> None:
    order = np.random.default_rng(1).permutation(np.arange(1, 701)).tolist()
    _, later = growth(order, 200, 10, 20)
    assert later < 60  # without a bound: 856 MB
