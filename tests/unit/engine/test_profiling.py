"""Measuring a loaded stage while it is idle."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fleetapp.engine import pipe
from fleetapp.engine.profiling import Profiler, measure_idle
from fleetapp.engine.transport import Received
from fleetapp.engine.worker import Worker
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import Close, Open, Ping, Segment
from tests.support.fake_executor import FakeExecutor, split
from tests.support.fake_runner import MODEL, stage_folder
from tests.support.runner_client import RunnerRing

ORDER = pipe.Measure(widths=(1, 2, 4), pieces=(8, 32), history=32, seconds=1.0)


class Costs:
    """A clock that a step moves on, by what it carries."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: list[tuple[Segment, ...]] = []

    def __call__(self) -> float:
        return self.now

    def step(self, segments: tuple[Segment, ...]) -> None:
        self.steps.append(segments)
        self.now += 0.001 + 0.0001 * sum(s.count for s in segments)
        self.now += 0.01 * sum(s.sample for s in segments)


def profiled(
    start: int = 0,
    stop: int = 6,
    order: pipe.Measure = ORDER,
    disturbed: Callable[[], bool] = lambda: False,
    **executor: Any,
) -> tuple[pipe.Measured, Worker, Costs]:
    costs = Costs()
    made = FakeExecutor(start, stop, before=costs.step, **executor)
    worker = Worker(made, device_id="d", fast=False)
    return Profiler(worker, order, disturbed, costs).run(), worker, costs


@pytest.mark.parametrize("layers", [(0, 6), (0, 3), (3, 6), (2, 4)])
def test_it_says_what_steps_of_each_width_and_piece_took(layers: tuple[int, int]) -> None:
    found, _, _ = profiled(*layers)
    last = layers[1] == 6
    assert found.complete
    assert [p.size for p in found.decode] == [1, 2, 4]
    assert [p.seconds for p in found.decode] == pytest.approx([0.0011, 0.0012, 0.0014])
    more = 0.01 if last else 0.0
    assert [p.seconds for p in found.chosen] == pytest.approx(
        [0.0011 + more, 0.0012 + 2 * more, 0.0014 + 4 * more]
    )
    assert [p.seconds for p in found.prefill] == pytest.approx([0.0018, 0.0042])


def test_it_leaves_nothing_behind_and_counts_nothing() -> None:
    _, worker, costs = profiled()
    assert worker.open_slots == 0
    assert worker.executor.free_blocks == worker.executor.info.blocks
    assert worker.executor.kept_blocks == 0
    assert (worker.frames, worker.tokens, worker.compute_seconds) == (0, 0, 0.0)
    assert costs.steps


def test_decodes_have_a_history() -> None:
    _, _, costs = profiled()
    decodes = [s for s in costs.steps if s[0].count == 1]
    assert decodes
    assert {segment.past_len for s in decodes for segment in s} == {32}


def test_a_slow_device_is_measured_at_fewer_sizes() -> None:
    order = pipe.Measure(widths=(1, 2, 4), pieces=(8, 16), history=32, seconds=0.03)
    found, _, _ = profiled(order=order)
    assert found.complete
    assert [p.size for p in found.prefill][:1] == [8]
    assert [p.size for p in found.decode] == [1]
    assert found.seconds < 0.06


def test_what_does_not_fit_a_small_cache_is_left_out() -> None:
    found, worker, _ = profiled(blocks=6, max_context=48)
    assert [p.size for p in found.prefill] == [8, 32]
    assert [p.size for p in found.decode][:1] == [1]
    assert worker.executor.free_blocks == 6


def test_kept_conversations_survive_it() -> None:
    made = FakeExecutor(0, 6)
    worker = Worker(made, device_id="d", fast=False)
    worker.open(Open(1, 0, 1, SamplingParams()))
    worker.step(1, (Segment(0, 1, 0, 16, sample=False),), np.arange(16))
    worker.close(Close(1, 0, 1, keep=5, keep_len=16))
    Profiler(worker, ORDER, lambda: False).run()
    assert made.kept_blocks == 2


def test_it_ends_as_soon_as_anybody_wants_something() -> None:
    calls = iter([False] * 5 + [True] * 99)
    found, worker, costs = profiled(disturbed=lambda: next(calls))
    assert not found.complete
    assert len(costs.steps) == 5
    assert worker.open_slots == 0


def test_pings_are_passed_on_and_the_first_real_event_is_kept_for_later() -> None:
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ping = Received(Ping(1, 5), memoryview(b""))
    inbox.put(ping)
    inbox.put("a request")
    handled: list[Any] = []
    said: list[pipe.Measured] = []
    worker = Worker(FakeExecutor(), device_id="d", fast=False)
    later = measure_idle(worker, ORDER, inbox, handled.append, said.append)
    assert handled == [ping]
    assert later == ["a request"]
    assert [m.complete for m in said] == [False]


def test_it_does_not_begin_while_somebody_is_answered() -> None:
    worker = Worker(FakeExecutor(), device_id="d", fast=False)
    worker.open(Open(1, 0, 1, SamplingParams()))
    said: list[pipe.Measured] = []
    assert measure_idle(worker, ORDER, queue.SimpleQueue(), print, said.append) == []
    assert said == [pipe.Measured((), (), (), complete=False, seconds=0.0)]


def test_runners_of_a_ring_measure_themselves_and_answer_afterwards(tmp_path: Path) -> None:
    bounds = split(2)
    folders = [stage_folder(tmp_path / f"s{a}", a, b) for a, b in bounds]
    starts = [a for a, _ in bounds]
    module = "tests.support.fake_runner"
    with RunnerRing(tmp_path / "ring", folders, starts, MODEL, module=module) as ring:
        ring.link()
        for runner in ring.runners:
            runner.send(ORDER)
        for runner in ring.runners:
            found = runner.expect(pipe.Measured)
            assert found.complete
            assert len(found.decode) == 3
        answer = ring.head.answer(ring.begin("hello", max_tokens=5, ignore_eos=True))
        assert len(answer.ids) == 5
        ring.assert_clean()
