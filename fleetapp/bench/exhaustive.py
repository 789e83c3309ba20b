"""Every plan of a small fleet, one after another: what the planner is compared with.

Written apart from the planner, from docs/planner.md; shares only inputs and constants with it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cache

from fleetapp.hub.planner import costs
from fleetapp.hub.planner.inputs import Demand, Device, Link, Model, Node, Profile, Wish
from fleetapp.types import DeviceId


def value(curve: tuple[tuple[float, float], ...], x: float) -> float:
    """A piecewise linear curve."""
    points = sorted(curve)
    if x <= points[0][0] or len(points) == 1:
        return points[0][1]
    for (a, fa), (b, fb) in itertools.pairwise(points):
        if a <= x <= b:
            return fa * (b - x) / (b - a) + fb * (x - a) / (b - a)
    (a, fa), (b, fb) = points[-2:]
    return fb + max(0.0, (fb - fa) / (b - a)) * (x - b)


class Brute:
    """All chains of one model over (node, device) pairs."""

    def __init__(self, nodes: list[Node], links: list[Link], wish: Wish) -> None:
        self.nodes, self.wish = nodes, wish
        self.places = [(n, d) for n, node in enumerate(nodes) for d in range(len(node.devices))]
        self.links = {(k.source, k.target): k for k in links}

    def link(self, a: int, b: int) -> tuple[float, float]:
        """Round trip and bytes per second between two places."""
        one, two = self.nodes[self.places[a][0]], self.nodes[self.places[b][0]]
        if one is two:
            return costs.LOCAL_RTT, costs.LOCAL_BANDWIDTH
        found = self.links.get((one.device_id, two.device_id))
        if found is None:
            return costs.DEFAULT_RTT, costs.DEFAULT_BANDWIDTH
        return found.rtt, found.bandwidth

    def rate(self, order: tuple[int, ...], cuts: tuple[int, ...], running: int) -> float:
        """Tokens per second, 0 if it does not fit."""
        model, demand = self.wish.model, self.wish.demand
        stages = len(order)
        frames = min(stages, running)
        width = running / frames
        mean = sum(model.layer_bytes) / len(model.layer_bytes)
        whole = busiest = 0.0
        for i, place in enumerate(order):
            node, at = self.places[place]
            device = self.nodes[node].devices[at]
            if i == 0 and not self.nodes[node].can_head:
                return 0.0
            sizes = model.layer_bytes[cuts[i] : cuts[i + 1]]
            memory = sum(sizes) + model.overhead
            memory += len(sizes) * model.kv_bytes * demand.context * running
            profile = device.profiles[model.model_id]
            took = profile.fixed + value(profile.decode, width) * sum(sizes) / mean
            if stages > 1:
                took += costs.HOP_HOST
            if i == 0:
                memory += model.embedding_bytes + model.head_extra
                took += profile.embedding * width + costs.HEAD_STEP + costs.HEAD_TOKEN * width
            if i == stages - 1:
                memory += model.head_bytes
                took += value(profile.output, width)
            if memory > device.memory:
                return 0.0
            whole += took
            busiest = max(busiest, took)
            if stages > 1:
                rtt, speed = self.link(place, order[(i + 1) % stages])
                row = costs.TOKEN_BYTES
                if i < stages - 1:
                    row = model.hidden * model.activation_bytes + costs.ROW_BYTES
                carried = (costs.FRAME_BYTES + width * row) / speed
                whole += rtt / 2 + carried
                busiest = max(busiest, carried)
        return width * min(frames / whole, 1 / busiest)

    def best_chain(self, running: int) -> dict[frozenset[int], float]:
        """The best rate of a chain over exactly a set of places."""
        layers = len(self.wish.model.layer_bytes)
        out: dict[frozenset[int], float] = {}
        for stages in range(1, min(len(self.places), layers) + 1):
            for order in itertools.permutations(range(len(self.places)), stages):
                best = max(
                    self.rate(order, (0, *inner, layers), running)
                    for inner in itertools.combinations(range(1, layers), stages - 1)
                )
                key = frozenset(order)
                out[key] = max(best, out.get(key, 0.0))
        return out

    def best(self) -> float:
        """Tokens per second of the best way to divide places and users."""
        users = self.wish.demand.users
        tables = [self.best_chain(c) for c in range(1, users + 1)]
        return max(
            self._divided(tuple(parts), users, tables) for parts in divisions(len(self.places))
        )

    def _divided(
        self,
        parts: tuple[frozenset[int], ...],
        users: int,
        tables: list[dict[frozenset[int], float]],
    ) -> float:
        @cache
        def most(index: int, left: int) -> float:
            if index == len(parts):
                return 0.0
            value = most(index + 1, left)
            for given in range(1, left + 1):
                for running in range(1, given + 1):
                    rate = tables[running - 1].get(parts[index], 0.0)
                    value = max(value, rate + most(index + 1, left - given))
            return value

        return most(0, users)

    def best_of_stages(self, stages: int, users: int) -> float:
        """The best single chain of so many stages, with the most sequences that fit by halving."""
        running = users
        while running:
            table = self.best_chain(running)
            rates = [rate for key, rate in table.items() if len(key) == stages]
            if any(rates):
                return max(rates)
            running //= 2
        return 0.0


def divisions(count: int) -> Iterator[list[frozenset[int]]]:
    """All ways to group some of ``count`` places; the others are left out."""

    def place(index: int, groups: list[set[int]]) -> Iterator[list[frozenset[int]]]:
        if index == count:
            yield [frozenset(g) for g in groups]
            return
        yield from place(index + 1, groups)
        for group in list(groups):
            group.add(index)
            yield from place(index + 1, groups)
            group.remove(index)
        groups.append({index})
        yield from place(index + 1, groups)
        groups.pop()

    yield from place(0, [])


def random_fleet(seed: int) -> tuple[list[Node], list[Link], Wish]:
    """At most four devices and six layers; memory, links and speeds vary widely."""
    dice = random.Random(seed)  # noqa: S311 (no secret)
    layers = dice.randint(1, 6)
    sizes = [dice.choice((100, 100, 100, 80, 150)) for _ in range(layers)]
    if dice.random() < 0.6:
        sizes = [100] * layers
    model = Model(
        model_id="m",
        layer_bytes=tuple(sizes),
        embedding_bytes=dice.choice((0, 60, 200)),
        head_bytes=dice.choice((0, 60, 200)),
        kv_bytes=dice.choice((0, 1, 5)),
        hidden=dice.choice((64, 4096)),
        activation_bytes=dice.choice((2, 4)),
        head_extra=dice.choice((0, 0, 50)),
        overhead=30,
    )
    users = dice.randint(1, 4)
    demand = Demand(users=users, context=dice.choice((1, 10)), prompt=100)
    nodes: list[Node] = []
    left = dice.randint(1, 4)
    roomy = dice.choice((300, 700, 2000))
    while left:
        count = 2 if left > 1 and dice.random() < 0.25 else 1
        left -= count
        devices = tuple(
            Device(kind, dice.randint(60, roomy), {"m": _profile(dice)})
            for kind in ("CPU", "GPU")[:count]
        )
        name = f"PC{len(nodes)}"
        can_head = dice.random() < 0.8
        nodes.append(
            Node(
                DeviceId(name),
                name,
                devices,
                stability=dice.choice((0.0, 3600.0)),
                coordinator=not nodes,
                can_head=can_head or not nodes,
            )
        )
    links = [
        Link(
            a.device_id,
            b.device_id,
            rtt=dice.choice((0.0002, 0.002, 0.05)) * dice.uniform(0.5, 2),
            bandwidth=dice.choice((1e5, 1e6, 1e7, 1e9)) * dice.uniform(0.5, 2),
        )
        for a in nodes
        for b in nodes
        if a is not b and dice.random() < 0.9
    ]
    return nodes, links, Wish(model, demand)


def _profile(dice: random.Random) -> Profile:
    layer = dice.choice((0.0005, 0.002, 0.01)) * dice.uniform(0.5, 2)
    more = dice.uniform(0.02, 0.9)
    output = dice.choice((0.0, 0.001, 0.01)) * dice.uniform(0.5, 2)
    return Profile(
        decode=((1, layer), (2, layer * (1 + more)), (4, layer * (1 + 2 * more))),
        prefill=((16, layer * 3), (128, layer * 12)),
        output=((1, output), (4, output * 2)),
        embedding=dice.choice((0.0, 1e-5)),
        fixed=dice.uniform(0, 0.001),
    )
