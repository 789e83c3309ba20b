"""``bench control``, small: every promised check is measured in its own run."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from fleetapp.bench import control
from fleetapp.bench.common import at_most
from fleetapp.bench.hastened import hasty_loop
from fleetapp.bench.loopback import Usage

CHECKS = [
    "hub_cores",
    "status_delay_s",
    "rss_growth_mb",
    "idle_agent_cores",
    "idle_agent_rss_mb",
    "idle_agent_growth_mb",
]


def test_a_limit_is_judged_before_it_is_rounded() -> None:
    assert at_most("x", 0.5, 0.5).holds
    assert not at_most("x", 0.500001, 0.5).holds


def test_usage_is_what_the_process_used() -> None:
    used = Usage(os.getpid())
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    used.sample()
    assert 0.2 < used.cores * used.seconds < 1.0
    for _ in range(10):
        used.sample()
    ballast = bytearray(b"x") * (40 << 20)
    for _ in range(10):
        used.sample()
    assert used.growth > 30
    assert used.rss > 30
    del ballast


def test_an_hour_of_a_hasty_loop_takes_a_moment() -> None:
    async def nap() -> float:
        started = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time() - started

    began = time.monotonic()
    with asyncio.Runner(loop_factory=hasty_loop(36_000)) as runner:
        assert runner.run(nap()) >= 7200
    assert time.monotonic() - began < 2


@pytest.mark.slow
@pytest.mark.timeout(170)
def test_a_small_fleet_is_measured_whole() -> None:
    effort = control.Effort(16, 2, warmup=1, seconds=12, flap=5, hasten=60, settle=2, idle=5)
    report = control.run(effort=effort)
    assert [c.name for c in report.checks] == CHECKS
    assert all(c.holds for c in report.checks), report.checks
    assert len(report.rows) == 5
    come_and_go = report.rows[2]
    assert come_and_go["happenings"] > 5
    assert 0 < come_and_go["delay p50 s"] < 1
