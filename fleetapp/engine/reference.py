"""The whole model through openvino-genai's own pipeline: what a person would use instead.

Only token ids go in and come out, so that tokenizers and templates cannot make a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_genai

from fleetapp.engine.inprocess import Generated
from fleetapp.engine.precision import device_config
from fleetapp.errors import CorruptModel
from fleetapp.types import Precision


class Reference:
    """``openvino_genai.LLMPipeline`` with the same device properties as our stages.

    Args:
        model_dir: an imported model: openvino_model.xml and tokenizer/.
        precision: as for ``paged.load``.
        device: an OpenVINO device name.
        threads: inference threads on a CPU, 0 lets OpenVINO choose.

    Raises:
        CorruptModel: the folder cannot be loaded.
    """

    def __init__(
        self, model_dir: Path, *, precision: Precision, device: str = "CPU", threads: int = 0
    ) -> None:
        config = device_config(precision, device, threads)
        try:
            self._tokenizer = openvino_genai.Tokenizer(str(model_dir / "tokenizer"))
            self._pipeline = openvino_genai.LLMPipeline(
                str(model_dir), self._tokenizer, device, **config
            )
        except RuntimeError as e:
            raise CorruptModel(f"{model_dir} cannot be loaded by openvino-genai: {e}") from e

    def encode(self, text: str) -> list[int]:
        """Token ids of a raw prompt."""
        return [int(t) for t in self._tokenizer.encode(text).input_ids.data[0]]

    def generate(self, token_ids: Sequence[int], max_tokens: int) -> Generated:
        """Greedy, end-of-sequence ignored.

        The times are those the pipeline notes itself: a streamer would cost it a thread.
        """
        config = openvino_genai.GenerationConfig(
            max_new_tokens=max_tokens, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        result = self._pipeline.generate(ov.Tensor(np.array([token_ids], np.int64)), config)
        milliseconds = result.perf_metrics.raw_metrics.m_new_token_times
        return Generated([int(t) for t in result.tokens[0]], [t / 1e3 for t in milliseconds])


class BatchingReference:
    """``openvino_genai.ContinuousBatchingPipeline`` with the same device properties as our stages.

    Args and Raises: as for ``Reference``.
    """

    def __init__(
        self, model_dir: Path, *, precision: Precision, device: str = "CPU", threads: int = 0
    ) -> None:
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 1  # GB, more than enough for every bench
        scheduler.max_num_batched_tokens = 256
        scheduler.max_num_seqs = 32
        scheduler.dynamic_split_fuse = True
        scheduler.enable_prefix_caching = False
        config = device_config(precision, device, threads)
        try:
            tokenizer = openvino_genai.Tokenizer(str(model_dir / "tokenizer"))
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(model_dir), tokenizer, scheduler, device, **config
            )
        except RuntimeError as e:
            raise CorruptModel(f"{model_dir} cannot be loaded by openvino-genai: {e}") from e

    def generate(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[Generated]:
        """All at once, greedy, end-of-sequence ignored; times as for ``Reference.generate``."""
        config = openvino_genai.GenerationConfig(
            max_new_tokens=max_tokens, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        inputs = [ov.Tensor(np.array([ids], np.int64)) for ids in prompts]
        found = []
        for result in self._pipeline.generate(inputs, [config] * len(inputs)):
            milliseconds = result.perf_metrics.raw_metrics.m_new_token_times
            tokens = [int(t) for t in result.m_generation_ids[0]]
            found.append(Generated(tokens, [t / 1e3 for t in milliseconds]))
        return found
