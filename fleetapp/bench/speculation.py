"""``bench speculation``: does guessing ahead pay, by kind of prompt and by distance?

Two stages with an emulated link on every hop. For each cell of (kind of prompt, delay per hop)
the same chain without drafts, with prompt lookup, and with a draft model; the controller decides
how far to guess. Where no smaller model with the same vocabulary is at hand the model drafts for
itself: nearly everything is accepted and a draft costs as much as a whole model does, which is
labelled so. At 100 ms a hop the whole stack with two users is held against the naive pipeline:
one user, no drafts.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common, rounds
from fleetapp.bench.link import Shape
from fleetapp.bench.prompts import PROMPTS
from fleetapp.bench.rounds import ANSWER_SECONDS, Ids, Measured, Prompts
from fleetapp.bench.runners import RunnerRing
from fleetapp.bench.workshop import Workshop, bounds, by_bytes
from fleetapp.errors import BadRequest
from fleetapp.models.library import Library
from fleetapp.types import Precision

OFF: Final = "off"
LOOKUP: Final = "lookup"
DRAFT: Final = "draft model"
WORST_TARGET: Final = 0.97
FULL_TARGET: Final = 4.5
FAR: Final = 0.1
"""Seconds per hop at which the whole stack is held against the naive pipeline."""


@dataclass(frozen=True)
class At:
    """How much is measured at one distance; ``delay`` is one way, per hop, in seconds."""

    delay: float
    rounds: int
    tokens: int


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    distances: tuple[At, ...]
    kinds: tuple[str, ...] = tuple(PROMPTS)
    full_rounds: int = 3
    full_tokens: int = 64


FULL: Final = Effort(
    (At(0.0, 4, 80), At(0.01, 3, 48), At(0.05, 2, 24), At(FAR, 1, 24)),
)
QUICK: Final = Effort(
    (At(0.0, 2, 32), At(FAR, 1, 12)), kinds=("list", "technical"), full_rounds=1, full_tokens=24
)


@dataclass(frozen=True)
class Cell:
    """One kind of prompt at one distance; per way one entry per round."""

    kind: str
    at: At
    rates: Mapping[str, Sequence[float]]
    drafted: Mapping[str, int]
    accepted: Mapping[str, int]
    equal: bool

    def ratio(self, way: str) -> float:
        """Speed over that without drafts, round by round; the median."""
        pairs = zip(self.rates[way], self.rates[OFF], strict=True)
        return statistics.median(a / b for a, b in pairs)


def run(
    library: Library,
    model: str,
    *,
    draft: str = "",
    precision: Precision = "exact",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure; arguments and errors as ``parity.run``.

    ``draft`` is a model of the library with the same vocabulary; empty lets the model draft for
    itself. Tokens are compared under ``exact`` only.

    Raises:
        BadRequest: the draft model has another vocabulary.
    """
    manifest, _ = library.get(model)
    other, _ = library.get(draft or model)
    if other.architecture.vocab_size != manifest.architecture.vocab_size:
        raise BadRequest(f"{draft} has another vocabulary than {model}.")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetapp-bench-"))
        workshop = Workshop(library, model, manifest, Path(folder), precision, device)
        drafts = rounds.layout(library, draft or model, (0, other.architecture.layers))
        ways: dict[str, dict[str, Any]] = {
            OFF: {},
            LOOKUP: {"lookup": True},
            DRAFT: {"lookup": True, "draft_dir": str(drafts.folders[0])},
        }
        progress("loading")
        cut, cores = bounds(2, by_bytes(manifest)), common.cores_for(2)
        rings = {
            way: stack.enter_context(
                workshop.ring(way.replace(" ", "-"), cut, cores, shape=Shape(), **load)
            )
            for way, load in ways.items()
        }
        prompts = workshop.prompts()
        cells = [
            cell
            for at in effort.distances
            for cell in _cells(rings, prompts, at, effort.kinds, progress)
        ]
        full, naive = _whole_stack(rings, prompts, effort, progress)
    label = draft or f"{model} itself, a stand-in"
    rows = [_row(cell, label) for cell in cells]
    rows += [_stack_row("naive, one user", naive), _stack_row("whole stack, two users", full)]
    worst = min(cell.ratio(way) for cell in cells for way in (LOOKUP, DRAFT))
    gain = statistics.median(a.rate / b.rate for a, b in zip(full, naive, strict=True))
    checks = [
        common.at_least("worst_cell_ratio", worst, WORST_TARGET),
        common.at_least("full_vs_naive_100ms", gain, FULL_TARGET),
    ]
    if precision == "exact":
        checks.append(common.is_true("tokens_equal", all(cell.equal for cell in cells)))
    else:
        progress("tokens_equal cannot be measured under fast: use --precision exact")
    machine = common.machine(cores_used=len(set(cores)))
    return common.Report("speculation", machine, tuple(rows), tuple(checks))


