"""Traces and fill: consistent with what the stages measured, whatever their clocks say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.engine.pipe import StepRecord
from fleetapp.engine.trace import Span, fill, offsets, spans, trace_events, trace_file
from fleetapp.wire.frames import StageTiming


def pipelined(
    stages: int, groups: int, steps: int, *, compute: int = 1000, wire: int = 100, skew: int = 0
) -> list[StepRecord]:
    """A perfect pipeline: every stage takes ``compute``; stage i's clock is i * skew behind."""
    free = [0] * stages
    ready = [0] * groups
    records = []
    for step in range(steps):
        launched = at = ready[step % groups]
        timings = []
        for stage in range(stages):
            wait = max(0, free[stage] - at)
            began = at + wait
            free[stage] = began + compute
            timings.append(StageTiming(began - stage * skew, wait, compute, 0))
            at = began + compute + (wire if stages > 1 else 0)
        ready[step % groups] = at
        records.append(
            StepRecord(1, step + 1, launched, at, 0, (f"r{step % groups}",), (1,), tuple(timings))
        )
    return records


@pytest.mark.parametrize(("stages", "groups"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (3, 5)])
def test_the_fill_is_what_the_groups_allow(stages: int, groups: int) -> None:
    found = fill(pipelined(stages, groups, 60))
    assert found.most == min(stages, groups)
    assert found.in_flight == groups
    assert 0 < found.mean <= found.most
    if groups > stages:
        assert found.full > 0.9


def test_one_group_keeps_one_stage_busy_at_a_time() -> None:
    found = fill(pipelined(3, 1, 10, wire=0))
    assert (found.most, round(found.mean, 3), round(found.full, 3)) == (1, 1.0, 1.0)


@given(st.integers(-(10**12), 10**12))
def test_clocks_of_other_pcs_are_brought_into_line(skew: int) -> None:
    straight, skewed = pipelined(3, 3, 30), pipelined(3, 3, 30, skew=skew)
    want = [(s.stage, s.step, s.start) for s in spans(straight)]
    got = [(s.stage, s.step, s.start) for s in spans(skewed)]
    # What cannot be told from cause and effect is at most the time on the wire.
    for (stage, step, start), (other, same, at) in zip(sorted(want), sorted(got), strict=True):
        assert (stage, step) == (other, same)
        assert abs(at - start) <= 500 + 3 * 100


def test_one_pcs_clock_is_left_alone() -> None:
    assert offsets(pipelined(3, 2, 10)) == [0, 0, 0]


def test_a_trace_file_parses_and_agrees_with_the_records() -> None:
    records = pipelined(2, 2, 8)
    trace = json.loads(trace_file(records, ["anna", "ben"]))
    events = trace["traceEvents"]
    assert all(e["ph"] in ("X", "M", "C") for e in events)
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {0: "steps in flight", 1: "stage 0 (anna)", 2: "stage 1 (ben)"}
    for record in records:
        mine = [e for e in events if e["ph"] == "X" and e["args"]["step"] == record.step]
        (whole,) = [e for e in mine if e["cat"] == "step"]
        assert (whole["ts"], whole["dur"]) == (record.launched, record.completed - record.launched)
        assert whole["args"]["requests"] == list(record.requests)
        inside = [e for e in mine if e["cat"] == "compute"]
        assert [e["pid"] for e in inside] == [1, 2]
        for event in inside:
            assert whole["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= whole["ts"] + whole["dur"]
        told = sum(e["dur"] for e in mine if e["cat"] in ("compute", "host", "wait"))
        assert told + whole["args"]["wire_us"] + whole["args"]["head_wait_us"] == whole["dur"]
    rows: dict[tuple[int, int], int] = {}
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        if event["cat"] in ("step", "compute"):  # what lies on one row must not overlap
            place = (event["pid"], event["tid"])
            assert event["ts"] >= rows.get(place, 0)
            rows[place] = event["ts"] + event["dur"]
    levels = [e["args"]["busy"] for e in events if e["ph"] == "C"]
    assert min(levels) >= 0
    assert max(levels) == 2
    assert levels[-1] == 0


def test_nothing_recorded_is_an_empty_trace() -> None:
    assert [e["ph"] for e in trace_events([])["traceEvents"]] == ["M"]
    assert fill([]).most == 0
    assert spans([]) == []


def test_a_span_says_what_was_computed() -> None:
    record = StepRecord(1, 7, 100, 900, 0, ("a", "b"), (5, 1), (StageTiming(200, 0, 300, 10),))
    assert spans([record]) == [Span(0, 7, 200, 500, 6, 2, 0)]
