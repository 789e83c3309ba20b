"""What the hub knows of its members, in the planner's words: nodes with profiles, links, how long
they stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fleetapp.fleet.control import ProfileReport
from fleetapp.hub.links import LinkBook
from fleetapp.hub.planner.inputs import Device, Link, Model, Node, Profile
from fleetapp.hub.profiles import ProfileBook
from fleetapp.hub.stage import Candidate
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import DeviceId, Precision

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
class Served:
    """A model that plans are wanted for."""

    model: Model
    digest: str
    precision: Precision


class Knowledge:
    """What members have reported, and nodes and links made of it.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.profiles = ProfileBook(clock)
        self.links = LinkBook(clock)
        self._clock = clock
        self._came: dict[DeviceId, float] = {}
        self._stays: dict[DeviceId, float] = {}

    def came(self, node: DeviceId) -> None:
        """A member has connected."""
        self._came[node] = self._clock()

    def left(self, node: DeviceId) -> None:
        """Its connection ended."""
        came = self._came.pop(node, None)
        if came is not None:
            stay = self._clock() - came
            self._stays[node] = 0.5 * (self._stays.get(node, stay) + stay)

    def stability(self, node: DeviceId) -> float:
        """How long it usually stays, in seconds: this time, or as before."""
        came = self._came.get(node)
        now = 0.0 if came is None else self._clock() - came
        return max(now, self._stays.get(node, 0.0))

    def take(self, node: DeviceId, report: ProfileReport) -> None:
        """What a member has measured."""
        self.profiles.add(node, report.profiles)
        self.links.add(node, report.hops)

    def nodes(self, members: Iterable[Candidate], models: Sequence[Served]) -> tuple[Node, ...]:
        """Nodes as the planner takes them.

        Devices of one PC share its memory: each gets an equal part.

        Args:
            members: who contributes; ``memory_free`` with what a new plan may use again.
            models: that may be planned.
        """
        return tuple(
            Node(
                device_id=member.device_id,
                name=member.name,
                devices=tuple(
                    Device(
                        kind=device,
                        memory=member.memory_free // len(member.devices),
                        profiles={
                            served.model.model_id: profile
                            for served in models
                            if (profile := self._profile(member, device, served)) is not None
                        },
                    )
                    for device in member.devices
                ),
                stability=self.stability(member.device_id),
                coordinator=member.coordinator,
            )
            for member in members
        )

    def _profile(self, member: Candidate, device: str, served: Served) -> Profile | None:
        return self.profiles.profile(
            member.device_id, device, served.digest, served.precision, served.model
        )

    def links_between(self, nodes: Sequence[Node]) -> tuple[Link, ...]:
        """What is known of the links between these nodes."""
        return self.links.links([n.device_id for n in nodes])
