"""A trial run: stages and the whole model on one prompt must agree. Imports OpenVINO.

Runs the stateful graphs as they are on disk, on the CPU, in full precision.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov
import psutil

from fleetapp.errors import CannotSplit
from fleetapp.models.child import Examination
from fleetapp.models.facts import GraphFacts
from fleetapp.models.progress import Progress, ProgressFn
from fleetapp.models.split import Graph, split
from fleetapp.platform.units import size
from fleetapp.types import LayerRange

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "ENABLE_CPU_PINNING": "NO",
}
PROMPT = tuple(range(1, 60, 5))
"""Token ids that any vocabulary has."""
DECODE_STEPS = 4
MEMORY_FACTOR = 3.0
"""Of the weights' bytes: what compiling and running in full precision may take."""
TOLERANCE = 1e-3
"""Largest difference of logits that counts as equal; relative to the largest logit if above 1."""


def run(graphs: Sequence[Path], prompt: Sequence[int], steps: int) -> npt.NDArray[np.float32]:
    """Decode greedily through one or more stateful graphs.

    Args:
        graphs: ``stage.xml`` files in order, or one whole model.
        prompt: token ids.
        steps: tokens to decode after the prompt.

    Returns:
        Logits ``[1 + steps, vocab]`` of the last position of each inference.
    """
    core = ov.Core()
    requests = [
        core.compile_model(os.fspath(path), "CPU", EXACT).create_infer_request() for path in graphs
    ]
    rows: list[npt.NDArray[np.float32]] = []
    past, tokens = 0, list(prompt)
    for _ in range(1 + steps):
        values: Any = np.array([tokens], np.int64)
        for request in requests:
            request.infer(_feed(request, values, past, len(tokens)))
            values = request.get_output_tensor(0).data.copy()
        rows.append(values[0, -1])
        past += len(tokens)
        tokens = [int(values[0, -1].argmax())]
    return np.stack(rows)


def _feed(request: Any, values: Any, past: int, count: int) -> dict[str, Any]:
    standard = {
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    feed: dict[str, Any] = {}
    for port in request.model_inputs:
        name = port.any_name
        feed[name] = standard.get(name, values)
    return feed


def examine(source: Path, work: Path, progress: ProgressFn) -> Examination:
    """Measure an IR and, if memory allows, run it whole and in two parts on one prompt.

    Args:
        source: openvino_model.xml.
        work: an empty folder for the parts; the caller removes it.
        progress: told the phases ``inspecting`` and ``checking``.

    Raises:
        CannotSplit: the logits differ by more than ``TOLERANCE``.
    """
    progress(Progress("inspecting"))
    facts = Graph(source).facts()
    needed = int(source.with_suffix(".bin").stat().st_size * MEMORY_FACTOR)
    if needed > psutil.virtual_memory().available:
        progress(Progress("checking", message=f"skipped: it would need {size(needed)} of memory"))
        return Examination(facts, None)
    return Examination(facts, compare(source, work, middle_cut(facts), progress))


def middle_cut(facts: GraphFacts) -> list[int]:
    """Bounds of two parts of about the same number of layers, or of one if there is no cut."""
    if not facts.cuttable:
        return [0, facts.layers]
    return [0, min(facts.cuttable, key=lambda k: abs(k - facts.layers / 2)), facts.layers]


def compare(source: Path, work: Path, bounds: Sequence[int], progress: ProgressFn) -> float:
    """Split an IR at ``bounds``, run parts and whole on one prompt, return the largest difference.

    Raises:
        CannotSplit: no clean cut, or the logits differ by more than ``TOLERANCE``.
    """
    stages = len(bounds) - 1
    steps = stages + 2
    parts = []
    for i in range(stages):
        layers = LayerRange(bounds[i], bounds[i + 1])
        progress(Progress("checking", i, steps, "steps", f"cutting out layers {layers}"))
        folder = work / f"part{i}"
        folder.mkdir()
        split(source, layers, folder)
        parts.append(folder / "stage.xml")
    progress(Progress("checking", stages, steps, "steps", "running the whole model"))
    whole = run([source], PROMPT, DECODE_STEPS)
    progress(Progress("checking", stages + 1, steps, "steps", "running its parts"))
    split_up = run(parts, PROMPT, DECODE_STEPS)
    worst = float(np.abs(whole - split_up).max())
    if not worst <= TOLERANCE * max(1.0, float(np.abs(whole).max())):
        raise CannotSplit(
            f"The parts of {source.parent.name} do not compute what the whole does "
            f"(logits differ by {worst:.3g}).",
            remedy="Nothing was imported; please report the model's name.",
        )
    progress(Progress("checking", steps, steps, "steps"))
    return worst
