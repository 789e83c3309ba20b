"""``bench prefill``: a long prompt arrives while others read their answers. Who waits how long?

Seven answers stream; a prompt of 1,500 tokens comes. It is computed in chunks that share frames
with the seven, so each of their tokens may come later by one chunk's time and no more.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common, rounds
from fleetapp.bench.rounds import ANSWER_SECONDS, Ids, Prompts
from fleetapp.bench.runners import Answer, RunnerRing
from fleetapp.bench.workshop import Workshop, bounds, by_bytes
from fleetapp.engine.pipe import StepRecord
from fleetapp.errors import RunnerFailed
from fleetapp.models.library import Library
from fleetapp.types import Precision

STREAMING: Final = 7
PROMPT_TOKENS: Final = 1500
TARGET: Final = 1.0
_SETTLED: Final = 12
"""Tokens that every answer has before the prompt comes."""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    stages: tuple[int, ...] = (1, 2)
    warmups: int = 1
    tokens: int = 160


FULL: Final = Effort(rounds=5, warmups=2)
QUICK: Final = Effort(rounds=1, stages=(1,))


@dataclass(frozen=True)
class Shown:
    """One round; seconds.

    Attributes:
        usual: the median time between two tokens before the prompt came.
        worst: the longest while it was computed, of any of the seven.
        chunk: what a frame with one of its chunks costs at all stages; the dearest, as later
            chunks look back on more.
        chunk_tokens: the largest it was computed in.
        first_token: what its sender waited for.
        alone: what it would have waited for on an idle chain.
    """

    usual: float
    worst: float
    chunk: float
    chunk_tokens: int
    first_token: float
    alone: float

    @property
    def delay_chunks(self) -> float:
        """By how many chunks' time the latest token was late."""
        return max(0.0, self.worst - self.usual) / self.chunk


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
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="fleetapp-bench-") as folder:
        workshop = Workshop(library, model, manifest, Path(folder), precision, device)
        prompts = workshop.prompts()
        for stages in effort.stages:
            progress(f"loading {stages} stages")
            cut = bounds(stages, by_bytes(manifest))
            found: list[Shown] = []
            with workshop.ring(f"ring{stages}", cut, common.cores_for(stages)) as ring:
                for number in range(effort.warmups + effort.rounds):
                    progress(f"{stages} stages, round {number + 1}")
                    shown = one_round(ring, prompts, effort.tokens)
                    if number >= effort.warmups:
                        found.append(shown)
            rows.append(_row(stages, found))
            worst = max(worst, statistics.median(s.delay_chunks for s in found))
    check = common.Check("decode_delay_chunks", round(worst, 4), TARGET, worst <= TARGET)
    machine = common.machine(cores_used=len(set(common.cores_for(max(effort.stages)))))
    return common.Report("prefill", machine, tuple(rows), (check,))


def one_round(ring: RunnerRing, prompts: Prompts, tokens: int) -> Shown:
    """The prompt alone, then seven answers and in their midst the prompt."""
    long = prompts.long(PROMPT_TOKENS)
    alone = rounds.ask_all([ring], [long], 1)
    ids = [_begin(ring, p, tokens) for p in prompts.take(STREAMING)]
    answers = [ring.head.answers[i] for i in ids]
    ring.head.wait(lambda: all(len(a.ids) >= _SETTLED for a in answers) or None, ANSWER_SECONDS)
    last = _begin(ring, prompts.long(PROMPT_TOKENS), 2)
    newcomer = ring.head.answer(last, ANSWER_SECONDS)
    for request_id in ids:
        ring.head.answer(request_id, ANSWER_SECONDS)
    chunks = [r for r in ring.head.trace() if _of(r, last) > 2]
    if not newcomer.times or not chunks:
        raise RunnerFailed("The long prompt was not computed in the midst of the others.")
    arrived, done = newcomer.asked, newcomer.times[0]
    before = [g for a in answers for t, g in _gaps(a) if t < arrived]
    during = [g for a in answers for t, g in _gaps(a) if arrived <= t and t - g <= done]
    if not during:
        raise RunnerFailed("The others had ended before the long prompt was computed.")
    return Shown(
        usual=statistics.median(before),
        worst=max(during),
        chunk=max(sum(s.compute + s.host for s in r.stages) for r in chunks) * 1e-6,
        chunk_tokens=max(_of(r, last) for r in chunks),
        first_token=done - arrived,
        alone=alone.first[0],
    )


def _begin(ring: RunnerRing, ids: Ids, tokens: int) -> str:
    return ring.begin(ids, max_tokens=tokens, ignore_eos=True)


def _of(record: StepRecord, request_id: str) -> int:
    """Positions that a step computed for a request."""
    pairs = zip(record.requests, record.counts, strict=True)
    return sum(count for owner, count in pairs if owner == request_id)


def _gaps(answer: Answer) -> list[tuple[float, float]]:
    """(when a token came, how long after the one before).

    Text that could still become part of a longer character is held back; where a Delta brings
    several tokens the gap before it is not one token's, and is left out.
    """
    pairs = zip(pairwise(answer.times), answer.deltas[1:], strict=True)
    return [(b, b - a) for (a, b), delta in pairs if len(delta.token_ids) == 1]


def _row(stages: int, found: Sequence[Shown]) -> dict[str, Any]:
    def ms(values: Sequence[float]) -> float:
        return round(statistics.median(values) * 1e3, 1)

    return {
        "stages": stages,
        "streaming": STREAMING,
        "prompt tokens": PROMPT_TOKENS,
        "chunk tokens": max(s.chunk_tokens for s in found),
        "chunk ms": ms([s.chunk for s in found]),
        "inter-token ms before": ms([s.usual for s in found]),
        "longest ms during": ms([s.worst for s in found]),
        **{
            f"delay chunks {k}": v
            for k, v in common.summary([s.delay_chunks for s in found], 2).items()
        },
        "ttft ms": ms([s.first_token for s in found]),
        "ttft ms alone": ms([s.alone for s in found]),
    }
