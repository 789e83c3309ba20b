"""Rings of real runner processes (over the fake executor) as benches use them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fleetapp.bench import rounds
from fleetapp.bench.link import Shape
from fleetapp.bench.runners import Layout, RunnerClient, RunnerRing
from fleetapp.engine import pipe
from fleetapp.engine.trace import fill
from fleetapp.errors import FleetError, RunnerFailed
from tests.support.fake_executor import reference, split
from tests.support.fake_runner import MODEL, stage_folder

MODULE = "tests.support.fake_runner"
DELAY = 0.02


def layout(root: Path, stages: int) -> Layout:
    cuts = split(stages)
    folders = tuple(stage_folder(root / f"stage{a}", a, b) for a, b in cuts)
    return Layout(folders, tuple(a for a, _ in cuts), MODEL)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerRing]:
    """Three stages, 20 ms apart."""
    root = tmp_path_factory.mktemp("ring")
    made = RunnerRing(
        root, layout(root, 3), module=MODULE, shape=Shape(delay=DELAY), step_deadline=60.0
    )
    with made:
        made.link()
        yield made


def ids_of(text: str) -> tuple[int, ...]:
    return tuple(text.encode())


def test_the_time_of_an_answer_is_all_accounted_for(ring: RunnerRing) -> None:
    answer = ring.head.answer(ring.begin(ids_of("where does it go?"), max_tokens=8))
    assert answer.ids == reference(ids_of("where does it go?"), 8)
    assert answer.finished is not None
    timings = answer.finished.timings
    assert timings is not None
    parts = timings.compute + timings.wire + timings.wait + timings.host
    assert parts == pytest.approx(timings.prefill + timings.decode, abs=2e-3)
    assert timings.steps == 8
    assert timings.width == 1.0
    assert timings.wire >= 0.9 * 8 * 3 * DELAY
    assert timings.queued + timings.prefill == pytest.approx(timings.first_token, abs=1e-6)


def test_the_head_counts_and_remembers_what_each_stage_did(ring: RunnerRing) -> None:
    before = ring.head.stats().chain
    assert before is not None
    found = rounds.ask_all([ring], [ids_of(f"user {i}") for i in range(6)], 10)
    after = ring.head.stats().chain
    assert after is not None
    assert found.tokens == 60
    assert after.requests - before.requests == 6
    assert after.answer_tokens - before.answer_tokens == 60
    assert after.prompt_tokens - before.prompt_tokens == 36
    assert after.prefill_tokens - before.prefill_tokens + after.decode_tokens >= 36
    assert len(after.stages) == 3
    assert after.wire_seconds > before.wire_seconds
    steps = ring.head.trace()[-(after.steps - before.steps) :]
    assert sum(len(r.requests) for r in steps) == after.sequences - before.sequences
    for record in steps:
        assert len(record.stages) == 3
        spent = sum(s.wait + s.compute + s.host for s in record.stages)
        assert record.launched + spent + record.lag <= record.completed + 5
    assert fill(steps).in_flight == 3


def test_what_users_saw_is_measured(ring: RunnerRing) -> None:
    found = rounds.ask_all([ring], [ids_of("a"), ids_of("bb")], 5)
    assert found.ids == tuple(tuple(reference(ids_of(t), 5)) for t in ("a", "bb"))
    assert len(found.first) == 2
    assert all(0.9 * 3 * DELAY <= first <= found.seconds for first in found.first)
    assert found.rate == pytest.approx(10 / found.seconds)
    assert all(link.forward.bytes > 0 for link in ring.links)


def test_an_answer_that_fails_is_not_measured(ring: RunnerRing) -> None:
    with pytest.raises(FleetError):
        rounds.ask_all([ring], [(999_999,)], 5)


def test_a_cut_link_is_noticed_and_linking_anew_heals(ring: RunnerRing) -> None:
    request_id = ring.begin(ids_of("long"), max_tokens=60, ignore_eos=True)
    answer = ring.head.answers[request_id]
    ring.head.wait(lambda: answer.deltas or None)
    ring.links[2].cut()
    ring.head.expect(pipe.ChainFault)
    ring.link()
    assert ring.head.answer(request_id, 30).ids == reference(ids_of("long"), 60)


def test_a_stage_that_is_no_head_has_no_steps_to_show(ring: RunnerRing) -> None:
    assert ring.runners[1].trace() == ()
    assert ring.runners[1].stats().chain is None


@pytest.mark.skipif(sys.platform == "darwin", reason="no affinity there")
def test_a_process_stays_on_its_core_and_closes_down(tmp_path: Path) -> None:
    core = (psutil.Process().cpu_affinity() or [0])[-1]
    ring = RunnerRing(tmp_path, layout(tmp_path, 1), module=MODULE, cores=[core])
    pid = ring.head.process.pid
    assert psutil.Process(pid).cpu_affinity() == [core]
    for thread in Path(f"/proc/{pid}/task").glob("*/status") if sys.platform == "linux" else ():
        allowed = thread.read_text().split("Cpus_allowed_list:")[1].split()[0]
        assert allowed == str(core)
    ring.close()
    assert not psutil.pid_exists(pid)


def test_a_ring_that_does_not_load_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "FAKE_RUNNER": json.dumps({"explode": "no such luck"})}
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(FleetError, match="no such luck"):
        RunnerRing(tmp_path, layout(tmp_path, 2), module=MODULE, env=env)
    assert {child.pid for child in psutil.Process().children()} == before


def test_waiting_for_a_process_that_has_ended_is_an_error_with_its_last_words() -> None:
    client = RunnerClient("tests.support.no_such_module")
    with pytest.raises(RunnerFailed, match="no_such_module"):
        client.expect(pipe.Loaded, 30)
    client.ended()
