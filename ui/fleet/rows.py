"""The PCs of a fleet as rows: what each column says and how it sorts. Pure but for translations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from fleetapp.types import AssignmentView, FleetView, NodeView
from ui import words as common
from ui.chat.safe_text import one_line
from ui.fleet import words
from ui.view import UNDER_WAY

translate = QCoreApplication.translate

CERTIFICATE_SOON = 7 * words.DAY
"""Certificates last 30 days and are renewed after 15; one with less than this left has a reason."""
_DIGITS = re.compile(r"(\d+)")
_STATES = ("pending", "suspected", "online", "offline", "revoked")


@dataclass(frozen=True, slots=True)
class Row:
    """One PC."""

    node: NodeView
    work: tuple[AssignmentView, ...] = ()
    rate: float | None = None
    """Tokens per second of the chains it works in; None if it works in none."""

    @property
    def failed(self) -> bool:
        """Whether a part of a model could not be loaded there."""
        return any(a.phase == "failed" for a in self.work)


@dataclass(frozen=True)
class Office:
    """What rows are compared with."""

    version: str = ""
    """Of the coordinator's app; empty if that is not known."""
    now: float = 0.0
    """Unix seconds."""

    def skewed(self, node: NodeView) -> bool:
        """Whether a PC runs another version than the coordinator."""
        return bool(node.app and self.version and node.app != self.version)

    def certificate_soon(self, node: NodeView) -> bool:
        """Whether a PC's certificate should have been renewed by now."""
        end = node.certificate_ends
        return end is not None and end - self.now < CERTIFICATE_SOON


def rows_of(view: FleetView) -> list[Row]:
    """All PCs, in the order in which the coordinator tells them."""
    work: dict[str, list[AssignmentView]] = defaultdict(list)
    rates: dict[str, float] = {}
    for chain in view.chains:
        for assignment in (*chain.assignments, *chain.standbys):
            work[assignment.device_id].append(assignment)
        rate = chain.load.tokens_per_second if chain.load is not None else 0.0
        for device in {a.device_id for a in chain.assignments}:
            rates[device] = rates.get(device, 0.0) + rate
    return [
        Row(node, tuple(work.get(node.device_id, ())), rates.get(node.device_id))
        for node in view.nodes
    ]


def office_of(view: FleetView, now: float) -> Office:
    """What the rows of this view are compared with."""
    version = next((n.app for n in view.nodes if n.role == "coordinator"), "")
    return Office(version, now)


def same(a: Row, b: Row) -> bool:
    """Whether two states of a PC look the same, also if it was heard of at another moment."""
    if a.rate != b.rate or a.work != b.work:
        return False
    if a.node == b.node:
        return True
    return _face(a.node) == _face(b.node)


def _face(n: NodeView) -> tuple[Any, ...]:
    return (
        n.device_id, n.name, n.role, n.state, n.contribute, n.app, n.hardware, n.drained, n.reason,
        n.temperature, n.certificate_ends, words.ago(n.last_seen),
    )  # fmt: skip


# ---------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Column:
    """What is shown and by what it sorts."""

    key: str
    title: Callable[[], str]
    text: Callable[[Row, Office], str]
    order: Callable[[Row, Office], Any]
    width: int
    """Of the column at first, in characters."""
    right: bool = False
    """Numbers are easier to compare that way."""


def natural(text: str) -> tuple[Any, ...]:
    """DESK-2 before DESK-10, and no difference between large and small letters."""
    parts = _DIGITS.split(text.casefold())
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts)


