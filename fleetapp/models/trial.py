"""A trial run: stages and the whole model on one prompt must agree. Imports OpenVINO.

Runs the stateful graphs as they are on disk, on the CPU, in full precision.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov

from fleetapp.errors import CannotSplit
from fleetapp.models.child import Trial
from fleetapp.models.progress import Progress, ProgressFn
from fleetapp.models.split import Graph, split
from fleetapp.types import LayerRange

EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "ENABLE_CPU_PINNING": "NO",
}
PROMPT_TOKENS = 12
DECODE_STEPS = 4
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


def compare(
    source: Path, work: Path, progress: ProgressFn, cuts: Callable[[Graph], list[int]] | None = None
) -> Trial:
    """Split an IR in two, run both parts and the whole on one prompt, compare.

    Args:
        source: openvino_model.xml.
        work: an empty folder for the parts; the caller removes it.
        progress: told the phase ``checking``.
        cuts: where to cut; the middle if not given.

    Raises:
        CannotSplit: the logits differ by more than ``TOLERANCE``.
    """
    graph = Graph(source)
    facts = graph.facts()
    bounds = (cuts or _middle)(graph)
    del graph
    parts, stages = [], len(bounds) - 1
    steps = stages + 2
    for i in range(stages):
        progress(
            Progress(
                "checking", i, steps, "steps", f"cutting layers {bounds[i]} to {bounds[i + 1] - 1}"
            )
        )
        folder = work / f"part{i}"
        folder.mkdir()
        split(source, LayerRange(bounds[i], bounds[i + 1]), folder)
        parts.append(folder / "stage.xml")
    prompt = [(7 * i + 1) % facts.vocab_size for i in range(PROMPT_TOKENS)]
    progress(Progress("checking", stages, steps, "steps", "running the whole model"))
    whole = run([source], prompt, DECODE_STEPS)
    progress(Progress("checking", stages + 1, steps, "steps", "running its parts"))
    split_up = run(parts, prompt, DECODE_STEPS)
    worst = float(np.abs(whole - split_up).max())
    if not worst <= TOLERANCE * max(1.0, float(np.abs(whole).max())):
        raise CannotSplit(
            f"The parts of {source.parent.name} do not compute what the whole does "
            f"(logits differ by {worst:.3g}).",
            remedy="Nothing was imported; please report the model's name.",
        )
    progress(Progress("checking", steps, steps, "steps"))
    return Trial(stages=stages, tokens=PROMPT_TOKENS + DECODE_STEPS, max_difference=worst)


def _middle(graph: Graph) -> list[int]:
    cuttable = [k for k, c in enumerate(graph.anatomy.cuts) if k and c is not None]
    total = graph.anatomy.layers
    return [0, min(cuttable, key=lambda k: abs(k - total / 2)), total] if cuttable else [0, total]
