"""Counters of a runner."""

from __future__ import annotations

import psutil

from fleetapp.engine.pipe import ChainStats, RunnerStats
from fleetapp.engine.transport import Transport
from fleetapp.engine.worker import Worker


def runner_stats(
    worker: Worker,
    transport: Transport,
    *,
    running: int = 0,
    waiting: int = 0,
    chain: ChainStats | None = None,
) -> RunnerStats:
    """What the runner answers to QueryStats."""
    return RunnerStats(
        open_slots=worker.open_slots,
        free_blocks=worker.executor.free_blocks,
        blocks=worker.executor.info.blocks,
        kept_blocks=worker.executor.kept_blocks,
        frames=worker.frames,
        tokens=worker.tokens,
        sent_bytes=transport.sent_bytes,
        received_bytes=transport.received_bytes,
        running=running,
        waiting=waiting,
        compute_seconds=worker.compute_seconds,
        rss=psutil.Process().memory_info().rss,
        chain=chain,
    )
