"""Which stage computed when: how full a pipeline was, and a file that a trace viewer opens.

Stages stamp their work by their own clocks. Between PCs those differ by an unknown offset, which
is bounded here by cause and effect: a stage cannot begin a step before the head launched it, nor
end it after the head had the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from fleetapp.engine.pipe import StepRecord

_SLACK: Final = 500
"""Microseconds by which clocks of one PC may seem to disagree: rounding and scheduling."""


@dataclass(frozen=True)
class Span:
    """One stage computing one step; microseconds of the head's clock.

    Attributes:
        group: which of the frames that share the pipeline it is; for colours.
    """

    stage: int
    step: int
    start: int
    stop: int
    positions: int
    sequences: int
    group: int


def offsets(records: Iterable[StepRecord]) -> list[int]:
    """What to add to each stage's clock to get the head's, in microseconds; 0 where that fits."""
    low: list[int] = []
    high: list[int] = []
    for record in records:
        while len(low) < len(record.stages):
            low.append(-(1 << 62))
            high.append(1 << 62)
        before = 0
        after = sum(s.wait + s.compute + s.host for s in record.stages)
        for i, s in enumerate(record.stages):
            earliest = record.launched + before + s.wait
            latest = record.completed - record.lag - (after - before - s.wait)
            low[i] = max(low[i], earliest - s.began)
            high[i] = min(high[i], latest - s.began)
            before += s.wait + s.compute + s.host
    found = []
    for lowest, highest in zip(low, high, strict=True):
        fits = lowest - _SLACK <= 0 <= highest + _SLACK
        found.append(0 if fits else (lowest + highest) // 2)
    return found


def spans(records: Sequence[StepRecord]) -> list[Span]:
    """All work of all stages, by start."""
    moved = offsets(records)
    groups = _groups(records)
    found = [
        Span(
            stage=i,
            step=record.step,
            start=s.began + moved[i],
            stop=s.began + moved[i] + s.compute,
            positions=sum(record.counts),
            sequences=len(record.requests),
            group=groups[record.epoch, record.step],
        )
        for record in records
        for i, s in enumerate(record.stages)
    ]
    return sorted(found, key=lambda s: (s.start, s.stage))


def _groups(records: Sequence[StepRecord]) -> dict[tuple[int, int], int]:
    """A number per step: the lowest that no other step in flight has."""
    busy: dict[int, int] = {}
    found: dict[tuple[int, int], int] = {}
    for record in sorted(records, key=lambda r: r.launched):
        busy = {g: until for g, until in busy.items() if until > record.launched}
        group = next(g for g in range(len(busy) + 1) if g not in busy)
        busy[group] = record.completed
        found[record.epoch, record.step] = group
    return found


@dataclass(frozen=True)
class Fill:
    """How many stages computed at the same time.

    Attributes:
        most: at any instant.
        mean: over the time from the first step to the last.
        full: share of that time in which every stage that could be busy was.
        in_flight: the most steps on their way at one time.
    """

    most: int
    mean: float
    full: float
    in_flight: int


def changes(found: Iterable[Span]) -> list[tuple[int, int]]:
    """(time, stages busy from then on), by time."""
    moves: dict[int, int] = {}
    for span in found:
        moves[span.start] = moves.get(span.start, 0) + 1
        moves[span.stop] = moves.get(span.stop, 0) - 1
    level, result = 0, []
    for at in sorted(moves):
        level += moves[at]
        result.append((at, level))
    return result


def fill(records: Sequence[StepRecord]) -> Fill:
    """Of these steps."""
    steps = changes(spans(records))
    flights: dict[int, int] = {}
    for record in records:
        flights[record.launched] = flights.get(record.launched, 0) + 1
        flights[record.completed] = flights.get(record.completed, 0) - 1
    flying = most_flying = 0
    for at in sorted(flights):
        flying += flights[at]
        most_flying = max(most_flying, flying)
    if len(steps) < 2:
        return Fill(0, 0.0, 0.0, most_flying)
    most = max(level for _, level in steps)
    whole = steps[-1][0] - steps[0][0]
    busy = full = 0
    for (at, level), (until, _) in pairwise(steps):
        busy += level * (until - at)
        full += (level == most) * (until - at)
    return Fill(most, busy / whole, full / whole, most_flying)


def trace_events(records: Sequence[StepRecord], names: Sequence[str] = ()) -> dict[str, Any]:
    """The Trace Event Format, as Perfetto and chrome://tracing open it.

    A process per stage with its inferences, a process for the head's view of each step in
    flight, and a counter of the stages that are busy. Times are microseconds.

    Args:
        records: of a head.
        names: of the PCs, by stage.
    """
    events = [_named(0, "steps in flight")]
    for stage in range(max((len(r.stages) for r in records), default=0)):
        pc = f" ({names[stage]})" if stage < len(names) else ""
        events.append(_named(stage + 1, f"stage {stage}{pc}"))
    groups, moved = _groups(records), offsets(records)
    for record in sorted(records, key=lambda r: r.launched):
        group = groups[record.epoch, record.step]
        arguments = {
            "epoch": record.epoch,
            "step": record.step,
            "requests": list(record.requests),
            "positions": list(record.counts),
            "wire_us": record.wire,
            "head_wait_us": record.lag,
        }
        name, long = f"step {record.step}", record.completed - record.launched
        events.append(_whole(name, "step", (0, group), record.launched, long, arguments))
        for stage, s in enumerate(record.stages):
            began, pid, told = s.began + moved[stage], stage + 1, {"step": record.step}
            events.append(_whole(name, "compute", (pid, 0), began, s.compute, told))
            events.append(_whole("host", "host", (pid, 1), began + s.compute, s.host, told))
            events.append(_whole("wait", "wait", (pid, 2), began - s.wait, s.wait, told))
    for at, level in changes(spans(records)):
        busy = {"name": "busy stages", "ph": "C", "pid": 0, "ts": at, "args": {"busy": level}}
        events.append(busy)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(pid: int, name: str) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}}


def _whole(
    name: str, kind: str, place: tuple[int, int], start: int, long: int, told: dict[str, Any]
) -> dict[str, Any]:
    """A "complete" event of a process and one of its rows."""
    pid, tid = place
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": start,
        "dur": long,
        "args": told,
    }


def trace_file(records: Sequence[StepRecord], names: Sequence[str] = ()) -> str:
    """``trace_events`` as the text of a file."""
    return json.dumps(trace_events(records, names))
