"""What OpenVINO offers on this machine, and memory on its devices."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import math
import mmap
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import openvino as ov

from fleetapp.engine.executor.blocks import BlockTensor, HostBlocks
from fleetapp.errors import NoCapacity, Unsupported
from fleetapp.types import Precision
from fleetapp.wire.frames import ActivationType

log = logging.getLogger(__name__)

KERNELS_KEPT: Final = 256
_WORTH_LARGE_PAGES: Final = 4 << 20
"""Bytes of one layer's keys or values."""
_DRIVER_PROPERTIES: Final = ("GPU_DRIVER_VERSION", "NPU_DRIVER_VERSION", "DEVICE_ARCHITECTURE")


@functools.cache
def core() -> ov.Core:
    """The process's one OpenVINO core; stages of one process share its plugins and threads."""
    # Compiled kernels are also kept per process, below OpenVINO: 1024 of them, each for one shape,
    # were measured at 110 MB after a few hundred prompt lengths. Read once, at the first kernel.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS_KEPT))
    return ov.Core()


def check_device(device: str) -> None:
    """Say what there is if ``device`` is not.

    Raises:
        Unsupported: OpenVINO has no such device here, or cannot page attention on it.
    """
    available = core().available_devices
    # One GPU is listed as GPU, two as GPU.0 and GPU.1; either way of naming is understood.
    names = {*available, *(d.partition(".")[0] for d in available)}
    if device.removesuffix(".0") not in names and device not in names:
        raise Unsupported(
            f"OpenVINO finds no device {device!r} here; it offers {', '.join(available)}.",
            remedy="Choose one of those.",
        )
    if device.startswith("NPU"):
        raise Unsupported(
            "The paged executor does not run on an NPU.", remedy="Use the CPU or a GPU."
        )


def runtime_version() -> str:
    """OpenVINO's version, such as 2026.4.1."""
    return str(ov.get_version()).split("-", maxsplit=1)[0]


def runtime_name(device: str) -> str:
    """Version and device in words, for people and for the hello exchange."""
    return f"OpenVINO {runtime_version()} {_property(device, 'FULL_DEVICE_NAME')}"


def runtime_key(device: str) -> str:
    """Names everything a compiled blob depends on: runtime version, device and its driver."""
    parts = [ov.get_version(), device, _property(device, "FULL_DEVICE_NAME")]
    parts += [_property(device, name) for name in _DRIVER_PROPERTIES]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def arithmetic(device: str, precision: Precision) -> ActivationType:
    """The type a stage's hidden states are computed in; ``f32`` where that is not known.

    Only asked of CPUs: what a GPU does at the end of a stage was never seen.
    """
    if precision == "exact" or not device.startswith("CPU"):
        return "f32"
    kind = core().get_property(device, "INFERENCE_PRECISION_HINT")
    if kind == ov.Type.bf16:
        return "bf16"
    return "f16" if kind == ov.Type.f16 else "f32"


def zeroed(device: str, element: ov.Type, shape: list[int]) -> ov.Tensor | ov.RemoteTensor:
    """Memory on the device, all zero where the host can reach it.

    Zeroed because attention kernels read whole blocks and mask afterwards, and no weight of zero
    makes a NaN harmless. On a CPU the pages come zeroed from the operating system and become
    resident when a block is first written: an idle node holds no memory for answers it is not
    giving (where the system has large pages, resident in pieces of 2 MiB).

    Raises:
        NoCapacity: not enough memory.
    """
    try:
        if not device.startswith("CPU"):
            return core().get_default_context(device).create_tensor(element, ov.Shape(shape), {})
        pages = np.frombuffer(_pages(math.prod(shape) * element.size), np.uint8)
        return ov.Tensor(pages, ov.Shape(shape), element)
    except (RuntimeError, MemoryError, OSError) as e:
        raise NoCapacity(
            f"{device} has no room for a cache of shape {shape}.",
            remedy="Give the node less cache memory or fewer layers.",
        ) from e


def block_tensor(tensor: ov.Tensor | ov.RemoteTensor) -> BlockTensor:
    """Access to single blocks of a cache tensor, wherever it is."""
    if isinstance(tensor, ov.RemoteTensor):
        return _RemoteBlocks(tensor)
    return HostBlocks(tensor.data)


class _RemoteBlocks:
    """Blocks in a device's memory: every access goes through a view of one block."""

    def __init__(self, tensor: ov.RemoteTensor) -> None:
        self._tensor = tensor
        self._shape = [int(d) for d in tensor.get_shape()]

    def copy(self, source: int, target: int) -> None:
        self._block(source).copy_to(self._block(target))

    def read(self, blocks: Sequence[int]) -> npt.NDArray[Any]:
        staging = ov.Tensor(self._tensor.get_element_type(), ov.Shape([1, *self._shape[1:]]))
        values = np.empty((len(blocks), *self._shape[1:]), staging.data.dtype)
        for i, block in enumerate(blocks):
            self._block(block).copy_to(staging)
            values[i] = staging.data[0]
        return values

    def write(self, blocks: Sequence[int], values: npt.NDArray[Any]) -> None:
        staging = ov.Tensor(self._tensor.get_element_type(), ov.Shape([1, *self._shape[1:]]))
        for i, block in enumerate(blocks):
            staging.data[0] = values[i]
            self._block(block).copy_from(staging)

    def _block(self, block: int) -> ov.RemoteTensor:
        begin = ov.Coordinate([block] + [0] * (len(self._shape) - 1))
        end = ov.Coordinate([block + 1, *self._shape[1:]])
        return ov.RemoteTensor(self._tensor, begin, end)


def _pages(size: int) -> mmap.mmap:
    """Private memory, straight from the operating system: what nobody writes costs nothing."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # Shared is the default here, and a shared page is slower to reach.
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= _WORTH_LARGE_PAGES and hasattr(mmap, "MADV_HUGEPAGE"):
        # Attention reads a few kilobytes here and there: with small pages each is a miss in the
        # processor's table of pages. A system without large pages says so; that is no error.
        with contextlib.suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _property(device: str, name: str) -> str:
    try:
        return str(core().get_property(device, name))
    except RuntimeError:  # the device does not know this one
        return ""
