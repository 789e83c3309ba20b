"""The paged executor: keys and values in blocks, many sequences in one inference.

PagedAttention (Kwon et al. 2023) through OpenVINO's own transformation of a stage's stateful
graph. A rewind is a smaller ``past_len``; nothing is masked and nothing is copied. Sequences
share the blocks of a common prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import openvino as ov
import psutil

from fleetapp.engine.executor.base import ExecutorInfo
from fleetapp.engine.executor.blocks import BlockCache
from fleetapp.engine.executor.buffers import Buffer, StepBuffers
from fleetapp.engine.executor.compiled import blobs_load, compile_graph
from fleetapp.engine.executor.device import (
    arithmetic,
    block_tensor,
    check_device,
    runtime_name,
    zeroed,
)
from fleetapp.engine.executor.graph import SAMPLE_INDICES, read_paged
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.engine.kv import SlotTable
from fleetapp.engine.precision import device_config
from fleetapp.errors import CorruptModel, Malformed, NoCapacity, RunnerFailed
from fleetapp.models.manifest import StageManifest, decode_stage, digest
from fleetapp.types import Precision
from fleetapp.wire.activations import widened
from fleetapp.wire.frames import ActivationType, Prefix, Segment

log = logging.getLogger(__name__)

Progress = Callable[[Literal["compiling", "loading"], int, int], None]
"""Told the phase, what is done and the whole, in bytes."""

_AUTOMATIC_SEQUENCES: Final = 4
_AUTOMATIC_SHARE: Final = 0.25
_WARM_TOKENS: Final = 32
_INPUT: Final = {True: np.int64, False: np.float32}
"""Element type of a stage's input: token ids on the first, hidden states elsewhere."""


def load(
    stage_dir: Path,
    *,
    precision: Precision,
    device: str = "CPU",
    threads: int = 0,
    kv_bytes: int = 0,
    max_context: int = 0,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
    spilled: Spilled | None = None,
) -> PagedExecutor:
    """Compile a shard and give it its cache.

    Args:
        stage_dir: holds ``stage.json``, ``stage.xml`` and ``stage.bin``.
        precision: of arithmetic and cache.
        device: an OpenVINO device name.
        threads: inference threads on a CPU, 0 lets OpenVINO choose.
        kv_bytes: memory for keys and values; 0 takes what four full contexts need, at most a
            quarter of the free memory.
        max_context: tokens per sequence, 0 means the model's own limit.
        cache_dir: for compiled blobs, None for none.
        progress: see ``Progress``.
        spilled: where kept sequences may go; None drops them instead.

    Raises:
        CorruptModel: the folder does not hold a shard.
        Unsupported: no such device, or a graph that cannot be paged.
        NoCapacity: not enough memory.
        RunnerFailed: the device cannot compile it.
    """
    check_device(device)
    manifest, key = _manifest(stage_dir)
    size = manifest.size
    report = progress or (lambda *_: None)
    report("compiling", 0, size)
    own = arithmetic(device, precision)
    activations: ActivationType = "f32" if manifest.last else own
    width = manifest.architecture.hidden_size
    graph = read_paged(
        stage_dir / "stage.xml", last=manifest.last, hidden=width, activations=activations
    )
    config = device_config(precision, device, threads, own)
    blobs = cache_dir if blobs_load(device) else None
    compiled = compile_graph(graph.model, device, config, cache_dir=blobs, key=key, size=size)
    report("loading", 0, size)
    cache = _Cache(compiled)
    limit = manifest.architecture.context_length
    context = min(max_context, limit) if max_context else limit
    blocks = cache.blocks_in(kv_bytes or cache.automatic_bytes(context))
    info = ExecutorInfo(
        first=manifest.first,
        last=manifest.last,
        layers=len(manifest.layers),
        hidden=width,
        vocab=manifest.architecture.vocab_size,
        block_size=cache.block_size,
        blocks=blocks,
        max_context=min(context, blocks * cache.block_size),
        kv_bytes_per_token=cache.block_bytes // cache.block_size,
        runtime=runtime_name(device),
        activations=activations,
        spill_blocks=spilled.capacity // cache.block_bytes if spilled is not None else 0,
    )
    executor = PagedExecutor(
        compiled, cache, device, info, rows_chosen=graph.rows_chosen, spilled=spilled
    )
    _warm_up(executor)
    report("loading", size, size)
    return executor


