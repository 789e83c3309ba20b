"""Answers of the loopback API as far as the fleet view reads them; other fields are skipped."""

from __future__ import annotations

import msgspec

from fleetapp.types import LayerRange


class PlannedStage(msgspec.Struct, frozen=True):
    """Layers on one device of one PC. Bytes, and seconds per step."""

    device_id: str
    name: str
    device: str
    layers: LayerRange
    weight_bytes: int
    cache_bytes: int
    seconds: float


class PlannedChain(msgspec.Struct, frozen=True):
    """One way through a model."""

    stages: tuple[PlannedStage, ...]
    users: int
    running: int
    tokens_per_second: float
    one_user: float
    first_token: float


class Alternative(msgspec.Struct, frozen=True):
    """What a simpler way would do: "one PC", "replicas", "split"."""

    way: str
    tokens_per_second: float
    one_user: float
    nodes: tuple[str, ...]


class ModelPlan(msgspec.Struct, frozen=True):
    """One model; without chains it cannot be served, and the sentences say why."""

    model_id: str
    users: int
    chains: tuple[PlannedChain, ...]
    tokens_per_second: float
    one_user: float
    first_token: float
    alternatives: tuple[Alternative, ...]
    sentences: tuple[str, ...]


class FleetPlan(msgspec.Struct, frozen=True):
    """``POST /local/v1/fleet/plan``."""

    models: tuple[ModelPlan, ...]

    def model(self, model_id: str) -> ModelPlan | None:
        """The plan of one model."""
        return next((m for m in self.models if m.model_id == model_id), None)


class ApiKey(msgspec.Struct, frozen=True):
    """``/local/v1/keys``; ``key`` is there only in the answer that makes it."""

    id: str
    name: str
    created: float
    key: str = ""
    parallel: int = 0
    per_minute: int = 0
    made_on: str = ""
    """Name of the PC where it was made; empty if that was not noted yet."""
