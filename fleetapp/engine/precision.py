"""What ``exact`` and ``fast`` mean to a device.

``exact`` computes, caches and sends in f32 and quantises no activation: any split, any batch and
any number of threads gives the same tokens. ``fast`` is the device's own default (on a CPU with
bf16: bf16 arithmetic, activations quantised in groups of 32), except for the cache of such a CPU;
there a split or another batch may flip a near tie.
"""

from __future__ import annotations

from typing import Final

from fleetapp.types import Precision
from fleetapp.wire.frames import ActivationType

RUNTIME_CACHE_ENTRIES: Final = 64
"""Shape-specialised kernels kept per compiled graph on a CPU. OpenVINO's default of 5000 lets
memory grow with every new prompt length
(https://github.com/openvinotoolkit/openvino/issues/23316)."""

Config = dict[str, str | int | bool]


def device_config(
    precision: Precision, device: str, threads: int, arithmetic: ActivationType = "f32"
) -> Config:
    """Properties to compile a stage with.

    Args:
        precision: what the chain was started with.
        device: an OpenVINO device name, such as ``CPU`` or ``GPU.0``.
        threads: inference threads on a CPU, 0 lets OpenVINO choose.
        arithmetic: what the device computes in under ``fast``.
    """
    config: Config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
    if device.startswith("CPU"):
        # Pinning would put every process with one thread on the same core.
        config["ENABLE_CPU_PINNING"] = False
        config["CPU_RUNTIME_CACHE_CAPACITY"] = RUNTIME_CACHE_ENTRIES
        if threads:
            config["INFERENCE_NUM_THREADS"] = threads
    if precision == "exact":
        config["INFERENCE_PRECISION_HINT"] = "f32"
        config["KV_CACHE_PRECISION"] = "f32"
        config["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    elif arithmetic == "bf16":
        # The default there, u8 with a scale for each channel, takes 0.63 of the memory, but has to
        # be scaled back for every token: decoding was 4 to 20% slower, the more the longer the
        # history, and further from f32.
        config["KV_CACHE_PRECISION"] = "bf16"
    return config
