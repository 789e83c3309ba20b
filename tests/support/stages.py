"""Shards of the sample model and executors made from them."""

from __future__ import annotations

import functools
from itertools import pairwise
from pathlib import Path

import numpy as np

from fleetapp.engine.executor.base import Executor
from fleetapp.engine.executor.paged import PagedExecutor, load
from fleetapp.engine.inprocess import InProcessPipeline
from fleetapp.engine.text import TokenizerHost
from fleetapp.models.library import Library
from fleetapp.types import LayerRange, Precision
from fleetapp.wire.frames import Segment
from tests.support.sample_model import MODEL, NobodySigns, sample_library

LAYERS = 30
CACHE = 64 << 20


@functools.cache
def library() -> Library:
    return Library(sample_library(), NobodySigns())


@functools.cache
def shard(start: int, stop: int) -> Path:
    return library().stage(MODEL, LayerRange(start, stop)).path


def shards(stages: int) -> list[Path]:
    """The model cut into as many stages, as equal as they can be."""
    bounds = [round(i * LAYERS / stages) for i in range(stages + 1)]
    return [shard(a, b) for a, b in pairwise(bounds)]


def executors(
    stages: int, *, precision: Precision = "exact", threads: int = 1, kv_bytes: int = CACHE
) -> list[PagedExecutor]:
    return [
        load(path, precision=precision, threads=threads, kv_bytes=kv_bytes, max_context=1024)
        for path in shards(stages)
    ]


def pipeline(stages: int, *, threads: int = 1) -> InProcessPipeline:
    return InProcessPipeline(executors(stages, threads=threads))


def encode(text: str) -> list[int]:
    return TokenizerHost(shard(0, LAYERS) / "tokenizer", None, context=1024).encode_prompt(text)


def one(
    executor: Executor,
    ids: list[int],
    past: int = 0,
    *,
    slot: int = 0,
    generation: int = 1,
    sample: bool = True,
):
    """One segment of one slot through a single stage; a copy of its logits."""
    segment = Segment(slot, generation, past, len(ids), sample)
    return executor.forward((segment,), np.array(ids, np.int64)).copy()
