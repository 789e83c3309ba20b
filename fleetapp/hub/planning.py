"""From what the hub knows to what the planner takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetapp.fleet.control import ProfileReport
from fleetapp.hub.links import LinkBook
from fleetapp.hub.planner.inputs import STAGE_OVERHEAD, Device, Link, Model, Node, Profile
from fleetapp.hub.profiles import ProfileBook
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import ChainView, DeviceId, Precision

CACHE_BYTES: Final = {"exact": 4, "fast": 2}
"""Of one number in a cache, at most: f32; 16 bits, or 8 and scales, as the device likes."""
WIRE_BYTES: Final = {"exact": 4, "fast": 2}
"""Of one number between stages."""


def model_of(manifest: ModelManifest, precision: Precision, head_extra: int = 0) -> Model:
    """A model's bytes, by part.

    Args:
        manifest: of the library.
        precision: that it is served with.
        head_extra: bytes of a draft model that the head holds besides.
    """
    arch = manifest.architecture
    numbers = max(2 * h * d for h, d in zip(arch.kv_heads, arch.head_sizes, strict=True))
    return Model(
        model_id=manifest.model_id,
        layer_bytes=manifest.layer_bytes,
        embedding_bytes=manifest.embedding_bytes,
        head_bytes=manifest.head_bytes,
        kv_bytes=numbers * CACHE_BYTES[precision],
        hidden=arch.hidden_size,
        activation_bytes=WIRE_BYTES[precision],
        head_extra=head_extra,
    )


@dataclass(frozen=True)
class Member:
    """A connected member that contributes, as far as planning goes.

    Attributes:
        memory: bytes that may be used now, beside what it holds already.
        stability: how long it usually stays, in seconds.
    """

    device_id: DeviceId
    name: str
    memory: int
    coordinator: bool
    can_head: bool = True
    stability: float = 0.0
    devices: tuple[str, ...] = ("CPU",)


@dataclass(frozen=True)
class Served:
    """A model that plans are wanted for."""

    model: Model
    digest: str
    precision: Precision


class Planning:
    """What members have reported, and nodes and links made of it.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.profiles = ProfileBook(clock)
        self.links = LinkBook(clock)

    def take(self, node: DeviceId, report: ProfileReport) -> None:
        """What a member has measured."""
        self.profiles.add(node, report.profiles)
        self.links.add(node, report.hops)

    def nodes(
        self, members: Iterable[Member], models: Sequence[Served], held: Mapping[str, int]
    ) -> tuple[Node, ...]:
        """Nodes as the planner takes them.

        Args:
            members: who contributes.
            models: that may be planned.
            held: bytes that runners of the present plan hold, by device id: a new plan may use
                them again. All on the node's first device.
        """
        return tuple(
            Node(
                device_id=member.device_id,
                name=member.name,
                devices=tuple(
                    Device(
                        kind=device,
                        # Devices of one PC share its memory here: each gets a part.
                        memory=(member.memory + held.get(member.device_id, 0))
                        // len(member.devices),
                        profiles={
                            served.model.model_id: profile
                            for served in models
                            if (profile := self._profile(member, device, served)) is not None
                        },
                    )
                    for device in member.devices
                ),
                stability=member.stability,
                coordinator=member.coordinator,
                can_head=member.can_head,
            )
            for member in members
        )

    def _profile(self, member: Member, device: str, served: Served) -> Profile | None:
        return self.profiles.profile(
            member.device_id, device, served.digest, served.precision, served.model
        )

    def links_between(self, nodes: Sequence[Node]) -> tuple[Link, ...]:
        """What is known of the links between these nodes."""
        return self.links.links([n.device_id for n in nodes])


def held_memory(chains: Iterable[ChainView]) -> dict[str, int]:
    """Bytes that loaded stages hold, by device id: weights and the runner, not the cache."""
    held: dict[str, int] = {}
    for chain in chains:
        for stage in chain.assignments:
            if stage.phase in ("ready", "linked"):
                held[stage.device_id] = held.get(stage.device_id, 0) + stage.total + STAGE_OVERHEAD
    return held
