"""Inputs as numbers: what a stage, a hop and a cache cost on each place at a given width.

A place is one device of one node. docs/planner.md derives the model that these tables feed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fleetapp.hub.planner.inputs import Curve, Link, Model, Node, Profile

Floats = npt.NDArray[np.float64]

READ_SPEED: Final = 14e9
"""Bytes per second that an unmeasured device is taken to read of the weights."""
LAYER_START: Final = 2_500_000
"""Starting a layer's operations takes as long as reading so many bytes. Seen on one core, which
read 14 GB/s: 330 us for a layer of 2 MB, 2.2 ms for an output head of 30 MB."""
WIDTH_SHARE: Final = 0.08
"""What each further sequence of a step adds, in parts of the first, where nothing is measured."""
PREFILL_SPEED: Final = 40e9
"""Weight bytes times positions that an unmeasured device handles in a second."""
DEFAULT_RTT: Final = 0.001
DEFAULT_BANDWIDTH: Final = 100e6
"""A link that nobody has measured: an office's wired network, less what is lost."""
LOCAL_RTT: Final = 0.0002
LOCAL_BANDWIDTH: Final = 1e9
"""Between two runners of one node."""
HOP_HOST: Final = 0.0005
"""Seconds per frame and stage for receiving, TLS, queues and sending: two hops on one machine took
a millisecond (the fastest tenth of steps, which nobody else delayed)."""
HEAD_STEP: Final = 0.0002
HEAD_TOKEN: Final = 0.00002
"""What a head does besides its layers: per frame (scheduling), per token (text, pipe). Seen in the
same way."""
FRAME_BYTES: Final = 220
ROW_BYTES: Final = 12
TOKEN_BYTES: Final = 24
"""Of a frame besides its hidden states, per sequence in it, per token of an answer."""
SLOTS: Final = 32
"""Sequences that a head runs at once (``engine.limits``)."""


@dataclass(frozen=True)
class Place:
    """One device of one node; ``node`` and ``device`` are indexes."""

    node: int
    device: int
    kind: str
    memory: int
    profile: Profile
    can_head: bool
    coordinator: bool
    stability: float


@dataclass(frozen=True)
class Tables:
    """Seconds at one width; arrays by place, matrices by (from, to).

    Attributes:
        layer: per average layer.
        fixed: per step of any stage.
        first, last: what the first and last stage add.
        hop, occupied: a frame of hidden states: until it is there; while it keeps the link busy.
        back, back_occupied: the same for the answer, from the last stage to the first.
    """

    layer: Floats
    fixed: Floats
    first: Floats
    last: Floats
    hop: Floats
    occupied: Floats
    back: Floats
    back_occupied: Floats


class Rows(NamedTuple):
    """``Tables`` as lists."""

    layer: list[float]
    fixed: list[float]
    first: list[float]
    last: list[float]
    hop: list[list[float]]
    occupied: list[list[float]]
    back: list[list[float]]


def at(curve: Curve, x: float) -> float:
    """A curve's value; beyond the last point it goes on with the last slope, never downwards."""
    if x <= curve[0][0]:
        return curve[0][1]
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    (xl, yl) = curve[-1]
    if len(curve) == 1:
        return yl
    (xp, yp) = curve[-2]
    return yl + max(0.0, (yl - yp) / (xl - xp)) * (x - xl)


def assumed(model: Model) -> Profile:
    """A device that nobody has measured: it reads weights at ``READ_SPEED``."""
    mean = sum(model.layer_bytes) / model.layers
    layer = (mean + LAYER_START) / READ_SPEED
    output = max(1, model.head_bytes) / READ_SPEED

    def widths(seconds: float) -> Curve:
        return ((1.0, seconds), (16.0, seconds * (1 + 15 * WIDTH_SHARE)))

    return Profile(
        decode=widths(layer),
        prefill=((16.0, layer * 2), (256.0, layer + 256 * mean / PREFILL_SPEED)),
        output=widths(output),
        embedding=1e-6,
        fixed=1e-4,
        measured=False,
    )


def like(profiles: Sequence[Profile], model: Model) -> Profile:
    """The median of measured devices, for one that has not been measured; else ``assumed``."""
    if not profiles:
        return assumed(model)

    def median(curves: Sequence[Curve]) -> Curve:
        widths = sorted({x for curve in curves for x, _ in curve})
        return tuple((x, statistics.median(at(c, x) for c in curves)) for x in widths)

    return Profile(
        decode=median([p.decode for p in profiles]),
        prefill=median([p.prefill for p in profiles]),
        output=median([p.output for p in profiles]),
        embedding=statistics.median(p.embedding for p in profiles),
        fixed=statistics.median(p.fixed for p in profiles),
        measured=False,
    )


