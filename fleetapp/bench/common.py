"""The one shape every bench reports in, and what they share.

``{"bench", "machine": {cpu, cores_used, versions}, "rows": [...], "checks": [...]}``. Values are
measured in the run that prints them, never stored. A check that could not be measured is absent
and the command ends with a non-zero code.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any, Final

import click
import msgspec
import psutil

from fleetapp import __version__
from fleetapp.platform import current

Progress = Callable[[str], None]

_PACKAGES: Final = ("openvino", "openvino-genai", "numpy")


class Machine(msgspec.Struct, frozen=True):
    """What the figures were measured on."""

    cpu: str
    cores_used: int
    versions: dict[str, str]


class Check(msgspec.Struct, frozen=True):
    """A promise and what was measured of it."""

    name: str
    value: float | bool
    target: float | bool
    holds: bool


class Report(msgspec.Struct, frozen=True):
    """What a bench found out."""

    bench: str
    machine: Machine
    rows: tuple[dict[str, Any], ...]
    checks: tuple[Check, ...]


def machine(cores_used: int) -> Machine:
    """This machine and the versions that matter; ``cores_used`` by the measured processes."""
    versions = {"fleetapp": __version__, "python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in _PACKAGES}
    return Machine(current().cpu_name() or platform.machine(), cores_used, versions)


def at_least(name: str, value: float, target: float) -> Check:
    """A check that holds from ``target`` upwards; judged before rounding."""
    return Check(name, round(value, 4), target, value >= target)


def at_most(name: str, value: float, target: float) -> Check:
    """A check that holds up to ``target``; judged before rounding."""
    return Check(name, round(value, 4), target, value <= target)


def is_true(name: str, value: bool) -> Check:
    """A check of something that is so or not."""
    return Check(name, value, True, value)


def summary(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Median and spread of one row."""
    return {
        "median": round(statistics.median(values), digits),
        "lowest": round(min(values), digits),
        "highest": round(max(values), digits),
        "rounds": len(values),
    }


def idlest_core() -> int:
    """The core, among those this process may use, that others use least just now."""
    process = psutil.Process()
    allowed: list[int] = process.cpu_affinity() or list(range(psutil.cpu_count() or 1))
    busy = psutil.cpu_percent(interval=0.5, percpu=True)
    return min(allowed, key=lambda core: busy[core] if core < len(busy) else 0.0)


@contextmanager
def aside(cores: Collection[int]) -> Iterator[None]:
    """This process, and what it starts, stays off these cores if there are others.

    Whoever asks sits at another PC, and so must not take time from the one that is measured.
    """
    process = psutil.Process()
    allowed: list[int] = process.cpu_affinity() or []
    others = [core for core in allowed if core not in cores]
    if not others:
        yield
        return
    process.cpu_affinity(others)
    try:
        yield
    finally:
        process.cpu_affinity(allowed)


def cores_for(count: int) -> list[int]:
    """A core for each of so many processes; some share one if there are too few."""
    allowed: list[int] = psutil.Process().cpu_affinity() or list(range(psutil.cpu_count() or 1))
    return [allowed[i % len(allowed)] for i in range(count)]


def show(report: Report, *, as_json: bool) -> None:
    """Print the one JSON object, or tables for people."""
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report), indent=1))
        return
    versions = ", ".join(f"{name} {version}" for name, version in report.machine.versions.items())
    cores = f"{report.machine.cores_used} core{'s' if report.machine.cores_used > 1 else ''}"
    click.echo(f"bench {report.bench} on {report.machine.cpu}, {cores} used ({versions})\n")
    if report.rows:
        columns = list(dict.fromkeys(key for row in report.rows for key in row))
        lines = [[_cell(row.get(column, "")) for column in columns] for row in report.rows]
        _table([column.replace("_", " ") for column in columns], lines)
        click.echo("")
    _table(
        ["check", "value", "target", ""],
        [
            [c.name, _cell(c.value), _cell(c.target), "holds" if c.holds else "DOES NOT HOLD"]
            for c in report.checks
        ],
    )


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    for line in [header, ["-" * w for w in widths], *rows]:
        click.echo("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
