"""``bench parity``: do we lose anything against openvino-genai's own pipeline on one PC?

The whole model through ``LLMPipeline``, ours as one stage, and ours as three stages in one
process: one core, one inference thread, the same token ids. The networkless bound of what a
pipeline can reach (Pipeline Shards reports 0.99, 0.85 and 0.89 for 1, 2 and 3 stages).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from fleetapp.bench import child, common
from fleetapp.bench.prompts import PROMPTS
from fleetapp.engine import parity_child
from fleetapp.engine.parity_child import ONE_STAGE, THREE_STAGES, Job, Result, merged, ratio, ratios
from fleetapp.errors import RunnerFailed
from fleetapp.models.library import Library
from fleetapp.models.progress import silent
from fleetapp.types import LayerRange, ModelId, Precision

ONE_STAGE_TARGET: Final = 0.98
THREE_STAGE_TARGET: Final = 0.92
_SECONDS: Final = 590.0
"""For everything: a bench takes at most ten minutes."""
_SPEED_PROMPT: Final = "technical"


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    processes: int
    """One process after another: where the system happens to put the weights was seen to make
    two equal stages differ by 5%, for as long as the process lives."""
    rounds: int
    """In each process, for the precision that is checked."""
    exact_rounds: int
    """For the rows of exact, if that is not the precision that is checked."""
    prompts: tuple[str, ...]
    """Whose tokens are compared."""
    tokens: int = 128
    warmups: int = 2


FULL: Final = Effort(processes=3, rounds=4, exact_rounds=5, prompts=tuple(PROMPTS.values()))
QUICK: Final = Effort(
    processes=2, rounds=2, exact_rounds=0, prompts=(PROMPTS["short fact"],), warmups=1
)


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure.

    Args:
        library: holds the model.
        model: its id.
        precision: the one whose speeds are checked; tokens are always compared under exact.
        device: an OpenVINO device name.
        effort: how much is measured.
        progress: told in words what is done now.

    Raises:
        NotFound: no such model.
        RunnerFailed: the measuring process failed.
    """
    manifest, _ = library.get(model)
    layers = manifest.architecture.layers
    progress("splitting the model")

    def stages(count: int) -> tuple[str, ...]:
        bounds = [round(i * layers / count) for i in range(count + 1)]
        return tuple(
            str(library.stage(ModelId(model), LayerRange(a, b), silent).path)
            for a, b in pairwise(bounds)
        )

    core = common.idlest_core()
    until = time.monotonic() + _SECONDS
    results: dict[Precision, Result] = {}
    for kind in dict.fromkeys((precision, "exact")):
        chosen = kind == precision
        found: list[Result] = []
        for number in range(effort.processes if chosen else 1):
            job = Job(
                model_dir=str(library.folder(model)),
                one=stages(1),
                three=stages(3),
                precision=kind,
                core=core,
                tokens=effort.tokens,
                speed_prompt=PROMPTS[_SPEED_PROMPT],
                equal_prompts=effort.prompts if kind == "exact" and number == 0 else (),
                warmups=effort.warmups,
                rounds=effort.rounds if chosen else effort.exact_rounds,
                loads_first=number,
                device=device,
            )
            found.append(_measured(job, until - time.monotonic(), progress))
        results[kind] = merged(found)
    rows = tuple(row for kind, result in results.items() for row in _rows(kind, result))
    speeds, exact = results[precision], results["exact"]
    for d in exact.differences:
        progress(f"{d.case} differs from LLMPipeline at token {d.position} of {d.prompt!r}")
    checks = (
        common.at_least("one_stage_ratio", ratio(speeds, ONE_STAGE), ONE_STAGE_TARGET),
        common.at_least("three_stage_ratio", ratio(speeds, THREE_STAGES), THREE_STAGE_TARGET),
        common.is_true("tokens_equal", exact.compared > 0 and not exact.differences),
    )
    return common.Report("parity", common.machine(cores_used=1), rows, checks)


def _measured(job: Job, seconds: float, progress: common.Progress) -> Result:
    for line in child.lines(parity_child.__name__, job, parity_child.Line, deadline=seconds):
        if line.progress:
            progress(line.progress)
        if line.result is not None:
            return line.result
    raise RunnerFailed("The measuring process ended without a result.")


def _rows(precision: Precision, result: Result) -> list[dict[str, Any]]:
    """Decode tokens per second of each way, and its speed relative to LLMPipeline."""
    rows: list[dict[str, Any]] = []
    for speeds in result.speeds:
        relative = common.summary(ratios(result, speeds.case), 3)
        rows.append(
            {
                "precision": precision,
                "way": speeds.case,
                **{f"tok/s {k}": v for k, v in common.summary(speeds.tokens_per_second).items()},
                "ratio": relative["median"],
                "ratio_lowest": relative["lowest"],
                "ratio_highest": relative["highest"],
            }
        )
    return rows
