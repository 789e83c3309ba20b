"""Fleets for planner tests, in a few words."""

from __future__ import annotations

import random

from fleetapp.hub.planner.inputs import Device, Link, Model, Node, Profile
from fleetapp.types import DeviceId

GIB = 2**30


def profile(layer: float = 0.001, output: float = 0.002, more: float = 0.1) -> Profile:
    """So many seconds per layer; each further sequence adds ``more`` of it."""
    return Profile(
        decode=((1, layer), (16, layer * (1 + 15 * more))),
        prefill=((16, layer * 3), (128, layer * 12)),
        output=((1, output), (16, output * (1 + 15 * more))),
    )


def node(name: str, gib: float = 16.0, layer: float = 0.001, **more: object) -> Node:
    """One PC with a CPU."""
    device = Device("CPU", int(gib * GIB), {"m": profile(layer)})
    return Node(DeviceId(name.lower()), name, (device,), **more)  # type: ignore[arg-type]


def links(nodes: list[Node], rtt: float = 0.0005, bandwidth: float = 1e8) -> list[Link]:
    """All of them alike."""
    return [
        Link(a.device_id, b.device_id, rtt, bandwidth) for a in nodes for b in nodes if a is not b
    ]


def model(layers: int = 20, layer_gib: float = 0.5, name: str = "m") -> Model:
    """A model of equal layers."""
    return Model(name, (int(layer_gib * GIB),) * layers, GIB // 4, GIB // 4, 4096, 4096)


def office(count: int, seed: int, gib: float) -> tuple[list[Node], list[Link]]:
    """PCs of very different speed and memory, and links too."""
    dice = random.Random(seed)
    nodes = [
        node(
            f"PC{i}",
            gib * dice.uniform(0.4, 1.5),
            dice.uniform(0.0005, 0.002),
            stability=dice.uniform(0, 7200),
            coordinator=i == 0,
        )
        for i in range(count)
    ]
    hops = [
        Link(a.device_id, b.device_id, dice.uniform(0.0003, 0.004), dice.uniform(2e6, 1e8))
        for a in nodes
        for b in nodes
        if a is not b
    ]
    return nodes, hops
