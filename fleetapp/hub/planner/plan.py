"""What the planner says: chains, standbys, a prediction, and sentences for people."""

from __future__ import annotations

import msgspec

from fleetapp.types import DeviceId, LayerRange


class PlannedStage(msgspec.Struct, frozen=True):
    """Layers on one device of one node. Bytes, and seconds per frame at the demanded width."""

    device_id: DeviceId
    name: str
    device: str
    layers: LayerRange
    weight_bytes: int
    cache_bytes: int
    memory: int
    """Weights, cache and the runner itself."""
    seconds: float


class PlannedChain(msgspec.Struct, frozen=True):
    """One way through the model; the first stage is the head.

    Attributes:
        users: of the demanded ones that it is meant for.
        running: of those the ones whose cache fits at once; the others wait.
        tokens_per_second: of all its users together.
        one_user: tokens per second of a lone user.
        first_token: seconds until the first token of a prompt of the demanded length.
    """

    model_id: str
    stages: tuple[PlannedStage, ...]
    users: int
    running: int
    tokens_per_second: float
    one_user: float
    first_token: float

    @property
    def layout(self) -> tuple[tuple[str, str, int, int], ...]:
        """Who holds what, for comparing."""
        return tuple((s.device_id, s.device, s.layers.start, s.layers.stop) for s in self.stages)


class Standby(msgspec.Struct, frozen=True):
    """A node that should keep copies of stages, to take over when one is lost."""

    device_id: DeviceId
    name: str
    stages: tuple[tuple[int, int], ...]
    """(chain, stage) of the model's plan."""


class Alternative(msgspec.Struct, frozen=True):
    """What a simpler way would do: "one PC", "replicas", "split"."""

    way: str
    tokens_per_second: float
    one_user: float
    nodes: tuple[str, ...]


class ModelPlan(msgspec.Struct, frozen=True):
    """One model. No chains means that it cannot be served; ``sentences`` say why."""

    model_id: str
    users: int
    chains: tuple[PlannedChain, ...]
    standbys: tuple[Standby, ...]
    tokens_per_second: float
    one_user: float
    first_token: float
    alternatives: tuple[Alternative, ...]
    exact: bool
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join(self.sentences)


class NodeMemory(msgspec.Struct, frozen=True):
    """What a plan needs on one node, of all models together."""

    device_id: DeviceId
    name: str
    bytes: int


class FleetPlan(msgspec.Struct, frozen=True):
    """All models, and the nodes that hold something."""

    models: tuple[ModelPlan, ...]
    memory: tuple[NodeMemory, ...]
    unused: tuple[str, ...]
    """Names of nodes that hold no layer."""

    def model(self, model_id: str) -> ModelPlan | None:
        """The plan of one model."""
        return next((m for m in self.models if m.model_id == model_id), None)
