"""Where the time of each step and of each answer went. No I/O; the head's thread only.

What the stages measured comes back with every step. The head knows how long the whole step took;
what no stage and no inbox accounts for was spent on the wire.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from fleetapp.engine.pipe import ChainStats, StageTotals, StepRecord
from fleetapp.wire.frames import Segment, StageTiming

KEPT: Final = 4096
"""Records of the most recent steps that a trace can show; about 2 MB."""


class StepSums(NamedTuple):
    """What all stages together spent on a step, in microseconds: the same for all its answers."""

    compute: int
    host: int
    wire: int

    @classmethod
    def of(cls, record: StepRecord) -> StepSums:
        """Of this step."""
        compute = sum([s.compute for s in record.stages])
        return cls(compute, sum([s.host for s in record.stages]), record.wire)


@dataclass(slots=True)
class Account:
    """Where the time of one answer went, in seconds, and what its steps were like."""

    steps: int = 0
    compute: float = 0.0
    wire: float = 0.0
    host: float = 0.0
    width: int = 0
    """Sequences in its steps, summed over the steps."""
    _until: int = 0

    def add(self, record: StepRecord, cost: StepSums) -> None:
        """The answer was in this step; where its steps overlap an instant counts once."""
        self.steps += 1
        self.width += len(record.requests)
        whole = record.completed - record.launched
        fresh = record.completed - max(record.launched, self._until)
        self._until = max(self._until, record.completed)
        if fresh <= 0:
            return
        share = fresh / whole * 1e-6
        self.compute += share * cost.compute
        self.host += share * cost.host
        self.wire += share * cost.wire


@dataclass(slots=True)
class Ended:
    """Sums over the requests that have ended."""

    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Launched:
    at: int
    requests: tuple[str, ...]
    counts: tuple[int, ...]
    decodes: int


class StepLog:
    """Every step from its launch to its answer, and what they sum up to.

    Args:
        clock: monotonic seconds; the same clock as the stages' on the head's PC.

    Attributes:
        steps: completed ones.
        sequences: in them, summed over the steps; over ``steps`` it is the mean batch width.
        prefill_tokens: positions computed for prompts.
        decode_tokens: positions computed for answers, drafts included.
        wire_seconds: spent between stages.
        wait_seconds: answers lay at the head.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.steps = 0
        self.sequences = 0
        self.prefill_tokens = 0
        self.decode_tokens = 0
        self.wire_seconds = 0.0
        self.wait_seconds = 0.0
        self._clock = clock
        self._owner: dict[int, str] = {}
        self._launched: dict[int, _Launched] = {}
        self._stages: list[list[int]] = []
        self._recent: deque[StepRecord] = deque(maxlen=KEPT)

    @property
    def recent(self) -> tuple[StepRecord, ...]:
        """The last steps, oldest first."""
        return tuple(self._recent)

    def stats(
        self, ended: Ended, *, drafted: Sequence[int] = (), accepted: Sequence[int] = ()
    ) -> ChainStats:
        """Everything counted so far; drafts by position, as ``ChainStats`` has them."""
        return ChainStats(
            steps=self.steps,
            sequences=self.sequences,
            prefill_tokens=self.prefill_tokens,
            decode_tokens=self.decode_tokens,
            wire_seconds=self.wire_seconds,
            wait_seconds=self.wait_seconds,
            stages=tuple(
                StageTotals(wait=w * 1e-6, compute=c * 1e-6, host=h * 1e-6)
                for w, c, h in self._stages
            ),
            drafted=tuple(drafted),
            accepted=tuple(accepted),
            **asdict(ended),
        )

    def reset(self) -> None:
        """A new epoch: what is in flight never comes back."""
        self._launched.clear()
        self._owner.clear()

    def opened(self, request_id: str, slot: int) -> None:
        """From now on segments of this slot belong to the request."""
        self._owner[slot] = request_id

    def launched(self, step: int, segments: Iterable[Segment]) -> None:
        """A step begins now."""
        segments = tuple(segments)
        decodes = sum(s.count for s in segments if s.sample and s.count == 1 + len(s.drafts))
        self._launched[step] = _Launched(
            round(self._clock() * 1e6),
            tuple(self._owner.get(s.slot, "") for s in segments),
            tuple(s.count for s in segments),
            decodes,
        )

    def dropped(self, step: int) -> None:
        """Nothing more comes of a step."""
        self._launched.pop(step, None)

    def completed(
        self, epoch: int, step: int, stages: tuple[StageTiming, ...], arrived: float | None = None
    ) -> StepRecord | None:
        """A step's answer is taken up now.

        Args:
            epoch: of the chain.
            step: number of the step.
            stages: what they measured.
            arrived: when the answer came in, by the same clock; now if None.

        Returns:
            Its record; None for a step that was not launched, or dropped.
        """
        begun = self._launched.pop(step, None)
        if begun is None:
            return None
        now = self._clock()
        record = StepRecord(
            epoch=epoch,
            step=step,
            launched=begun.at,
            completed=round(now * 1e6),
            lag=0 if arrived is None else max(0, round((now - arrived) * 1e6)),
            requests=begun.requests,
            counts=begun.counts,
            stages=stages,
        )
        self._sum_up(record, begun.decodes)
        return record

    def _sum_up(self, record: StepRecord, decodes: int) -> None:
        self._recent.append(record)
        self.steps += 1
        self.sequences += len(record.requests)
        self.decode_tokens += decodes
        self.prefill_tokens += sum(record.counts) - decodes
        self.wire_seconds += record.wire * 1e-6
        self.wait_seconds += record.lag * 1e-6
        while len(self._stages) < len(record.stages):
            self._stages.append([0, 0, 0])
        for total, timing in zip(self._stages, record.stages, strict=False):
            total[0] += timing.wait
            total[1] += timing.compute
            total[2] += timing.host