def _missing_last(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


def _name(row: Row, _: Office) -> str:
    if row.node.role == "member":
        return one_line(row.node.name)
    return f"{one_line(row.node.name)} ({words.role(row.node.role)})"


def _devices(row: Row, _: Office) -> str:
    """Their kinds; the names, which are long, are in the hint."""
    if row.node.hardware is None:
        return words.NONE
    kinds = [name.partition(":")[0] for name in row.node.hardware.devices]
    return ", ".join(dict.fromkeys(kinds))


def _memory(row: Row, _: Office) -> str:
    hardware = row.node.hardware
    if hardware is None:
        return words.NONE
    return translate("Fleet", "{free} of {total}").format(
        free=common.size(hardware.memory_free), total=common.size(hardware.memory_total)
    )


def _runtime(row: Row, _: Office) -> str:
    return row.node.hardware.runtime if row.node.hardware else words.NONE


def _version(row: Row, office: Office) -> str:
    if office.skewed(row.node):
        return translate("Fleet", "{version} ≠ {other}").format(
            version=row.node.app, other=office.version
        )
    return row.node.app or words.NONE


def _progress(row: Row, _: Office) -> str:
    parts = []
    for a in row.work:
        name = common.phase_name(a.phase)
        if a.phase in UNDER_WAY and a.total > 0:
            name = translate("Fleet", "{phase} {n}%").format(
                phase=name, n=min(100, 100 * a.done // a.total)
            )
        parts.append(name)
    return "; ".join(parts)


def _progress_order(row: Row, _: Office) -> tuple[Any, ...]:
    shares = [a.done / a.total for a in row.work if a.phase in UNDER_WAY and a.total > 0]
    return (not row.failed, not row.work, min(shares, default=1.0))


def _temperature(row: Row, _: Office) -> str:
    degrees = row.node.temperature
    return words.NONE if degrees is None else translate("Fleet", "{n} °C").format(n=round(degrees))


COLUMNS: tuple[Column, ...] = (
    Column("name", lambda: translate("Fleet", "PC"), _name, lambda r, _: natural(r.node.name), 24),
    Column(
        "state",
        lambda: translate("Fleet", "State"),
        lambda r, _: words.state(r.node, r.work),
        lambda r, _: (_STATES.index(r.node.state), words.state(r.node, r.work)),
        26,
    ),
    Column(
        "work",
        lambda: translate("Fleet", "Holds"),
        lambda r, _: words.work(r.work),
        lambda r, _: (
            not r.work,
            [(a.model, a.stage, a.layers.start) for a in r.work],
        ),
        34,
    ),
    Column("progress", lambda: translate("Fleet", "Phase"), _progress, _progress_order, 22),
    Column(
        "rate",
        lambda: translate("Fleet", "Tokens/s"),
        lambda r, _: words.number(r.rate),
        lambda r, _: _missing_last(r.rate),
        9,
        right=True,
    ),
    Column("device", lambda: translate("Fleet", "Devices"), _devices, _devices, 14),
    Column(
        "memory",
        lambda: translate("Fleet", "Memory free"),
        _memory,
        lambda r, _: _missing_last(r.node.hardware.memory_free if r.node.hardware else None),
        22,
        right=True,
    ),
    Column(
        "temperature",
        lambda: translate("Fleet", "Heat"),
        _temperature,
        lambda r, _: _missing_last(r.node.temperature),
        8,
        right=True,
    ),
    Column(
        "seen",
        lambda: translate("Fleet", "Last seen"),
        lambda r, _: words.ago(r.node.last_seen),
        lambda r, _: _missing_last(r.node.last_seen),
        12,
    ),
    Column(
        "certificate",
        lambda: translate("Fleet", "Certificate"),
        lambda r, o: words.ends(r.node.certificate_ends, o.now),
        lambda r, _: _missing_last(r.node.certificate_ends),
        11,
        right=True,
    ),
    Column(
        "version",
        lambda: translate("Fleet", "App"),
        _version,
        lambda r, o: (not o.skewed(r.node), natural(r.node.app)),
        14,
    ),
    Column("runtime", lambda: translate("Fleet", "Runtime"), _runtime, _runtime, 22),
    Column(
        "id",
        lambda: translate("Fleet", "Device id"),
        lambda r, _: r.node.device_id,
        lambda r, _: r.node.device_id,
        24,
    ),
)


def matches(row: Row, office: Office, words_asked: list[str]) -> bool:
    """Whether every word that was typed is in one of the row's columns."""
    if not words_asked:
        return True
    names = row.node.hardware.devices if row.node.hardware else ()
    said = "\n".join((*(column.text(row, office) for column in COLUMNS), *names)).casefold()
    return all(word in said for word in words_asked)


def hint(row: Row, office: Office, key: str) -> str:
    """More about a cell than fits into it; empty if there is no more."""
    node, hardware = row.node, row.node.hardware
    said: list[str] = []
    match key:
        case "name" | "id":
            said = [one_line(node.name), node.device_id]
        case "state":
            said = [words.state(node, row.work)]
        case "device" | "runtime" if hardware is not None:
            said = [hardware.cpu, ", ".join(hardware.devices), hardware.runtime]
        case "work" | "progress":
            said = [
                " · ".join(filter(None, (a.model, common.shard_name(a), a.device, a.message)))
                for a in row.work
            ]
        case "certificate" if node.certificate_ends is not None:
            said = [words.when(node.certificate_ends)]
        case "version" if office.skewed(node):
            said = [
                translate("Fleet", "The coordinator runs {version}.").format(version=office.version)
            ]
    return "\n".join(filter(None, said))
