"""One step of one stage: check the segments, run the executor, sample or narrow.

Head and other stages do this alike; only where inputs come from and outputs go differs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetapp.engine.executor.base import Executor
from fleetapp.engine.sampling import Context, Matcher, NoGrammars, verify
from fleetapp.errors import (
    FleetError,
    KeptLost,
    Malformed,
    NoCapacity,
    RunnerFailed,
    StaleFrame,
)
from fleetapp.types import Grammar
from fleetapp.wire.activations import cut, narrow
from fleetapp.wire.frames import (
    Activations,
    ActivationType,
    Close,
    Drop,
    Fault,
    Keep,
    Open,
    SampledToken,
    Segment,
    Spill,
    StageTiming,
    Step,
    Tokens,
)

log = logging.getLogger("fleetapp.engine.worker")

Grammars = Callable[[Grammar], Matcher]
"""Makes the matcher of one answer; returns at once, whatever is wrong is raised on its use."""

Inputs = npt.NDArray[np.int64] | npt.NDArray[np.float32]


@dataclass(slots=True)
class _Slot:
    generation: int
    context: Context | None
    """On a last stage: what choosing its tokens depends on."""
    held: int = 0
    lost: FleetError | None = None
    """Why what it was to begin with is not there."""


@dataclass(frozen=True)
class Outcome:
    """What a step gave: faults of single slots, and the frame to send on if any slot is left."""

    faults: tuple[Fault, ...]
    frame: Step | Tokens | None = None
    payload: Activations | None = None


class Worker:
    """The layers of one stage and its slots, for one epoch after another.

    Args:
        executor: the loaded shard.
        grammars: used on a last stage; None refuses requests that bring a grammar.
        device_id: named in faults.
        fast: hidden states leave in 16 bits where their values allow it.
    """

    def __init__(
        self,
        executor: Executor,
        grammars: Grammars | None = None,
        *,
        device_id: str,
        fast: bool,
    ) -> None:
        self.executor = executor
        self.frames = 0
        self.tokens = 0
        self.compute_seconds = 0.0
        self._grammars = grammars
        self.device_id = device_id
        self._fast = fast
        self._epoch = 0
        self._stage = 0
        self._slots: dict[int, _Slot] = {}

    @property
    def open_slots(self) -> int:
        """Slots that hold a sequence."""
        return len(self._slots)

    def reset(self, epoch: int, stage: int) -> None:
        """A new epoch: every slot is dropped."""
        self._epoch, self._stage = epoch, stage
        self._slots.clear()
        self.executor.reset()

    def open(self, frame: Open) -> None:
        """A sequence takes a slot; an earlier one in it is dropped.

        If its prefix is lost here the sequence's first segment is refused, and nobody else's.
        """
        context = self._context(frame) if self.executor.info.last else None
        slot = _Slot(frame.generation, context)
        self._slots[frame.slot] = slot
        try:
            self.executor.open(frame.slot, frame.generation, frame.prefix)
        except (KeptLost, NoCapacity) as exc:
            slot.lost = KeptLost(exc.message)
            return
        slot.held = frame.prefix.length if frame.prefix is not None else 0

    def _context(self, frame: Open) -> Context:
        grammar = frame.sampling.grammar
        matcher = None
        if grammar is not None:
            matcher = NoGrammars() if self._grammars is None else self._grammars(grammar)
        return Context(frame.sampling, frame.history, frame.answered, matcher)

    def close(self, frame: Close) -> None:
        """The sequence leaves; one that is not there any more is not an error."""
        slot = self._slots.get(frame.slot)
        if slot is not None and slot.generation == frame.generation:
            del self._slots[frame.slot]
            self.executor.close(frame.slot, frame.generation, frame.keep, frame.keep_len)

    def arrange(self, frame: Keep | Drop | Spill) -> None:
        """Do with kept sequences as the head says."""
        match frame:
            case Keep():
                self.executor.keep(frame.slot, frame.generation, frame.keep, frame.length)
            case Drop():
                self.executor.drop(frame.keep)
            case Spill():
                self.executor.spill(frame.keep)

    def step(
        self,
        number: int,
        segments: tuple[Segment, ...],
        inputs: Inputs,
        *,
        before: tuple[StageTiming, ...] = (),
        arrived: float | None = None,
    ) -> Outcome:
        """Run the segments; those that cannot be run become faults and are left out.

        Args:
            number: of the step.
            segments: at most one per slot.
            inputs: as ``Executor.forward`` takes them.
            before: timings of the stages before; this one's is added to the frame it makes.
            arrived: ``perf_counter`` when the step came in; now if None.

        Raises:
            Malformed: a slot appears twice; the sender is broken.
            RunnerFailed: the inference itself failed; nothing can be said of any slot.
        """
        taken = time.perf_counter()
        if len({s.slot for s in segments}) != len(segments):
            raise Malformed(f"Step {number} names a slot twice.")
        faults: list[Fault] = []
        sound = self._sound(number, segments, faults)
        if len(sound) < len(segments):
            inputs = _rows_of(segments, sound, inputs)
        if not sound:
            return Outcome(tuple(faults))
        started = time.perf_counter()
        try:
            output = self.executor.forward(sound, inputs)
        except FleetError as exc:
            faults += [self._fault(number, s.slot, exc) for s in sound]
            return Outcome(tuple(faults))
        except Exception as exc:
            log.exception("inference failed")
            raise RunnerFailed(
                f"The inference on stage {self._stage} (device {self.device_id}) failed: {exc}"
            ) from exc
        finally:
            computed = time.perf_counter()
            self.compute_seconds += computed - started
        self.frames += 1
        self.tokens += int(inputs.shape[0])
        for segment in sound:
            self._slots[segment.slot].held = segment.past_len + segment.count
        if self.executor.info.last:
            chosen = self._choose(number, sound, output, faults)
            if len(faults) == len(segments):
                return Outcome(tuple(faults))
            timings = (*before, _timing(arrived, taken, started, computed))
            return Outcome(tuple(faults), Tokens(self._epoch, number, chosen, timings))
        dtype, payload = self._outgoing(output)
        timings = (*before, _timing(arrived, taken, started, computed))
        step = Step(self._epoch, number, sound, dtype, output.shape[1], timings)
        return Outcome(tuple(faults), step, payload)

    def _sound(
        self, number: int, segments: tuple[Segment, ...], faults: list[Fault]
    ) -> tuple[Segment, ...]:
        sound: list[Segment] = []
        for segment in segments:
            slot = self._slots.get(segment.slot)
            if slot is None or slot.generation != segment.generation:
                held = "nobody" if slot is None else f"generation {slot.generation}"
                reason = f"slot {segment.slot} is held by {held}, not {segment.generation}"
            elif slot.lost is not None:
                faults.append(self._fault(number, segment.slot, slot.lost))
                continue
            elif segment.past_len > slot.held:
                reason = (
                    f"slot {segment.slot} holds {slot.held} positions, "
                    f"fewer than the {segment.past_len} that step {number} builds on"
                )
            else:
                sound.append(segment)
                continue
            stale = StaleFrame(f"Stage {self._stage} (device {self.device_id}): {reason}.")
            faults.append(self._fault(number, segment.slot, stale))
        return tuple(sound)

    def _choose(
        self,
        number: int,
        segments: tuple[Segment, ...],
        logits: npt.NDArray[np.float32],
        faults: list[Fault],
    ) -> tuple[SampledToken, ...]:
        chosen: list[SampledToken] = []
        row = 0
        for segment in segments:
            if not segment.sample:
                continue
            rows = logits[row : row + 1 + len(segment.drafts)]
            row += len(rows)
            first = segment.past_len + segment.count - len(segment.drafts)
            context = self._slots[segment.slot].context
            assert context is not None, "only a last stage chooses"
            try:
                choices = verify(rows, segment.drafts, context, first)
            except FleetError as exc:
                faults.append(self._fault(number, segment.slot, exc))
                continue
            chosen += [
                SampledToken(segment.slot, segment.generation, first + i, c.token, c.logprob, c.top)
                for i, c in enumerate(choices)
            ]
        return tuple(chosen)

    def _outgoing(self, hidden: npt.NDArray[np.float32]) -> tuple[ActivationType, Activations]:
        """``f32`` under exact. Under fast the type they were computed in if that has 16 bits, which
        loses nothing; else ``f16`` if every value of the frame fits it, otherwise ``f32``: an
        outlier channel must not become infinite. Each step states its own.
        """
        if self._fast:
            own = self.executor.info.activations
            if own == "bf16":
                return own, cut(hidden)
            if own != "f32":
                return own, narrow(hidden, own)
            half = narrow(hidden, "f16")
            if np.isfinite(half).all():
                return "f16", half
        return "f32", hidden

    def _fault(self, step: int, slot: int, error: FleetError) -> Fault:
        return Fault(
            epoch=self._epoch,
            stage=self._stage,
            device=self.device_id,
            code=error.code,
            message=error.message,
            step=step,
            slot=slot,
        )


def _timing(arrived: float | None, taken: float, began: float, computed: float) -> StageTiming:
    """Of a step whose outcome is ready now; all by ``perf_counter``."""
    host = (began - taken) + (time.perf_counter() - computed)
    return StageTiming(
        began=round(began * 1e6),
        wait=0 if arrived is None else max(0, round((taken - arrived) * 1e6)),
        compute=round((computed - began) * 1e6),
        host=round(host * 1e6),
    )


def _rows_of(segments: tuple[Segment, ...], kept: tuple[Segment, ...], inputs: Inputs) -> Inputs:
    """The rows of the segments that are kept."""
    keep = np.repeat([any(s is k for k in kept) for s in segments], [s.count for s in segments])
    kept_rows: Inputs = inputs[keep]
    return kept_rows