def places_of(nodes: Sequence[Node], model: Model) -> tuple[Place, ...]:
    """Every device of every node, in that order."""
    known: dict[str, list[Profile]] = {}
    for node in nodes:
        for device in node.devices:
            if (profile := device.profiles.get(model.model_id)) is not None and profile.measured:
                known.setdefault(device.kind, []).append(profile)
    return tuple(
        Place(
            node=n,
            device=d,
            kind=device.kind,
            memory=device.memory,
            profile=device.profiles.get(model.model_id) or like(known.get(device.kind, []), model),
            can_head=node.can_head,
            coordinator=node.coordinator,
            stability=node.stability,
        )
        for n, node in enumerate(nodes)
        for d, device in enumerate(node.devices)
    )


@dataclass(frozen=True)
class Costs:
    """One model on some places.

    Attributes:
        names: of the nodes, for sentences.
    """

    model: Model
    places: tuple[Place, ...]
    half_rtt: Floats
    bandwidth: Floats
    names: tuple[str, ...]
    _tables: dict[tuple[float, bool], Tables] = field(default_factory=dict, repr=False)
    _rows: dict[tuple[float, bool], Rows] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, nodes: Sequence[Node], links: Sequence[Link], model: Model) -> Costs:
        """All devices of these nodes."""
        places = places_of(nodes, model)
        index = {node.device_id: i for i, node in enumerate(nodes)}
        rtt = np.full((len(nodes), len(nodes)), DEFAULT_RTT)
        speed = np.full((len(nodes), len(nodes)), DEFAULT_BANDWIDTH)
        for link in links:
            if link.source in index and link.target in index:
                at_ = index[link.source], index[link.target]
                rtt[at_], speed[at_] = link.rtt, max(link.bandwidth, 1.0)
        np.fill_diagonal(rtt, LOCAL_RTT)
        np.fill_diagonal(speed, LOCAL_BANDWIDTH)
        of = [p.node for p in places]
        pick = np.ix_(of, of)
        return cls(model, places, rtt[pick] / 2, speed[pick], tuple(n.name for n in nodes))

    def part(self, places: Sequence[int]) -> Costs:
        """The same on some of the places, renumbered in that order."""
        pick = np.ix_(places, places)
        kept = tuple(self.places[p] for p in places)
        return Costs(self.model, kept, self.half_rtt[pick], self.bandwidth[pick], self.names)

    @cached_property
    def work(self) -> Floats:
        """Work of the layers before each layer and behind the last, in average layers: [L + 1]."""
        sizes = np.array(self.model.layer_bytes, np.float64)
        total = sizes.sum()
        unit = sizes / (total / len(sizes)) if total else np.ones(len(sizes))
        return np.concatenate(([0.0], np.cumsum(unit)))

    def held(self, tokens: int) -> Floats:
        """Bytes of the layers before each, with a cache for so many tokens: [L + 1]."""
        sizes = np.array(self.model.layer_bytes, np.float64) + tokens * self.model.kv_bytes
        return np.concatenate(([0.0], np.cumsum(sizes)))

    @cached_property
    def memory(self) -> Floats:
        """Bytes for layers and cache on each place."""
        return np.array([p.memory - self.model.overhead for p in self.places], np.float64)

    @property
    def first_bytes(self) -> int:
        """What the first stage holds besides."""
        return self.model.embedding_bytes + self.model.head_extra

    @property
    def last_bytes(self) -> int:
        """What the last stage holds besides."""
        return self.model.head_bytes

    def frame_bytes(self, width: float) -> float:
        """Of a frame of hidden states with so many positions."""
        row = self.model.hidden * self.model.activation_bytes + ROW_BYTES
        return FRAME_BYTES + width * row

    def tables(self, width: float, *, alone: bool) -> Tables:
        """Everything at one width; ``alone`` for a chain of one stage, which has no hops."""
        key = (width, alone)
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self._make(width, alone=alone)
        return found

    def rows(self, width: float, *, alone: bool) -> Rows:
        """``tables`` as lists, which Python reads faster one by one."""
        key = (width, alone)
        if key not in self._rows:
            t = self.tables(width, alone=alone)
            self._rows[key] = Rows(
                *(
                    a.tolist()
                    for a in (t.layer, t.fixed, t.first, t.last, t.hop, t.occupied, t.back)
                )
            )
        return self._rows[key]

    def _make(self, width: float, *, alone: bool) -> Tables:
        profiles = [p.profile for p in self.places]
        host = 0.0 if alone else HOP_HOST
        there = self.frame_bytes(width) / self.bandwidth
        back = (FRAME_BYTES + width * TOKEN_BYTES) / self.bandwidth
        return Tables(
            layer=np.array([at(p.decode, width) for p in profiles]),
            fixed=np.array([p.fixed + host for p in profiles]),
            first=np.array([p.embedding * width for p in profiles])
            + HEAD_STEP
            + HEAD_TOKEN * width,
            last=np.array([at(p.output, width) for p in profiles]),
            hop=self.half_rtt + there,
            occupied=there,
            back=self.half_rtt + back,
            back_occupied=back,
        )
