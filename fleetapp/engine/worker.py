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
from fleetapp.errors import FleetError, Malformed, RunnerFailed, StaleFrame
from fleetapp.types import SamplingParams
from fleetapp.wire.activations import narrow
from fleetapp.wire.frames import (
    Activations,
    ActivationType,
    Close,
    Fault,
    Open,
    SampledToken,
    Segment,
    Step,
    Tokens,
)

log = logging.getLogger("fleetapp.engine.worker")

Sampler = Callable[[npt.NDArray[np.float32], SamplingParams, int], int]
"""Chooses a token from one row of logits ``[vocab]`` for a position of its sequence.

Raises FleetError if the row holds nothing to choose from; that hurts its sequence only.
"""

Inputs = npt.NDArray[np.int64] | npt.NDArray[np.float32]

_F16_MAX = 65504.0


@dataclass(slots=True)
class _Slot:
    generation: int
    sampling: SamplingParams
    held: int = 0


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
        sample: used on a last stage.
        device_id: named in faults.
        fast: hidden states leave in 16 bits where their values allow it.
    """

    def __init__(self, executor: Executor, sample: Sampler, *, device_id: str, fast: bool) -> None:
        self.executor = executor
        self.frames = 0
        self.tokens = 0
        self.compute_seconds = 0.0
        self._sample = sample
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
        """A sequence takes a slot; an earlier one in it is dropped."""
        self.executor.open(frame.slot, frame.generation)
        self._slots[frame.slot] = _Slot(frame.generation, frame.sampling)

    def close(self, frame: Close) -> None:
        """The sequence leaves; one that is not there any more is not an error."""
        slot = self._slots.get(frame.slot)
        if slot is not None and slot.generation == frame.generation:
            del self._slots[frame.slot]
            self.executor.close(frame.slot, frame.generation)

    def step(self, number: int, segments: tuple[Segment, ...], inputs: Inputs) -> Outcome:
        """Run the segments; those that cannot be run become faults and are left out.

        Args:
            number: of the step.
            segments: at most one per slot.
            inputs: as ``Executor.forward`` takes them.

        Raises:
            Malformed: a slot appears twice; the sender is broken.
            RunnerFailed: the inference itself failed; nothing can be said of any slot.
        """
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
            self.compute_seconds += time.perf_counter() - started
        self.frames += 1
        self.tokens += int(inputs.shape[0])
        for segment in sound:
            self._slots[segment.slot].held = segment.past_len + segment.count
        if self.executor.info.last:
            chosen = self._choose(number, sound, output, faults)
            if len(faults) == len(segments):
                return Outcome(tuple(faults))
            return Outcome(tuple(faults), Tokens(self._epoch, number, chosen))
        dtype = self._dtype(output)
        step = Step(self._epoch, number, sound, dtype, output.shape[1])
        return Outcome(tuple(faults), step, narrow(output, dtype))

    def _sound(
        self, number: int, segments: tuple[Segment, ...], faults: list[Fault]
    ) -> tuple[Segment, ...]:
        sound: list[Segment] = []
        for segment in segments:
            slot = self._slots.get(segment.slot)
            if slot is None or slot.generation != segment.generation:
                held = "nobody" if slot is None else f"generation {slot.generation}"
                reason = f"slot {segment.slot} is held by {held}, not {segment.generation}"
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
        asked = [s for s in segments if s.sample]
        for segment, row in zip(asked, logits, strict=True):
            position = segment.past_len + segment.count
            try:
                token = self._sample(row, self._slots[segment.slot].sampling, position)
            except FleetError as exc:
                faults.append(self._fault(number, segment.slot, exc))
                continue
            chosen.append(SampledToken(segment.slot, segment.generation, position, token))
        return tuple(chosen)

    def _dtype(self, hidden: npt.NDArray[np.float32]) -> ActivationType:
        """``f32`` under exact. Under fast ``f16`` if every value of the frame fits it, otherwise
        ``f32``: an outlier channel must not become infinite. Each step states its own.
        """
        if not self._fast:
            return "f32"
        if self.executor.info.activations != "f32":
            return self.executor.info.activations  # loses nothing
        peak = max(float(hidden.max()), -float(hidden.min()))
        return "f16" if peak <= _F16_MAX else "f32"  # a NaN compares false

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


def _rows_of(segments: tuple[Segment, ...], kept: tuple[Segment, ...], inputs: Inputs) -> Inputs:
    """The rows of the segments that are kept."""
    keep = np.repeat([any(s is k for k in kept) for s in segments], [s.count for s in segments])
    kept_rows: Inputs = inputs[keep]
    return kept_rows
