"""``bench prefix``: a conversation goes on. Is its history computed again?

A history of 1,500 tokens gets an answer; the next turn brings history, answer and a new
question. Its time to the first token is held against a prompt of the same length that nobody has
seen before.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common
from fleetapp.bench.rounds import ANSWER_SECONDS, Ids, Prompts
from fleetapp.bench.runners import Answer, RunnerRing
from fleetapp.bench.workshop import Workshop, bounds, by_bytes
from fleetapp.errors import from_code
from fleetapp.models.library import Library
from fleetapp.types import Precision

HISTORY_TOKENS: Final = 1500
QUESTION_TOKENS: Final = 24
ANSWER_TOKENS: Final = 16
TARGET: Final = 5.0
_CACHE_BYTES: Final = 1 << 30
"""Idle sequences may have a part of the cache only, and the prompt in between must not oust the
history: whether it is kept under pressure is another question."""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    stages: tuple[int, ...] = (1, 2)
    warmups: int = 1


FULL: Final = Effort(rounds=5, warmups=2)
QUICK: Final = Effort(rounds=2, stages=(1,))


@dataclass(frozen=True)
class Turn:
    """One round; seconds and tokens."""

    cold: float
    warm: float
    cached: int
    equal: bool
    """The answer is what it would be without anything kept (meaningful under ``exact`` only)."""


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure; arguments and errors as ``parity.run``."""
    manifest, _ = library.get(model)
    rows: list[dict[str, Any]] = []
    gains: list[float] = []
    equal = True
    with tempfile.TemporaryDirectory(prefix="fleetapp-bench-") as folder:
        workshop = Workshop(library, model, manifest, Path(folder), precision, device)
        prompts = workshop.prompts()
        for stages in effort.stages:
            progress(f"loading {stages} stages")
            cut = bounds(stages, by_bytes(manifest))
            found: list[Turn] = []
            with workshop.ring(
                f"ring{stages}", cut, common.cores_for(stages), kv_bytes=_CACHE_BYTES
            ) as ring:
                for number in range(effort.warmups + effort.rounds):
                    progress(f"{stages} stages, round {number + 1}")
                    turn = one_round(ring, prompts)
                    if number >= effort.warmups:
                        found.append(turn)
            rows.append(_row(stages, found))
            gains.append(statistics.median(t.cold / t.warm for t in found))
            equal = equal and all(t.equal for t in found)
    checks = [common.at_least("ttft_gain", min(gains), TARGET)]
    if precision == "exact":
        checks.append(common.is_true("tokens_equal", equal))
    machine = common.machine(cores_used=len(set(common.cores_for(max(effort.stages)))))
    return common.Report("prefix", machine, tuple(rows), tuple(checks))


def one_round(ring: RunnerRing, prompts: Prompts) -> Turn:
    """A turn, the turn after it, and the same length anew."""
    history = prompts.long(HISTORY_TOKENS)
    said = _ask(ring, history)
    question = prompts.long(QUESTION_TOKENS)
    follow_up = (*history, *said.ids, *question)
    cold = _ask(ring, prompts.long(len(follow_up)))
    warm = _ask(ring, follow_up)
    # With another first token nothing can be shared, so its answer tells nothing; the honest
    # comparison is the very same prompt on a chain that holds nothing.
    ring.link()
    anew = _ask(ring, follow_up)
    timings = warm.finished.timings if warm.finished is not None else None
    return Turn(
        cold=cold.first_token,
        warm=warm.first_token,
        cached=timings.cached_tokens if timings is not None else 0,
        equal=warm.ids == anew.ids,
    )


def _ask(ring: RunnerRing, ids: Ids) -> Answer:
    request_id = ring.begin(ids, max_tokens=ANSWER_TOKENS, ignore_eos=True)
    answer = ring.head.answer(request_id, ANSWER_SECONDS)
    end = answer.finished
    if end is not None and end.reason == "error":
        raise from_code(end.code, end.message, end.remedy)
    return answer


def _row(stages: int, found: Sequence[Turn]) -> dict[str, Any]:
    return {
        "stages": stages,
        "history tokens": HISTORY_TOKENS,
        "cached tokens": statistics.median(t.cached for t in found),
        "cold ttft ms": round(statistics.median(t.cold for t in found) * 1e3, 1),
        "warm ttft ms": round(statistics.median(t.warm for t in found) * 1e3, 1),
        **{f"gain {k}": v for k, v in common.summary([t.cold / t.warm for t in found], 2).items()},
    }
