"""What members have measured of models on their devices, and what follows for the planner.

A member measures whole stages. Here they are taken apart: seconds per layer, and seconds of the
output head. A stage without the head says what a layer costs; one with it then says what the head
costs. Where only stages with a head were measured, the two are told apart by the bytes they read.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetapp.fleet.control import StageProfile
from fleetapp.hub.planner.costs import LAYER_START, WIDTH_SHARE
from fleetapp.hub.planner.inputs import Curve, Model, Profile

KEPT_SECONDS: Final = 7 * 86400.0
"""Older measurements say little of a PC as it is now."""
KEPT_EACH: Final = 5
"""Measurements of one shard on one device whose median counts."""
MOST: Final = 4096
"""Measurements in all; members can send what they like, and memory is not theirs to fill."""

Key = tuple[str, str, str, str]
"""Device id of the node, device, digest of the model, precision."""
Pairs = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class _Entry:
    profile: StageProfile
    at: float


@dataclass
class ProfileBook:
    """All measurements that are not too old.

    Args:
        clock: monotonic seconds.
    """

    clock: Callable[[], float]
    _entries: dict[Key, list[_Entry]] = field(default_factory=dict)

    def add(self, node: str, profiles: Iterable[StageProfile]) -> bool:
        """Take in what a member reports; true if something of it counts.

        A repeated report (after a reconnect) is recognised by its time.
        """
        now, news = self.clock(), False
        for profile in profiles:
            if not _sound(profile) or not 0 <= profile.age < KEPT_SECONDS:
                continue
            key = node, profile.device, profile.model, profile.precision
            entries = self._entries.setdefault(key, [])
            at = now - profile.age
            if any(e.profile.layers == profile.layers and abs(e.at - at) < 2 for e in entries):
                continue
            entries[:] = [e for e in entries if e.profile.runtime == profile.runtime]
            entries.append(_Entry(profile, at))
            entries.sort(key=lambda e: e.at)
            self._thin(entries, profile)
            news = True
        self._drop_old(now)
        return news

    def profile(
        self, node: str, device: str, digest: str, precision: str, model: Model
    ) -> Profile | None:
        """Seconds per layer and of the output head; None if nothing is known.

        Args:
            node: device id of the member.
            device: one of its devices, as OpenVINO calls it.
            digest: of the model's manifest.
            precision: that it is served with.
            model: its bytes, by part.
        """
        self._drop_old(self.clock())
        entries = self._entries.get((node, device, digest, precision), [])
        stages = [
            stage
            for layers in sorted({e.profile.layers for e in entries})
            if (
                stage := _Stage.of(
                    [e.profile for e in entries if e.profile.layers == layers], model
                )
            )
        ]
        return derive(stages, model)

    def known(self) -> int:
        """Measurements that count."""
        return sum(map(len, self._entries.values()))

    def _thin(self, entries: list[_Entry], new: StageProfile) -> None:
        same = [e for e in entries if e.profile.layers == new.layers]
        for old in same[:-KEPT_EACH]:
            entries.remove(old)

    def _drop_old(self, now: float) -> None:
        for key, entries in list(self._entries.items()):
            entries[:] = [e for e in entries if now - e.at < KEPT_SECONDS]
            if not entries:
                del self._entries[key]
        while self.known() > MOST:
            del self._entries[next(iter(self._entries))]


def _sound(profile: StageProfile) -> bool:
    """A broken or malicious member must not make the planner divide by zero."""
    points = (*profile.decode, *profile.chosen, *profile.prefill)
    return (
        bool(profile.decode)
        and bool(profile.chosen)
        and bool(profile.prefill)
        and 0 <= profile.layers.start < profile.layers.stop
        and all(size > 0 and 0 < seconds < 3600 for size, seconds in points)
    )


@dataclass(frozen=True)
class _Stage:
    """The median of measurements of one shard.

    Attributes:
        work: its layers, in average ones.
    """

    work: float
    last: bool
    decode: dict[int, float]
    chosen: dict[int, float]
    prefill: dict[int, float]

    @classmethod
    def of(cls, profiles: Sequence[StageProfile], model: Model) -> _Stage | None:
        layers = profiles[-1].layers
        if layers.stop > model.layers:
            return None
        mean = sum(model.layer_bytes) / model.layers
        inside = sum(model.layer_bytes[layers.start : layers.stop])
        return cls(
            work=inside / mean if mean else float(len(layers)),
            last=layers.stop == model.layers,
            decode=_medians([p.decode for p in profiles]),
            chosen=_medians([p.chosen for p in profiles]),
            prefill=_medians([p.prefill for p in profiles]),
        )


def derive(stages: Sequence[_Stage], model: Model) -> Profile | None:
    """Take stages of one device apart; see the module."""
    inner = [s for s in stages if not s.last]
    ends = [s for s in stages if s.last]
    if inner:
        decode = _per_layer([(s.work, s.decode) for s in inner])
        prefill = _per_layer([(s.work, s.prefill) for s in inner])
    elif ends:
        reads = [_head_share(s, model) * s.decode[min(s.decode)] for s in ends]
        decode = _per_layer(
            [(s.work, _less(s.decode, r)) for s, r in zip(ends, reads, strict=True)]
        )
        prefill = _per_layer(
            [(s.work, _less(s.prefill, r)) for s, r in zip(ends, reads, strict=True)]
        )
    else:
        return None
    return Profile(
        decode=_curve(decode, WIDTH_SHARE),
        prefill=_curve(prefill, 1.0),
        output=_curve(_outputs(ends, decode, model), WIDTH_SHARE),
    )


def _outputs(ends: Sequence[_Stage], layer: dict[int, float], model: Model) -> dict[int, float]:
    """Seconds of the output head by width."""
    if not ends:
        mean = sum(model.layer_bytes) / model.layers
        times = (model.head_bytes + LAYER_START) / (mean + LAYER_START)
        return {width: times * seconds for width, seconds in layer.items()}
    found: dict[int, list[float]] = {}
    for stage in ends:
        for width, seconds in stage.chosen.items():
            if width in layer:
                rest = seconds - stage.work * layer[width]
                found.setdefault(width, []).append(max(rest, 0.01 * seconds))
    return {width: statistics.median(values) for width, values in found.items()}


def _head_share(stage: _Stage, model: Model) -> float:
    """The output head's part of a narrow step, by what is read."""
    mean = sum(model.layer_bytes) / model.layers
    head = model.head_bytes + LAYER_START
    return head / (head + stage.work * (mean + LAYER_START))


def _less(points: dict[int, float], seconds: float) -> dict[int, float]:
    return {size: max(value - seconds, 0.1 * value) for size, value in points.items()}


def _per_layer(stages: Sequence[tuple[float, dict[int, float]]]) -> dict[int, float]:
    """Of all stages together: seconds by work, for sizes that each was measured at."""
    sizes = set.intersection(*(set(points) for _, points in stages))
    work = sum(w for w, _ in stages)
    return {size: sum(points[size] for _, points in stages) / work for size in sizes}


def _medians(curves: Sequence[Pairs]) -> dict[int, float]:
    sizes = {size for curve in curves for size, _ in curve}
    return {
        size: statistics.median([s for curve in curves for n, s in curve if n == size])
        for size in sizes
    }


def _curve(points: dict[int, float], share: float) -> Curve:
    """Slow devices are measured at fewer sizes. Where there is only one, twice the size is assumed
    to cost ``share`` of it more.
    """
    curve = tuple((float(size), seconds) for size, seconds in sorted(points.items()))
    if len(curve) > 1:
        return curve
    ((size, seconds),) = curve
    return (*curve, (2 * size, seconds * (1 + share)))
