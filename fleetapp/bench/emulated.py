"""Emulated fleets after BloomBee's E1 to E6 (section 8.1): what is predicted, and what comes true.

Two runner "PCs" of one core each, joined by links of several rates and profiled by the same message
that agents send, serve in every way there is: one PC, replicas, split.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import psutil
from msgspec import structs

from fleetapp.bench import common
from fleetapp.bench.link import Shape
from fleetapp.bench.rounds import ANSWER_SECONDS, Prompts
from fleetapp.bench.runners import Answer, RunnerClient, RunnerRing
from fleetapp.bench.workshop import Workshop
from fleetapp.engine import pipe
from fleetapp.errors import RunnerFailed, from_code
from fleetapp.fleet.control import StageProfile
from fleetapp.hub.knowledge import model_of
from fleetapp.hub.planner import predict
from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.fleet import plan_fleet
from fleetapp.hub.planner.inputs import Demand, Device, Link, Node, Profile, Wish
from fleetapp.hub.planner.plan import ModelPlan
from fleetapp.hub.planner.predict import Cut
from fleetapp.hub.profiles import ProfileBook
from fleetapp.types import DeviceId, LayerRange, Precision

ONE_PC: Final = "one PC"
REPLICAS: Final = "replicas"
SPLIT: Final = "split"
_GIB: Final = 2**30
_CONTEXT: Final = 512
_WARM_STEPS: Final = 4
_PROFILE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.25
_IDLE_PERCENT: Final = 25.0
_MBIT: Final = 1e6


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    tokens: int
    users: tuple[int, ...]
    environments: int
    seconds: float
    """No further round is begun that would not end within so much time."""
    patience: float = 120.0
    """Seconds that may be waited in all for others to leave the cores alone."""


@dataclass(frozen=True)
class Environment:
    """The links between two PCs: there, and back."""

    name: str
    there: Shape
    back: Shape


def _same(name: str, shape: Shape) -> Environment:
    return Environment(name, shape, shape)


ENVIRONMENTS: Final = (
    _same("E1 unlimited", Shape()),
    _same("E5 20 Mbps", Shape(rate=20 * _MBIT)),
    _same("E2 500 Mbps", Shape(rate=500 * _MBIT)),
    _same("E3 250 Mbps", Shape(rate=250 * _MBIT)),
    _same("E4 125 Mbps", Shape(rate=125 * _MBIT)),
    Environment("E6 mixed", Shape(delay=0.010, rate=125 * _MBIT), Shape(rate=20 * _MBIT)),
)
"""The first ones also in a quick run."""


class Patience:
    """Waits until nobody uses the cores, so many seconds in all."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def wait(self, cores: Sequence[int]) -> None:
        """Return when they are idle, or when there is no more time for it."""
        while self.left > 0:
            busy = psutil.cpu_percent(interval=_LOOK_SECONDS, percpu=True)
            if max(busy[core] for core in cores) <= _IDLE_PERCENT:
                return
            self.left -= _LOOK_SECONDS


@dataclass(frozen=True)
class _Part:
    """A runner, and what it holds."""

    node: str
    ring: RunnerRing
    index: int
    layers: tuple[int, ...]

    @property
    def runner(self) -> RunnerClient:
        return self.ring.runners[self.index]


@dataclass(frozen=True)
class _Way:
    """A way of serving: what the planner would predict for it, and the runners that do it."""

    name: str
    cuts: tuple[Cut, ...]
    rings: tuple[RunnerRing, ...]
    parts: Sequence[_Part]


@dataclass
class _Cell:
    """One line of the table, and what its rounds gave."""

    environment: Environment
    users: int
    way: _Way
    measured: list[float] = field(default_factory=list)
    disturbed: list[float] = field(default_factory=list)
    """Counting the steps, too, that other programs slowed down."""
    predicted: list[float] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    """Which way the planner would have gone, by the profiles of each round."""

    def __str__(self) -> str:
        return f"{self.environment.name}, {self.users} at once, {self.way.name}"

    def row(self) -> dict[str, Any]:
        """For the table."""
        rate, said = statistics.median(self.measured), statistics.median(self.predicted)
        return {
            "configuration": self.environment.name,
            "users": self.users,
            "way": self.way.name,
            "cut": "+".join(str(b - a) for a, b in pairwise(self.way.cuts[0].cuts)),
            "predicted plan": statistics.mode(self.planned),
            "predicted tok/s": round(said, 1),
            "measured tok/s": round(rate, 1),
            "lowest": round(min(self.measured), 1),
            "highest": round(max(self.measured), 1),
            "all steps tok/s": round(statistics.median(self.disturbed), 1),
            "error": round(abs(said - rate) / rate, 3),
        }


