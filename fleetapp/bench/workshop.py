"""Rings of one model for benches, cut where stages take equally long."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common, rounds
from fleetapp.bench.rounds import Prompts
from fleetapp.bench.runners import Layout, RunnerRing
from fleetapp.engine.pipe import StepRecord
from fleetapp.errors import RunnerFailed
from fleetapp.models.library import Library
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import Precision

_CACHE_BYTES: Final = 256 << 20
_TRIALS: Final = 3
_TRIAL_TOKENS: Final = 48


@dataclass(frozen=True)
class Workshop:
    """Makes rings of one model."""

    library: Library
    model: str
    manifest: ModelManifest
    root: Path
    precision: Precision
    device: str

    @property
    def layers(self) -> int:
        """Of the whole model."""
        return self.manifest.architecture.layers

    def layout(self, bounds: Sequence[int]) -> Layout:
        """Stage folders cut there."""
        return rounds.layout(self.library, self.model, bounds)

    def ring(
        self, name: str, bounds: Sequence[int], cores: Sequence[int], **more: Any
    ) -> RunnerRing:
        """A linked ring; the caller closes it."""
        ring = RunnerRing(
            self.root / name,
            self.layout(bounds),
            cores=cores,
            **{
                "precision": self.precision,
                "device": self.device,
                "kv_bytes": _CACHE_BYTES,
                **more,
            },
        )
        try:
            ring.link()
        except BaseException:
            ring.close()
            raise
        return ring

    def prompts(self) -> Prompts:
        """Of this model's tokenizer."""
        whole = self.layout((0, self.layers))
        context = self.manifest.architecture.context_length
        return Prompts(whole.folders[0] / "tokenizer", context)


@dataclass(frozen=True)
class Layers:
    """What one layer costs, and how many layers everything together is worth.

    ``worth`` is larger than ``count`` by what the LM head and sampling cost, in layers.
    """

    count: int
    worth: float


def bounds(stages: int, layers: Layers) -> tuple[int, ...]:
    """Cuts that make stages equally slow; each gets at least one layer."""
    cuts = [0]
    for i in range(1, stages):
        ideal = round(i * layers.worth / stages)
        cuts.append(min(max(ideal, cuts[-1] + 1), layers.count - (stages - i)))
    return (*cuts, layers.count)


def by_bytes(manifest: ModelManifest) -> Layers:
    """From the weights that are read per token."""
    each = sum(manifest.layer_bytes) / len(manifest.layer_bytes)
    return Layers(
        len(manifest.layer_bytes), (sum(manifest.layer_bytes) + manifest.head_bytes) / each
    )


def by_times(layers: Layers, cut: int, records: Sequence[StepRecord]) -> Layers:
    """From what two stages, cut there, spent on the same steps; the median of each."""
    first, last = (
        statistics.median(r.stages[i].compute + r.stages[i].host for r in records) for i in (0, 1)
    )
    return Layers(layers.count, cut * (first + last) / first)


def best_halves(workshop: Workshop, guess: Layers) -> tuple[int, ...]:
    """The cut in two that serves eight users fastest, tried out around a guess.

    What a head does besides computing (scheduling, text, the way to its agent) is in no stage's
    times.
    """
    ideal = bounds(2, guess)[1]
    cuts = [(0, cut, guess.count) for cut in range(max(1, ideal - 2), ideal + 1)]
    prompts, cores = workshop.prompts(), common.cores_for(2)
    with ExitStack() as stack:
        rings = [stack.enter_context(workshop.ring(f"try{cut[1]}", cut, cores)) for cut in cuts]
        rates: list[list[float]] = [[] for _ in rings]
        for number in range(1 + _TRIALS):
            for ring, measured in zip(rings, rates, strict=True):
                rate = rounds.ask_all([ring], prompts.take(8), _TRIAL_TOKENS).rate
                if number:  # the first is for warming up
                    measured.append(rate)
    return cuts[max(range(len(cuts)), key=lambda i: statistics.median(rates[i]))]


def measured_layers(workshop: Workshop) -> Layers:
    """Cut by bytes, run eight users through it, and see how long each half took."""
    guess = by_bytes(workshop.manifest)
    halves = bounds(2, guess)
    prompts = workshop.prompts()
    with workshop.ring("profile", halves, common.cores_for(2)) as ring:
        rounds.ask_all([ring], prompts.take(8), 48)
        # Steps of prompts take longer and would not say much about the others.
        decodes = [r for r in ring.head.trace() if max(r.counts) == 1]
    if not decodes:
        raise RunnerFailed("The head does not say what its stages have spent.")
    return by_times(guess, halves[1], decodes)
