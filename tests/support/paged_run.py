"""Runs stage graphs through OpenVINO's paged attention, one sequence, exact settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov
from openvino import _offline_transformations as passes

from fleetapp.models.trial import EXACT

BLOCKS, BLOCK = 16, 32


class PagedStage:
    def __init__(self, xml: Path) -> None:
        core = ov.Core()
        model = core.read_model(os.fspath(xml))
        passes.paged_attention_transformation(model, allow_qq_bias=False)
        left = [o.get_type_name() for o in model.get_ops() if o.get_type_name() == "ReadValue"]
        assert not left, "every state has become a cache input"
        self.request = core.compile_model(model, "CPU", EXACT).create_infer_request()
        self.names = {port.any_name for port in self.request.model_inputs}
        for port in self.request.model_inputs:
            if "cache" in port.any_name:
                shape = [BLOCKS if d.is_dynamic else d.get_length() for d in port.partial_shape]
                cache = ov.Tensor(port.element_type, ov.Shape(shape))
                self.request.set_tensor(port.any_name, cache)

    def __call__(self, values: Any, past: int, count: int) -> Any:
        blocks = -(-(past + count) // BLOCK)
        feed = {
            "input_ids" if "input_ids" in self.names else "inputs_embeds": values,
            "position_ids": np.arange(past, past + count, dtype=np.int64),
            "past_lens": np.array([past], np.int32),
            "subsequence_begins": np.array([0, count], np.int32),
            "block_indices": np.arange(blocks, dtype=np.int32),
            "block_indices_begins": np.array([0, blocks], np.int32),
            "max_context_len": np.array(past + count, np.int32),
        }
        for name, value in feed.items():
            self.request.set_tensor(name, ov.Tensor(np.array(value)))
        self.request.infer()
        out = self.request.get_output_tensor(0).data
        return out.reshape(count, out.shape[-1]).copy()


def paged_logits(
    graphs: Sequence[Path], prompt: Sequence[int], steps: int
) -> npt.NDArray[np.float32]:
    """Greedy logits ``[1 + steps, vocab]``, as :func:`fleetapp.models.trial.run` gives them."""
    stages = [PagedStage(path) for path in graphs]
    rows, past, tokens = [], 0, list(prompt)
    for _ in range(1 + steps):
        values: Any = np.array(tokens, np.int64)
        for stage in stages:
            values = stage(values, past, len(tokens))
        rows.append(values[-1])
        past += len(tokens)
        tokens = [int(values[-1].argmax())]
    return np.stack(rows)
