"""Where time went: nothing counted twice, nothing left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fleetapp.engine.pipe import StepRecord
from fleetapp.engine.steplog import KEPT, Account, Ended, StepLog, StepSums
from fleetapp.wire.frames import Segment, StageTiming


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_no_stage_and_no_inbox_accounts_for_was_the_wire() -> None:
    clock = Clock()
    log = StepLog(clock)
    log.opened("a", 0)
    log.opened("b", 1)
    log.launched(1, [Segment(0, 1, 0, 7, False), Segment(1, 2, 4, 1, True)])
    clock.now += 0.010
    stages = (StageTiming(0, 0, 2000, 100), StageTiming(0, 500, 3000, 400))
    record = log.completed(5, 1, stages, arrived=clock.now - 0.001)
    assert record is not None
    assert record.completed - record.launched == 10_000
    assert record.lag == 1000
    assert record.wire == 10_000 - 1000 - 6000
    assert (record.requests, record.counts) == (("a", "b"), (7, 1))
    stats = log.stats(Ended(requests=3))
    assert (stats.steps, stats.sequences, stats.requests) == (1, 2, 3)
    assert (stats.prefill_tokens, stats.decode_tokens) == (7, 1)
    assert [round(s.compute, 6) for s in stats.stages] == [0.002, 0.003]
    assert round(stats.wire_seconds, 6) == 0.003


def test_drafts_count_as_positions_of_the_answer() -> None:
    log = StepLog(Clock())
    log.launched(1, [Segment(0, 1, 9, 4, True, drafts=(1, 2, 3))])
    log.completed(1, 1, ())
    stats = log.stats(Ended())
    assert (stats.prefill_tokens, stats.decode_tokens) == (0, 4)


def test_a_step_that_was_dropped_or_belongs_to_an_epoch_before_has_no_record() -> None:
    log = StepLog(Clock())
    log.launched(1, [Segment(0, 1, 0, 1, True)])
    log.launched(2, [Segment(0, 1, 0, 1, True)])
    log.dropped(1)
    assert log.completed(1, 1, ()) is None
    log.reset()
    assert log.completed(1, 2, ()) is None
    assert log.recent == ()


def test_only_so_many_records_are_kept() -> None:
    log = StepLog(Clock())
    for step in range(KEPT + 5):
        log.launched(step, [Segment(0, 1, 0, 1, True)])
        log.completed(1, step, ())
    assert len(log.recent) == KEPT
    assert log.recent[-1].step == KEPT + 4
    assert log.stats(Ended()).steps == KEPT + 5


spans = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.integers(1, 5000),
        st.lists(st.integers(0, 800), min_size=1, max_size=3),
    ),
    max_size=30,
)


@given(spans)
def test_an_answer_is_never_charged_more_than_the_time_that_passed(
    found: list[tuple[int, int, list[int]]],
) -> None:
    """Even where its steps overlap, as they do when a prompt has several chunks under way."""
    account = Account()
    found.sort(key=lambda f: f[0] + f[1])
    for number, (at, long, computes) in enumerate(found):
        stages = tuple(StageTiming(0, 0, min(c, long // len(computes)), 0) for c in computes)
        record = StepRecord(1, number, at, at + long, 0, ("a",), (1,), stages)
        account.add(record, StepSums.of(record))
    instants = {t for at, long, _ in found for t in range(at, at + long)}
    assert account.compute + account.wire + account.host <= len(instants) * 1e-6 + 1e-9
    assert account.steps == len(found)