class Emulated:
    """Two PCs of one core each, in every environment.

    Both cores belong to one machine: they share its memory, and with others its time, which two PCs
    do not. So every round is predicted from profiles of that round, taken as the way works: both
    PCs at once where both compute at once, one after the other where a lone user's frame goes from
    one to the other. Before each the bench waits for cores that nobody else uses, for a while.
    """

    def __init__(self, workshop: Workshop, effort: Effort, progress: common.Progress) -> None:
        self._workshop, self._effort, self._progress = workshop, effort, progress
        self._cores = common.cores_for(2)
        self._model = model_of(workshop.manifest, workshop.precision)
        self._digest = workshop.layout((0, workshop.layers)).model
        self._whole = (0, workshop.layers)
        self._patience = Patience(effort.patience)

    def rows(self) -> list[dict[str, Any]]:
        """A line for each environment, number of users and way of serving."""
        with ExitStack() as stack:
            self._progress("loading two PCs with the whole model")
            alone = [
                stack.enter_context(self._workshop.ring(f"whole{i}", self._whole, [core]))
                for i, core in enumerate(self._cores)
            ]
            wholes = [_Part(f"pc{i}", ring, 0, self._whole) for i, ring in enumerate(alone)]
            cut = self._best_cut(self._profiles(wholes, together=True))
            self._progress(f"loading the split {'+'.join(str(b - a) for a, b in pairwise(cut))}")
            ring = stack.enter_context(
                self._workshop.ring("split", cut, self._cores, shape=Shape())
            )
            parts = [_Part(f"pc{i}", ring, i, cut[i : i + 2]) for i in range(2)]
            ways = (
                _Way(ONE_PC, (Cut((0,), self._whole),), (alone[0],), wholes[:1]),
                _Way(
                    REPLICAS, (Cut((0,), self._whole), Cut((1,), self._whole)), tuple(alone), wholes
                ),
                _Way(SPLIT, (Cut((0, 1), cut),), (ring,), parts),
            )
            return self._measure(ring, ways)

    def _measure(self, split: RunnerRing, ways: Sequence[_Way]) -> list[dict[str, Any]]:
        """Every cell in every round, so that what others do meanwhile hits all of them alike."""
        prompts = self._workshop.prompts()
        cells = [
            _Cell(environment, users, way)
            for environment in ENVIRONMENTS[: self._effort.environments]
            for users in self._effort.users
            for way in ways
            if way.name != REPLICAS or users > 1  # else one of them has nobody
        ]
        began = time.monotonic()
        for number in range(self._effort.rounds):
            round_began = time.monotonic()
            for cell in cells if number % 2 == 0 else reversed(cells):
                self._progress(f"round {number + 1} of {self._effort.rounds}: {cell}")
                split.links[1].reshape(cell.environment.there)
                split.links[0].reshape(cell.environment.back)
                self._one(cell, prompts)
            now = time.monotonic()
            if now - began + (now - round_began) > self._effort.seconds:
                break  # a busy machine gets fewer rounds
        return [cell.row() for cell in cells]

    def _profiles(self, parts: Sequence[_Part], *, together: bool) -> list[Profile]:
        """Of both PCs, measured at the same time or one after the other.

        Where only one PC takes part, the other one is taken to be like it.
        """
        book = ProfileBook(time.monotonic)
        order = pipe.Measure(seconds=_PROFILE_SECONDS)
        if together:
            for part in parts:
                part.runner.send(order)
        for part in parts:
            if not together:
                part.runner.send(order)
            found = part.runner.expect(pipe.Measured, 60.0)
            if not found.complete:
                raise RunnerFailed("A runner could not be profiled.")
            profile = stage_profile(
                found,
                model=self._digest,
                layers=LayerRange(*part.layers),
                of=self._workshop.layers,
                device=self._workshop.device,
                runtime=part.ring.loaded[part.index].runtime,
                precision=self._workshop.precision,
            )
            book.add(part.node, [profile])
        device, precision = self._workshop.device, self._workshop.precision
        out = [
            book.profile(part.node, device, self._digest, precision, self._model) for part in parts
        ]
        known = [profile for profile in out if profile is not None]
        return (known * 2)[:2]

    def _nodes(self, profiles: Sequence[Profile], memory: int) -> list[Node]:
        return [
            Node(
                DeviceId(f"pc{i}"),
                f"PC {i + 1}",
                (Device("CPU", memory, {self._model.model_id: profile}),),
                coordinator=i == 0,
                can_head=i == 0,
            )
            for i, profile in enumerate(profiles)
        ]

    def _best_cut(self, profiles: Sequence[Profile]) -> tuple[int, ...]:
        """Where the planner cuts for eight users if neither PC can hold the whole."""
        plan = self._plan(profiles, ENVIRONMENTS[0], 8, whole=False)
        return (0, plan.chains[0].stages[0].layers.stop, self._workshop.layers)

    def _plan(
        self, profiles: Sequence[Profile], environment: Environment, users: int, *, whole: bool
    ) -> ModelPlan:
        model = self._model
        need = sum(model.layer_bytes) + model.embedding_bytes + model.head_bytes
        need += _CONTEXT * users * model.kv_bytes * model.layers
        nodes = self._nodes(profiles, model.overhead + int(need * (2.0 if whole else 0.8)))
        if whole:  # then each may have a chain of its own
            nodes = [structs.replace(node, can_head=True) for node in nodes]
        wish = Wish(model, Demand(users=users, context=_CONTEXT))
        plan = plan_fleet(nodes, links_of(environment), [wish]).models[0]
        if not plan.chains:
            raise RunnerFailed(plan.text)
        return plan

    def _one(self, cell: _Cell, prompts: Prompts) -> None:
        """One round of a cell."""
        way, environment, users = cell.way, cell.environment, cell.users
        self._patience.wait(self._cores)
        profiles = self._profiles(way.parts, together=users > 1)
        rate, with_others = steady_rate(way.rings, prompts.take(users), self._effort.tokens)
        cell.measured.append(rate)
        cell.disturbed.append(with_others)
        cell.predicted.append(self._predict(way, profiles, environment, users))
        fits_alone = way.name != SPLIT
        cell.planned.append(_way_of(self._plan(profiles, environment, users, whole=fits_alone)))

    def _predict(
        self, way: _Way, profiles: Sequence[Profile], environment: Environment, users: int
    ) -> float:
        nodes = self._nodes(profiles, _GIB << 6)
        costs = Costs.of(nodes, links_of(environment), self._model)
        return sum(predict.rate(costs, cut, share) for cut, share in _shared(way.cuts, users))


