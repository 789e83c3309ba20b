"""Which stage computed when: how full a pipeline was, as numbers, a picture, and a trace file.

Stages stamp their work by their own clocks. Between PCs those differ by an unknown offset, which
is bounded here by cause and effect: a stage cannot begin a step before the head launched it, nor
end it after the head had the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from fleetapp.engine.pipe import StepRecord

_COLOURS: Final = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d")
_WIDTH: Final = 1200
_LEFT: Final = 70
_LANE: Final = 34
_GAP: Final = 8
_HEAD: Final = 46
_FILL: Final = 90


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
        # Clocks are read with some microseconds of rounding and scheduling between them.
        fits = lowest - _SLACK <= 0 <= highest + _SLACK
        found.append(0 if fits else (lowest + highest) // 2)
    return found


_SLACK: Final = 500


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
    for (at, level), (until, _) in zip(steps, steps[1:], strict=False):
        busy += level * (until - at)
        full += (level == most) * (until - at)
    return Fill(most, busy / whole, full / whole, most_flying)


def svg(records: Sequence[StepRecord], title: str) -> str:
    """A lane per stage, a bar per inference, and below them how many stages are busy."""
    found = spans(records)
    stages = 1 + max((s.stage for s in found), default=0)
    start = min((s.start for s in found), default=0)
    stop = max((s.stop for s in found), default=1)
    scale = (_WIDTH - _LEFT - 20) / max(1, stop - start)
    bottom = _HEAD + stages * (_LANE + _GAP) + _GAP
    height = bottom + _FILL + 40

    def x(at: int) -> float:
        return round(_LEFT + (at - start) * scale, 2)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="15" fill="#222222">{escape(title)}</text>',
    ]
    for stage in range(stages):
        y = _HEAD + stage * (_LANE + _GAP)
        parts.append(
            f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH - _LEFT - 20}" height="{_LANE}" '
            'fill="#f2f2f2"/>'
        )
        parts.append(f'<text x="8" y="{y + _LANE / 2 + 4}" fill="#222222">stage {stage}</text>')
    for span in found:
        y = _HEAD + span.stage * (_LANE + _GAP)
        width = max(0.5, round((span.stop - span.start) * scale, 2))
        label = (
            f"step {span.step}, stage {span.stage}: {span.sequences} sequences, "
            f"{span.positions} positions, {(span.stop - span.start) / 1e3:.2f} ms"
        )
        parts.append(
            f'<rect x="{x(span.start)}" y="{y}" width="{width}" height="{_LANE}" '
            f'fill="{_COLOURS[span.group % len(_COLOURS)]}"><title>{label}</title></rect>'
        )
    parts += _fill_curve(found, stages, x, bottom)
    parts.append(
        f'<text x="{_LEFT}" y="{height - 8}" fill="#222222">'
        f"{(stop - start) / 1e3:.1f} ms; a colour is a frame in flight</text>"
    )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _fill_curve(found: Sequence[Span], stages: int, x: Any, top: int) -> list[str]:
    def y(level: int) -> float:
        return round(top + _FILL - level * _FILL / stages, 2)

    points = []
    level = 0
    for at, then in changes(found):
        points += [f"{x(at)},{y(level)}", f"{x(at)},{y(then)}"]
        level = then
    lines = [
        f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y(n)}" y2="{y(n)}" stroke="#dddddd"/>'
        f'<text x="{_LEFT - 14}" y="{y(n) + 4}" fill="#222222">{n}</text>'
        for n in range(stages + 1)
    ]
    label = f'<text x="8" y="{top + 14}" fill="#222222">busy</text>'
    curve = f'<polyline points="{" ".join(points)}" fill="none" stroke="#222222"/>'
    return [*lines, label, curve]


def trace_events(records: Sequence[StepRecord], names: Sequence[str] = ()) -> dict[str, Any]:
    """The Trace Event Format, as Perfetto and chrome://tracing open it.

    A process per stage with its inferences, a process for the head's view of each step in
    flight, and a counter of the stages that are busy. Times are microseconds.

    Args:
        records: of a head.
        names: of the PCs, by stage.
    """
    events: list[dict[str, Any]] = []
    stages = 1 + max((len(r.stages) - 1 for r in records), default=0)
    for stage in range(stages):
        name = f"stage {stage}" + (f" ({names[stage]})" if stage < len(names) else "")
        events.append(_name(stage + 1, name))
    events.append(_name(0, "steps in flight"))
    groups = _groups(records)
    moved = offsets(records)
    for record in sorted(records, key=lambda r: r.launched):
        arguments = {
            "epoch": record.epoch,
            "step": record.step,
            "requests": list(record.requests),
            "positions": list(record.counts),
            "wire_us": record.wire,
            "head_wait_us": record.lag,
        }
        events.append(
            {
                "name": f"step {record.step}",
                "cat": "step",
                "ph": "X",
                "pid": 0,
                "tid": groups[record.epoch, record.step],
                "ts": record.launched,
                "dur": record.completed - record.launched,
                "args": arguments,
            }
        )
        for stage, s in enumerate(record.stages):
            began = s.began + moved[stage]
            parts = (
                ("wait", began - s.wait, s.wait),
                ("compute", began, s.compute),
                ("host", began + s.compute, s.host),
            )
            events += [
                {
                    "name": name if name != "compute" else f"step {record.step}",
                    "cat": name,
                    "ph": "X",
                    "pid": stage + 1,
                    "tid": {"compute": 0, "host": 1, "wait": 2}[name],
                    "ts": at,
                    "dur": dur,
                    "args": {"step": record.step},
                }
                for name, at, dur in parts
                if dur > 0 or name == "compute"
            ]
    for at, level in changes(spans(records)):
        events.append(
            {"name": "busy stages", "ph": "C", "pid": 0, "ts": at, "args": {"busy": level}}
        )
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _name(pid: int, name: str) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}


def trace_file(records: Sequence[StepRecord], names: Sequence[str] = ()) -> str:
    """``trace_events`` as the text of a file."""
    return json.dumps(trace_events(records, names))
