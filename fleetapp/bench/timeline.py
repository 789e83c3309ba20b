"""A picture of a pipeline at work: a lane per stage, and how many of them are busy. Plain SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from xml.sax.saxutils import escape

from fleetapp.engine.pipe import StepRecord
from fleetapp.engine.trace import Span, changes, spans

_COLOURS: Final = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d")
_WIDTH: Final = 1200
_LEFT: Final = 70
_LANE: Final = 34
_GAP: Final = 8
_HEAD: Final = 46
_FILL: Final = 90
_FONT: Final = 'font-family="sans-serif" font-size="12"'


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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
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


def _fill_curve(
    found: Sequence[Span], stages: int, x: Callable[[int], float], top: int
) -> list[str]:
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
