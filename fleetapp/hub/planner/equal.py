"""Layers by equal time within memory: an exact interval partition for a given node order.

Minimises the slowest stage, as a pipeline under load is as fast as that one (BloomBee, section
5.1, uses the same recurrence for its assignment). Time is taken as proportional to the weight
bytes a stage reads per token, plus a fixed part for each layer, which holds for decode on one
kind of device; measured profiles replace it once nodes report them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fleetapp.errors import NoCapacity
from fleetapp.types import DeviceId, LayerRange

STAGE_OVERHEAD = 320 * 2**20
"""Resident bytes of a runner beside weights and cache (interpreter, OpenVINO, activations)."""

LAYER_START = 2_500_000
"""Starting the operations of a layer takes as long as reading so many bytes. Seen on one core,
which read 14 GB/s: 330 us for a layer of 2 MB, 2.2 ms for an output head of 30 MB. Without it a
small model's head would count for as much as fifteen of its layers instead of seven."""


class NodeBudget(msgspec.Struct, frozen=True):
    """What one node can give. ``memory`` is free bytes that the plan may use."""

    device_id: DeviceId
    name: str
    memory: int


class ModelCost(msgspec.Struct, frozen=True):
    """Weight bytes of a model by part, and cache bytes per layer that a stage should hold."""

    layer_bytes: tuple[int, ...]
    embedding_bytes: int
    head_bytes: int
    kv_bytes_per_layer: int
    layer_start: int = LAYER_START
    """What a layer costs besides reading its weights, in bytes that could be read meanwhile."""


class StagePlan(msgspec.Struct, frozen=True):
    device_id: DeviceId
    name: str
    layers: LayerRange
    weight_bytes: int


class Plan(msgspec.Struct, frozen=True):
    """Stages in order; ``sentences`` explain them to a person."""

    stages: tuple[StagePlan, ...]
    sentences: tuple[str, ...]


def _mib(n: int) -> str:
    return f"{n / 2**20:.0f} MiB"


def partition(nodes: Sequence[NodeBudget], model: ModelCost) -> Plan:
    """Give every node of ``nodes`` a contiguous range of at least one layer, in that order.

    Args:
        nodes: in ring order; the first is the head.
        model: what the layers cost.

    Raises:
        NoCapacity: more nodes than layers, or no partition fits the nodes' memory.
    """
    count, layers = len(nodes), len(model.layer_bytes)
    if count == 0:
        raise NoCapacity("No node contributes.", remedy="Switch contributing on at one PC or more.")
    if count > layers:
        raise NoCapacity(
            f"{count} stages were asked for, but the model has only {layers} layers.",
            remedy=f"Ask for at most {layers} stages.",
        )
    prefix = [0]
    for size in model.layer_bytes:
        prefix.append(prefix[-1] + size)

    def cost(k: int, start: int, stop: int) -> float:
        """Time per token of stage k holding [start, stop), in bytes; inf if they do not fit."""
        read = prefix[stop] - prefix[start] + (model.head_bytes if k == count - 1 else 0)
        held = read + (model.embedding_bytes if k == 0 else 0)
        held += (stop - start) * model.kv_bytes_per_layer + STAGE_OVERHEAD
        if held > nodes[k].memory:
            return float("inf")
        return read + (stop - start) * model.layer_start

    infinite = float("inf")
    # best[k][i]: the slowest of the first k stages when they hold the first i layers
    best = [[infinite] * (layers + 1) for _ in range(count + 1)]
    choice = [[0] * (layers + 1) for _ in range(count + 1)]
    best[0][0] = 0.0
    for k in range(1, count + 1):
        for i in range(k, layers - (count - k) + 1):
            for j in range(k - 1, i):
                worst = max(best[k - 1][j], cost(k - 1, j, i))
                if worst < best[k][i]:
                    best[k][i], choice[k][i] = worst, j
    if best[count][layers] == infinite:
        raise NoCapacity(
            f"The model's {_mib(prefix[-1])} of layers do not fit the free memory of "
            f"{', '.join(n.name for n in nodes)}.",
            remedy="Close programs there, add a PC, or serve a smaller model.",
        )
    cuts = [layers]
    for k in range(count, 0, -1):
        cuts.append(choice[k][cuts[-1]])
    cuts.reverse()
    stages = tuple(
        StagePlan(
            device_id=node.device_id,
            name=node.name,
            layers=LayerRange(cuts[k], cuts[k + 1]),
            weight_bytes=prefix[cuts[k + 1]]
            - prefix[cuts[k]]
            + (model.embedding_bytes if k == 0 else 0)
            + (model.head_bytes if k == count - 1 else 0),
        )
        for k, node in enumerate(nodes)
    )
    return Plan(stages=stages, sentences=_explain(stages, layers))


def _explain(stages: tuple[StagePlan, ...], layers: int) -> tuple[str, ...]:
    if len(stages) == 1:
        return (f"{stages[0].name} holds all {layers} layers.",)
    parts = ", ".join(f"{s.name} layers {s.layers} ({_mib(s.weight_bytes)})" for s in stages)
    return (
        f"{layers} layers over {len(stages)} PCs: {parts}.",
        "Each stage should take about as long for a token; the last has the output head.",
    )
