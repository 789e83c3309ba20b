"""``bench pipeline``: one model over two PCs, against one PC and against two that each have it all.

"One PC" is one core with one inference thread. The two stages are two processes on two cores,
joined by the same TLS ring as in an office. Three stages are run for the picture of how full the
pipeline gets; where there are fewer cores than stages that says nothing about speed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common, rounds, timeline
from fleetapp.bench.rounds import Case, Ids, Measured
from fleetapp.bench.runners import RunnerRing
from fleetapp.bench.workshop import Workshop, best_halves, bounds, measured_layers
from fleetapp.engine.pipe import StepRecord
from fleetapp.engine.trace import Fill, fill, trace_file
from fleetapp.models.library import Library
from fleetapp.types import Precision

ONE_PC: Final = "one PC"
TWO_PCS: Final = "two PCs, pipeline"
REPLICAS: Final = "two PCs, independent replicas"
THREE_STAGES: Final = "three stages (picture)"
_PICTURE_STEPS: Final = 48
_PICTURE_USERS: Final = 6


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    users: tuple[int, ...] = (1, 2, 8, 16)
    tokens: int = 128
    warmups: int = 2


FULL: Final = Effort(rounds=7)
QUICK: Final = Effort(rounds=2, tokens=32, warmups=1)


@dataclass(frozen=True)
class Files:
    """Where to write what is not a table; None: nowhere."""

    picture: Path | None = None
    trace: Path | None = None


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    files: Files | None = None,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure; arguments and errors as ``parity.run``, and where to write the picture."""
    manifest, _ = library.get(model)
    with tempfile.TemporaryDirectory(prefix="fleetapp-bench-") as folder:
        workshop = Workshop(library, model, manifest, Path(folder), precision, device)
        progress("measuring where to cut")
        layers = measured_layers(workshop)
        two, three = best_halves(workshop, layers), bounds(3, layers)
        found = _measure(workshop, two, effort, progress)
        progress("three stages, for the picture")
        records = _three(workshop, three)
    full = fill(records)
    _write(files or Files(), records, full)
    rows: list[dict[str, Any]] = []
    for case, measured in found.items():
        over = round(rounds.ratio(found, case, Case(ONE_PC, case.users)), 3)
        line = {**rounds.row(case, measured), "over_one_pc": over}
        if case.way == TWO_PCS:
            line["cut"] = _words(two)
        rows.append(line)
    rows.append(
        {
            "way": THREE_STAGES,
            "users": _PICTURE_USERS,
            "cut": _words(three),
            "most stages busy": full.most,
            "mean busy": round(full.mean, 2),
            "frames in flight": full.in_flight,
        }
    )
    checks = _checks(found)
    if precision == "exact":
        checks = (*checks, common.is_true("tokens_equal", _equal(found)))
    reached = common.at_least("three_stage_fill", full.most, min(3, full.in_flight))
    machine = common.machine(cores_used=len(set(common.cores_for(2))))
    return common.Report("pipeline", machine, tuple(rows), (*checks, reached))


def _checks(found: rounds.Found) -> tuple[common.Check, ...]:
    def ratio(users: int, reference: int) -> float:
        return rounds.ratio(found, Case(TWO_PCS, users), Case(ONE_PC, reference))

    return (
        common.at_least("one_user_ratio", ratio(1, 1), 0.87),
        common.at_least("two_users_vs_single", ratio(2, 1), 1.6),
        common.at_least("users8_ratio", ratio(8, 8), 1.35),
        common.at_least("users16_ratio", ratio(16, 16), 1.5),
    )


def _equal(found: rounds.Found) -> bool:
    return all(
        a.ids == b.ids
        for case, measured in found.items()
        for a, b in zip(measured, found[Case(ONE_PC, case.users)], strict=True)
    )


def _measure(
    workshop: Workshop, cut: Sequence[int], effort: Effort, progress: common.Progress
) -> rounds.Found:
    cores, whole = common.cores_for(2), (0, workshop.layers)
    progress("loading")
    with ExitStack() as stack:
        ring = stack.enter_context(workshop.ring("ring", cut, cores))
        replicas = [
            stack.enter_context(workshop.ring(f"replica{i}", whole, [core]))
            for i, core in enumerate(cores)
        ]
        prompts = workshop.prompts()
        cases: dict[Case, Callable[[int], Measured]] = {}
        for users in effort.users:
            ids = prompts.rounds(users)
            # One PC is now the one core and now the other: they may differ.
            cases[Case(ONE_PC, users)] = _asked(lambda n: [replicas[n % 2]], ids, effort.tokens)
            cases[Case(TWO_PCS, users)] = _asked(lambda _: [ring], ids, effort.tokens)
            if users > 1:
                cases[Case(REPLICAS, users)] = _asked(lambda _: replicas, ids, effort.tokens)
        return rounds.alternate(
            cases, rounds=effort.rounds, warmups=effort.warmups, progress=progress
        )


def _asked(
    rings: Callable[[int], Sequence[RunnerRing]], ids: Callable[[int], list[Ids]], tokens: int
) -> Callable[[int], Measured]:
    return lambda number: rounds.ask_all(rings(number), ids(number), tokens)


def _three(workshop: Workshop, cut: Sequence[int]) -> tuple[StepRecord, ...]:
    prompts = workshop.prompts()
    with workshop.ring("three", cut, common.cores_for(3)) as ring:
        rounds.ask_all([ring], prompts.take(_PICTURE_USERS), 48)
        records = ring.head.trace()
    # The last ones run out of users one by one; what is shown is the middle.
    return records[-_PICTURE_STEPS - 8 : -8]


def _write(files: Files, records: Sequence[StepRecord], full: Fill) -> None:
    if files.picture is not None:
        title = (
            f"three stages, {full.in_flight} frames in flight: up to {full.most} stages busy, "
            f"{full.mean:.2f} on average"
        )
        files.picture.write_text(timeline.svg(records, title), encoding="utf-8")
    if files.trace is not None:
        files.trace.write_text(trace_file(records), encoding="utf-8")


def _words(cut: Sequence[int]) -> str:
    sizes = [b - a for a, b in pairwise(cut)]
    return "+".join(map(str, sizes)) + " layers, measured"