def _shared(cuts: Sequence[Cut], users: int) -> list[tuple[Cut, int]]:
    """Users as ``steady_rate`` deals them."""
    each = [len(range(i, users, len(cuts))) for i in range(len(cuts))]
    return [(cut, share) for cut, share in zip(cuts, each, strict=True) if share]


def _way_of(plan: ModelPlan) -> str:
    if any(len(chain.stages) > 1 for chain in plan.chains):
        return SPLIT
    return REPLICAS if len(plan.chains) > 1 else ONE_PC


def links_of(environment: Environment) -> list[Link]:
    """What the planner is told of an emulated link."""
    ends = (("pc0", "pc1", environment.there), ("pc1", "pc0", environment.back))
    return [
        Link(DeviceId(a), DeviceId(b), 2 * shape.delay, (shape.rate or 45e9) / 8)
        for a, b, shape in ends
    ]


def stage_profile(
    found: pipe.Measured,
    *,
    model: str,
    layers: LayerRange,
    of: int,
    device: str,
    runtime: str,
    precision: Precision,
) -> StageProfile:
    """What a runner said, as a member reports it."""

    def pairs(points: tuple[pipe.Point, ...]) -> tuple[tuple[int, float], ...]:
        return tuple((p.size, p.seconds) for p in points)

    return StageProfile(
        model=model,
        layers=layers,
        first=layers.start == 0,
        last=layers.stop == of,
        device=device,
        runtime=runtime,
        precision=precision,
        decode=pairs(found.decode),
        chosen=pairs(found.chosen),
        prefill=pairs(found.prefill),
    )


def steady_rate(
    rings: Sequence[RunnerRing], prompts: Sequence[tuple[int, ...]], tokens: int
) -> tuple[float, float]:
    """Tokens per second of all users while all of them get some, without prompts and stragglers:
    of undisturbed steps, and of all.
    """
    asked = []
    for number, ids in enumerate(prompts):
        ring = rings[number % len(rings)]
        asked.append((ring, ring.begin(ids, max_tokens=tokens, ignore_eos=True)))
    answers = [ring.head.answer(name, ANSWER_SECONDS) for ring, name in asked]
    for answer in answers:
        end = answer.finished
        if end is not None and end.reason == "error":
            raise from_code(end.code, end.message, end.remedy)
    return undisturbed_rate(answers), rate_between(answers)


def undisturbed_rate(answers: Sequence[Answer]) -> float:
    """Tokens per second if every step took as long as the faster quarter of them.

    Other programs of a shared machine only ever make steps slower; profiles are taken alike.
    """
    began, ended = _shared_time(answers)
    rate = 0.0
    for answer in answers:
        gaps = sorted(
            (b - a) / len(delta.token_ids)
            for (a, b), delta in zip(pairwise(answer.times), answer.deltas[1:], strict=True)
            if began < b <= ended and delta.token_ids
        )
        if not gaps:
            raise RunnerFailed("The answers were too short to tell a speed from them.")
        rate += 1 / gaps[(len(gaps) - 1) // 4]
    return rate


def rate_between(answers: Sequence[Answer]) -> float:
    """Tokens per second from the moment when all have begun until the first one ends."""
    began, ended = _shared_time(answers)
    count = sum(
        len(delta.token_ids)
        for a in answers
        for delta, at in zip(a.deltas, a.times, strict=True)
        if began < at <= ended
    )
    return count / (ended - began)


def _shared_time(answers: Sequence[Answer]) -> tuple[float, float]:
    """When all of them get tokens."""
    began = max(a.times[min(_WARM_STEPS, len(a.times) - 1)] for a in answers)
    ended = min(a.times[-1] for a in answers)
    if ended <= began:
        raise RunnerFailed("The answers were too short to tell a speed from them.")
    return began, ended