def _warm_up(executor: PagedExecutor) -> None:
    """Run one short prefill and one decode: devices finish compiling at their first inference,
    and a node that says it is ready must not let the first answer wait for that.
    """
    info = executor.info
    count = min(_WARM_TOKENS, info.max_context - 1)
    if count < 1:
        return
    executor.open(0, 0)
    for past, new in ((0, count), (count, 1)):
        inputs = np.zeros((new,) if info.first else (new, info.hidden), _INPUT[info.first])
        executor.forward((Segment(0, 0, past, new, sample=True),), inputs)
    executor.reset()


class _Cache:
    """What the compiled graph wants as caches: the device chose layout and element type."""

    def __init__(self, compiled: ov.CompiledModel) -> None:
        self.ports = [
            (i, port.element_type, [d.get_length() if d.is_static else 0 for d in shape])
            for i, port in enumerate(compiled.inputs)
            if port.get_any_name().startswith(("key_cache.", "value_cache."))
            for shape in (port.get_partial_shape(),)
        ]
        values = [
            port.get_partial_shape()
            for port in compiled.inputs
            if port.get_any_name().startswith("value_cache.")
        ]
        # Values are [blocks, heads, tokens, size] on every device; keys may be turned, or carry
        # the scales of their quantisation as further rows.
        self.block_size = int(values[0][2].get_length())
        self.block_bytes: int = sum(
            int(np.prod([d for d in shape if d])) * element.size for _, element, shape in self.ports
        )

    def automatic_bytes(self, context: int) -> int:
        """Enough for some full contexts, but only a share of the memory that is free."""
        wanted = _AUTOMATIC_SEQUENCES * -(-context // self.block_size) * self.block_bytes
        return int(min(wanted, psutil.virtual_memory().available * _AUTOMATIC_SHARE))

    def blocks_in(self, size: int) -> int:
        """Blocks that fit.

        Raises:
            NoCapacity: not one does.
        """
        blocks: int = size // self.block_bytes
        if blocks < 1:
            raise NoCapacity(
                f"{size} bytes of cache do not hold one block of {self.block_bytes} bytes.",
                remedy="Give the node more cache memory or fewer layers.",
            )
        return blocks


class PagedExecutor:
    """See ``Executor``. For one thread."""

    def __init__(
        self,
        compiled: ov.CompiledModel,
        cache: _Cache,
        device: str,
        info: ExecutorInfo,
        *,
        rows_chosen: bool,
        spilled: Spilled | None = None,
    ) -> None:
        self._info = info
        self._request = compiled.create_infer_request()
        # Kept here because the request does not keep the memory behind a tensor alive.
        self._caches = [
            (index, zeroed(device, element, [info.blocks, *shape[1:]]))
            for index, element, shape in cache.ports
        ]
        for index, tensor in self._caches:
            self._request.set_input_tensor(index, tensor)
        self._slots = SlotTable(info.blocks, info.block_size, info.max_context)
        tensors = [block_tensor(tensor) for _, tensor in self._caches]
        self._cache = BlockCache(self._slots, tensors, Spilled() if spilled is None else spilled)
        ports = {port.get_any_name(): i for i, port in enumerate(compiled.inputs)}
        hidden = 0 if info.first else info.hidden
        self._buffers = StepBuffers(self._request, ports, hidden)
        self._rows = (
            Buffer(self._request, ports[SAMPLE_INDICES], ov.Type.i64, (), 1)
            if rows_chosen
            else None
        )
        base = super(ov.InferRequest, self._request)
        self._infer: Callable[..., object] = base.infer  # type: ignore[attr-defined] # untyped
        self._no_logits = np.empty((0, info.vocab), np.float32)

    @property
    def info(self) -> ExecutorInfo:
        """Constant after loading."""
        return self._info

    @property
    def free_blocks(self) -> int:
        """Blocks that no sequence holds."""
        return self._slots.free_blocks

    @property
    def kept_blocks(self) -> int:
        """Blocks that only kept sequences hold."""
        return self._slots.idle_blocks()

    def open(self, slot: int, generation: int, prefix: Prefix | None = None) -> None:
        """Begin a sequence, an empty one without ``prefix``."""
        self._cache.open(slot, generation, prefix)

    def close(self, slot: int, generation: int, keep: int = 0, keep_len: int = 0) -> None:
        """Free a slot; with ``keep`` its first positions stay."""
        self._slots.close(slot, generation, keep, keep_len)

    def keep(self, slot: int, generation: int, keep: int, length: int) -> None:
        """The first positions of a running sequence also stay."""
        self._slots.keep(slot, generation, keep, length)

    def drop(self, keep: int) -> None:
        """Forget a kept sequence."""
        self._cache.drop(keep)

    def spill(self, keep: int) -> None:
        """Move a kept sequence out of the cache."""
        self._cache.spill(keep)

    def reset(self) -> None:
        """Drop everything."""
        self._cache.reset()

    def forward(
        self,
        segments: tuple[Segment, ...],
        inputs: npt.NDArray[np.int64] | npt.NDArray[np.float32],
    ) -> npt.NDArray[np.float32]:
        """See ``Executor.forward``.

        Raises:
            StaleFrame, ContextTooLong, NoCapacity: see ``SlotTable.reserve``; nothing changed.
            Malformed: ``inputs`` is not what the segments say.
            RunnerFailed: the inference failed; the segments' slots hold what they held before
                their first new position.
        """
        self._check(segments, inputs)
        held = self._cache.reserve(segments)
        self._buffers.fill(segments, held, inputs)
        rows = self._choose_rows(segments) if self._info.last else None
        try:
            # Past InferRequest.infer: it looks through kinds of inputs, of which there are none
            # here, in Python that the weights have swept out of the processor's caches.
            self._infer({}, share_outputs=True, decode_strings=False)
        except RuntimeError as e:
            raise RunnerFailed(f"The inference of {len(inputs)} tokens failed: {e}") from e
        self._slots.commit(segments, held)
        raw = self._request.get_output_tensor(0).data
        raw = raw.reshape(raw.shape[0], raw.shape[-1])
        if self._info.activations == "bf16":  # numpy has no such type, OpenVINO calls it float16
            raw = raw.view(np.uint16)
        output = widened(raw, self._info.activations)
        if rows is None:
            return output
        if not rows:
            return self._no_logits
        return output if self._rows is not None else output[rows]

    def _choose_rows(self, segments: tuple[Segment, ...]) -> list[int]:
        """Rows whose logits are wanted; the graph is told, if it has an input for it."""
        rows: list[int] = []
        at = 0
        for segment in segments:
            at += segment.count
            if segment.sample:
                rows += range(at - 1 - len(segment.drafts), at)
        if self._rows is not None:
            # One row although none is wanted: an empty product is not worth a second kind of
            # graph execution, and one row is a thousandth of a prefill's work.
            self._rows.sized(len(rows) or 1)[:] = rows or 0
        return rows

    def _check(
        self,
        segments: tuple[Segment, ...],
        inputs: npt.NDArray[np.int64] | npt.NDArray[np.float32],
    ) -> None:
        tokens = sum(s.count for s in segments)
        shape = (tokens,) if self._info.first else (tokens, self._info.hidden)
        if not tokens or inputs.shape != shape:
            raise Malformed(f"Inputs of shape {inputs.shape} do not fit segments of {shape}.")
        # As unsigned numbers negative ones are larger than any vocabulary.
        if self._info.first and not inputs.view(np.uint64).max() < self._info.vocab:
            raise Malformed("A token id is outside the vocabulary.")


def _manifest(stage_dir: Path) -> tuple[StageManifest, str]:
    try:
        raw = (stage_dir / "stage.json").read_bytes()
        return decode_stage(raw), digest(raw)
    except (OSError, msgspec.MsgspecError) as e:
        raise CorruptModel(f"{stage_dir} does not hold a shard.") from e