def _cells(
    rings: Mapping[str, RunnerRing],
    prompts: Prompts,
    at: At,
    kinds: Sequence[str],
    progress: common.Progress,
) -> list[Cell]:
    for ring in rings.values():
        ring.reshape(Shape(delay=at.delay))
    progress(f"{at.delay * 1e3:g} ms a hop: warming up")
    for ring in rings.values():  # the controller learns what a step costs at this distance
        rounds.ask_all([ring], [prompts.kind("chat")], at.tokens)
    cells = []
    for kind in kinds:
        rates: dict[str, list[float]] = {way: [] for way in rings}
        drafted = dict.fromkeys(rings, 0)
        accepted = dict.fromkeys(rings, 0)
        equal = True
        order = list(rings)
        for number in range(at.rounds):
            progress(f"{at.delay * 1e3:g} ms a hop: {kind}, round {number + 1} of {at.rounds}")
            ids, got = prompts.kind(kind), {}
            for way in order:
                measured, d, a = _ask(rings[way], ids, at.tokens)
                rates[way].append(measured.rate)
                drafted[way] += d
                accepted[way] += a
                got[way] = measured.ids
            equal = equal and len(set(got.values())) == 1
            order.append(order.pop(0))
        cells.append(Cell(kind, at, rates, drafted, accepted, equal))
    return cells


def _ask(ring: RunnerRing, ids: Ids, tokens: int) -> tuple[Measured, int, int]:
    request_id = ring.begin(ids, max_tokens=tokens, ignore_eos=True)
    answer = ring.head.answer(request_id, ANSWER_SECONDS)
    timings = answer.finished.timings if answer.finished is not None else None
    drafted, accepted = (timings.drafted, timings.accepted) if timings is not None else (0, 0)
    return Measured.of([answer], answer.asked), drafted, accepted


def _whole_stack(
    rings: Mapping[str, RunnerRing], prompts: Prompts, effort: Effort, progress: common.Progress
) -> tuple[list[Measured], list[Measured]]:
    """Two users on everything there is, and one user on the chain without drafts."""
    for ring in rings.values():
        ring.reshape(Shape(delay=FAR))
    full: list[Measured] = []
    naive: list[Measured] = []
    rounds.ask_all([rings[DRAFT]], prompts.take(2), 16)
    for number in range(effort.full_rounds):
        progress(f"whole stack against naive, round {number + 1} of {effort.full_rounds}")
        two = prompts.take(2)
        full.append(rounds.ask_all([rings[DRAFT]], two, effort.full_tokens))
        naive.append(rounds.ask_all([rings[OFF]], two[:1], effort.full_tokens))
    return full, naive


def _row(cell: Cell, draft: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "prompt": cell.kind,
        "ms per hop": round(cell.at.delay * 1e3, 1),
        "rounds": cell.at.rounds,
        "off tok/s": round(statistics.median(cell.rates[OFF]), 1),
    }
    for way in (LOOKUP, DRAFT):
        drafted = cell.drafted[way]
        row |= {
            f"{way} tok/s": round(statistics.median(cell.rates[way]), 1),
            f"{way} ratio": round(cell.ratio(way), 3),
            f"{way} drafted": drafted,
            f"{way} accepted": round(cell.accepted[way] / drafted, 2) if drafted else "-",
        }
    return {**row, "draft model": draft}


def _stack_row(name: str, measured: Sequence[Measured]) -> dict[str, Any]:
    rates = [m.rate for m in measured]
    return {
        "prompt": name,
        "ms per hop": FAR * 1e3,
        "rounds": len(rates),
        "aggregate tok/s": round(statistics.median(rates), 1),
    }
