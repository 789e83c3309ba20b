"""What the planner is told, as values: nodes with devices, links, models, demand.

Seconds, bytes, bytes per second throughout.
"""

from __future__ import annotations

import msgspec

from fleetapp.types import DeviceId

STAGE_OVERHEAD = 320 * 2**20
"""Resident bytes of a runner beside weights and cache (interpreter, OpenVINO, activations)."""

Curve = tuple[tuple[float, float], ...]
"""Points (width, seconds), width ascending; linear between them and beyond the last."""


class Profile(msgspec.Struct, frozen=True):
    """What one model costs on one device, measured there with its real layers.

    Attributes:
        decode: seconds per average layer, by sequences in the step.
        prefill: seconds per average layer, by positions of the piece.
        output: seconds of the output head with sampling, by sequences in the step.
        embedding: seconds to look one token up.
        fixed: seconds a step takes on a stage besides its layers.
        measured: false for an assumption.
    """

    decode: Curve
    prefill: Curve
    output: Curve
    embedding: float = 0.0
    fixed: float = 0.0
    measured: bool = True


class Device(msgspec.Struct, frozen=True):
    """One device of a node.

    Attributes:
        kind: "CPU", "GPU" or "NPU".
        memory: bytes that plans may use on it. Devices that share a memory must be given parts of
            it: the planner treats them as separate.
        profiles: by model id; a model that is not in it is planned with an assumption.
    """

    kind: str
    memory: int
    profiles: dict[str, Profile] = {}


class Node(msgspec.Struct, frozen=True):
    """One PC.

    Attributes:
        stability: how long it usually stays, in seconds.
        can_head: whether it may hold stage 0.
    """

    device_id: DeviceId
    name: str
    devices: tuple[Device, ...]
    stability: float = 0.0
    coordinator: bool = False
    can_head: bool = True


class Link(msgspec.Struct, frozen=True):
    """One direction between two nodes. ``rtt`` is the whole round trip, ``bandwidth`` bytes/s."""

    source: DeviceId
    target: DeviceId
    rtt: float
    bandwidth: float


class Model(msgspec.Struct, frozen=True):
    """What a model's parts weigh.

    Attributes:
        kv_bytes: cache bytes per token and layer.
        hidden: width of the hidden states.
        activation_bytes: of one number between stages (2 under ``fast``, 4 under ``exact``).
        head_extra: bytes that stage 0 needs besides, for a draft model.
    """

    model_id: str
    layer_bytes: tuple[int, ...]
    embedding_bytes: int
    head_bytes: int
    kv_bytes: int
    hidden: int
    activation_bytes: int = 2
    head_extra: int = 0
    overhead: int = STAGE_OVERHEAD

    @property
    def layers(self) -> int:
        """Of the whole model."""
        return len(self.layer_bytes)


class Demand(msgspec.Struct, frozen=True):
    """What is wanted of a model.

    Attributes:
        users: who ask at once.
        context: tokens that the cache holds for each of them.
        prompt: length of the prompt that the time to the first token is stated for.
        stages: exactly one chain of so many stages; 0 leaves it to the planner.
    """

    users: int = 1
    context: int = 4096
    prompt: int = 512
    stages: int = 0


class Wish(msgspec.Struct, frozen=True):
    """A model and what is wanted of it."""

    model: Model
    demand: Demand = Demand()
