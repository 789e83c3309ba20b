"""Work on a model in a process of its own, seen from the agent."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fleetapp.agent import modeljob
from fleetapp.agent.modeljob import Job, Remaining
from fleetapp.models.job import Order
from fleetapp.models.progress import Progress
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import tiny_gguf

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def test_the_time_left_follows_the_speed_of_the_last_seconds() -> None:
    left = Remaining()
    assert left.after(Progress("downloading", 0, 1000), 0.0) is None
    assert left.after(Progress("downloading", 50, 1000), 1.0) is None, "too early to tell"
    assert left.after(Progress("downloading", 100, 1000), 2.0) == pytest.approx(18.0)
    for second in range(3, 60):  # five times as fast from here
        seconds = left.after(Progress("downloading", 100 + second, 1000), float(second))
    assert seconds == pytest.approx(1000 - 159, rel=0.1), "the first seconds are forgotten"


def test_the_time_left_begins_anew_with_a_phase_and_knows_when_it_does_not_know() -> None:
    left = Remaining()
    left.after(Progress("downloading", 0, 1000), 0.0)
    left.after(Progress("downloading", 900, 1000), 9.0)
    assert left.after(Progress("verifying", 10, 1000), 10.0) is None
    assert left.after(Progress("verifying", 10, 1000), 20.0) is None, "it stands still"
    assert left.after(Progress("checking", 1, 4, "steps"), 30.0) is None
    assert left.after(Progress("checking", 2, 4, "steps"), 40.0) is None
    left.after(Progress("downloading", 900, 1000), 50.0)
    assert left.after(Progress("downloading", 0, 1000), 60.0) is None, "another source"
    assert left.after(Progress("downloading", 1000, 1000), 70.0) == 0.0


class Watch:
    """Sees each view, and waits for one."""

    def __init__(self) -> None:
        self.rang = asyncio.Event()

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not true():
                self.rang.clear()
                await self.rang.wait()


@pytest.fixture
def watch() -> Watch:
    return Watch()


def importing(tmp_path: Path, watch: Watch, **options: float) -> Job:
    path = tiny_gguf(tmp_path / "m.gguf", "llama", 3, quant="Q8_0").path
    order = Order("import", str(tmp_path / "models"), "m", NobodySigns.spki, str(path))
    return Job(order, str(path), NobodySigns, watch.rang.set, **options)


def process_of(job: Job) -> psutil.Process:
    assert job._process is not None
    return psutil.Process(job._process.pid)


async def test_it_tells_its_phases_and_ends_done(tmp_path: Path, watch: Watch) -> None:
    job = importing(tmp_path, watch)
    phases = set()

    def over() -> bool:
        phases.add(job.view.phase)
        return job.view.state != "running"

    job.start()
    await watch.until(over)
    assert (job.view.state, job.view.message) == ("done", "m is ready.")
    assert {"starting", "converting", "checking", "hashing"} <= phases
    assert (tmp_path / "models" / "imported" / "m" / "model.sig").exists()
    await job.end()
    assert job.view.state == "done", "harmless afterwards"


async def test_a_child_that_dies_is_told_with_its_last_words(tmp_path: Path, watch: Watch) -> None:
    job = importing(tmp_path, watch)
    job.start()
    await watch.until(lambda: job.view.phase != "starting")
    process_of(job).send_signal(signal.SIGKILL)
    await watch.until(lambda: job.view.state != "running")
    assert job.view.error is not None
    assert (job.view.state, job.view.error.code) == ("failed", "worker_died")
    assert "ended with code -9" in job.view.error.message
    order = Order("dance", str(tmp_path), "m", "")  # type: ignore[arg-type]
    job = Job(order, "m", NobodySigns, watch.rang.set)
    job.start()
    await watch.until(lambda: job.view.state != "running")
    assert job.view.error is not None
    assert "Invalid enum value 'dance'" in job.view.error.message


async def test_a_child_that_says_nothing_is_ended(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modeljob, "GRACE", 0.5)
    job = importing(tmp_path, watch, silence=1.0)
    job.start()
    while job._process is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    process = process_of(job)
    process.suspend()
    await watch.until(lambda: job.view.state != "running")
    assert job.view.error is not None
    assert "gave no sign of life" in job.view.error.message
    assert not process.is_running()


@pytest.mark.parametrize("stopped", [False, True])
async def test_ending_it_takes_everything_along_in_bounded_time(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(modeljob, "GRACE", 0.5)
    job = importing(tmp_path, watch)
    job.start()
    await watch.until(lambda: job.view.phase in ("converting", "inspecting", "checking"))
    family = [process_of(job), *process_of(job).children(recursive=True)]
    if stopped:  # as one that hangs in the kernel or a driver
        for process in family:
            process.suspend()
    began = time.monotonic()
    await job.end()
    assert time.monotonic() - began < 4
    assert (job.view.state, job.running) == ("cancelled", False)
    assert not any(p.is_running() and p.status() != "zombie" for p in family)


async def test_ending_it_before_its_process_is_there(tmp_path: Path, watch: Watch) -> None:
    job = importing(tmp_path, watch)
    job.start()
    await job.end()
    assert (job.view.state, job.running) == ("cancelled", False)
