"""``bench planner``: is the plan the best there is, how soon, and does what it says come true?

Three parts. Random small fleets against an enumeration written apart from the planner. The time of
plans for 8 and 40 nodes. And emulated fleets after BloomBee's E1 to E6 (section 8.1): two runner
"PCs" of one core each, joined by links of several rates, profiled by the same message that agents
send, then measured in every way of serving: one PC, replicas, split.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil
from msgspec import structs

from fleetapp.bench import common, exhaustive
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
from fleetapp.hub.planner.inputs import Demand, Device, Link, Model, Node, Profile, Wish
from fleetapp.hub.planner.interval import with_skips
from fleetapp.hub.planner.plan import ModelPlan
from fleetapp.hub.planner.predict import Cut
from fleetapp.hub.profiles import ProfileBook
from fleetapp.models.library import Library
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
    """How much is done."""

    fleets: int
    rounds: int
    tokens: int
    users: tuple[int, ...]
    environments: int
    repeats: int = 9
    patience: float = 120.0
    """Seconds that may be waited in all for others to leave the cores alone."""


FULL: Final = Effort(fleets=500, rounds=3, tokens=96, users=(1, 8), environments=6)
QUICK: Final = Effort(
    fleets=60, rounds=1, tokens=40, users=(1, 8), environments=2, repeats=3, patience=5.0
)


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


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Do all three parts; arguments and errors as ``parity.run``."""
    progress(f"{effort.fleets} small fleets against all plans there are")
    equal = compare(effort.fleets, progress)
    times = plan_times(effort.repeats, progress)
    with tempfile.TemporaryDirectory(prefix="fleetapp-bench-") as folder:
        manifest, _ = library.get(model)
        workshop = Workshop(library, model, manifest, Path(folder), precision, device)
        rows = _Emulated(workshop, effort, progress).rows()
    errors = [row["error"] for row in rows]
    checks = (
        common.is_true("equals_brute_force", equal == effort.fleets),
        common.at_most("ms_8x80", times["ms_8x80"], 5.0),
        common.at_most("ms_40x80", times["ms_40x80"], 1000.0),
        common.at_most("median_prediction_error", statistics.median(errors), 0.25),
    )
    facts = ({"fleets compared": effort.fleets, "equal to the best": equal}, _milliseconds(times))
    machine = common.machine(cores_used=len(set(common.cores_for(2))))
    return common.Report("planner", machine, (*facts, *rows), checks)


def _milliseconds(times: Mapping[str, float]) -> dict[str, Any]:
    return {name.replace("ms_", "ms "): round(value, 2) for name, value in times.items()}


# ---------------------------------------------------------------------- against everything


def compare(fleets: int, progress: common.Progress = lambda _: None) -> int:
    """How many of so many random small fleets get the best plan there is."""
    equal = 0
    for seed in range(fleets):
        nodes, links, wish = exhaustive.random_fleet(seed)
        found = plan_fleet(nodes, links, [wish]).models[0].tokens_per_second
        best = exhaustive.Brute(nodes, links, wish).best()
        equal += abs(found - best) <= 1e-5 * best
        if seed % 50 == 49:
            progress(f"{seed + 1} small fleets compared")
    return equal


# ---------------------------------------------------------------------- how soon


def plan_times(repeats: int, progress: common.Progress = lambda _: None) -> dict[str, float]:
    """Milliseconds, medians.

    ``ms_8x80`` is BloomBee's problem: 8 nodes in a given order, any of which may get nothing, and
    80 layers; the slower of both goals. ``ms_40x80`` is a whole plan of 40 nodes: sets, orders,
    cuts, users, sentences. The others are whole plans of smaller fleets.
    """
    progress("timing plans")
    out = {}
    nodes, links, wish = _random_office(8)
    costs = Costs.of(nodes, links, wish.model)
    out["ms_8x80"] = max(
        _median_ms(lambda: with_skips(costs, range(8), 2.0, "sum", 4096), repeats),
        _median_ms(lambda: with_skips(costs, range(8), 2.0, "slowest", 4096), repeats),
    )
    for count in (40, 12, 8, 4):
        nodes, links, wish = _random_office(count)
        times = min(repeats, 5)
        out[f"ms_{count}x80" if count == 40 else f"ms_plan_of_{count}"] = _median_ms(
            lambda: plan_fleet(nodes, links, [wish]),  # noqa: B023 (called at once)
            times,
        )
    return out


def _median_ms(what: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats + 1):  # the first warms up
        began = time.perf_counter()
        what()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:]) * 1e3


def _random_office(count: int) -> tuple[list[Node], list[Link], Wish]:
    """PCs of different speed and memory, and links; eight users of a model of 80 layers."""
    dice = random.Random(count)  # noqa: S311 (no secret)
    nodes = []
    for number in range(count):
        layer = dice.uniform(0.0005, 0.002)
        profile = Profile(
            decode=((1, layer), (16, layer * 2.5)),
            prefill=((32, layer * 4), (256, layer * 20)),
            output=((1, layer * 4), (16, layer * 8)),
        )
        memory = int(dice.uniform(3, 12) * _GIB)
        name = f"PC{number}"
        device = Device("CPU", memory, {"m": profile})
        nodes.append(Node(DeviceId(name), name, (device,), coordinator=number == 0))
    links = [
        Link(a.device_id, b.device_id, dice.uniform(0.0003, 0.004), dice.uniform(2e6, 1e8))
        for a in nodes
        for b in nodes
        if a is not b
    ]
    model = Model("m", (200 << 20,) * 80, 300 << 20, 300 << 20, 4096, 4096)
    return nodes, links, Wish(model, Demand(users=8, context=1024))


# ---------------------------------------------------------------------- does it come true


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


class _Emulated:
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
            prompts = self._workshop.prompts()
            out: list[dict[str, Any]] = []
            for environment in ENVIRONMENTS[: self._effort.environments]:
                ring.links[1].reshape(environment.there)
                ring.links[0].reshape(environment.back)
                for users in self._effort.users:
                    out += self._cell(environment, users, ways, prompts)
            return out

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

    def _cell(
        self, environment: Environment, users: int, ways: Sequence[_Way], prompts: Prompts
    ) -> list[dict[str, Any]]:
        usable = [w for w in ways if w.name != REPLICAS or users > 1]  # else one has nobody
        measured: dict[str, list[float]] = {way.name: [] for way in usable}
        predicted: dict[str, list[float]] = {way.name: [] for way in usable}
        planned: dict[str, str] = {}
        for number in range(self._effort.rounds):
            first = number % len(usable)
            for way in (*usable[first:], *usable[:first]):
                self._progress(f"{environment.name}, {users} at once: {way.name}")
                self._patience.wait(self._cores)
                profiles = self._profiles(way.parts, together=users > 1)
                rate = steady_rate(way.rings, prompts.take(users), self._effort.tokens)
                measured[way.name].append(rate)
                predicted[way.name].append(self._predict(way, profiles, environment, users))
                if way.name == REPLICAS or users == 1:
                    plan = self._plan(profiles, environment, users, whole=True)
                    planned[_way_of(plan)] = "both hold all"
        planned[SPLIT] = "neither does"
        return [
            {
                "configuration": environment.name,
                "users": users,
                "way": way.name,
                "planned if": planned.get(way.name, ""),
                "cut": "+".join(str(b - a) for a, b in pairwise(way.cuts[0].cuts)),
                "predicted tok/s": round(statistics.median(predicted[way.name]), 1),
                "measured tok/s": round(statistics.median(measured[way.name]), 1),
                "lowest": round(min(measured[way.name]), 1),
                "highest": round(max(measured[way.name]), 1),
                "error": round(_error(predicted[way.name], measured[way.name]), 3),
            }
            for way in usable
        ]

    def _predict(
        self, way: _Way, profiles: Sequence[Profile], environment: Environment, users: int
    ) -> float:
        nodes = self._nodes(profiles, _GIB << 6)
        costs = Costs.of(nodes, links_of(environment), self._model)
        return sum(predict.rate(costs, cut, share) for cut, share in _shared(way.cuts, users))


def _error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Of the median of all rounds, relative."""
    rate = statistics.median(measured)
    return abs(statistics.median(predicted) - rate) / rate


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
) -> float:
    """Tokens per second of all users while all of them get some: without prompts and stragglers."""
    asked = []
    for number, ids in enumerate(prompts):
        ring = rings[number % len(rings)]
        asked.append((ring, ring.begin(ids, max_tokens=tokens, ignore_eos=True)))
    answers = [ring.head.answer(name, ANSWER_SECONDS) for ring, name in asked]
    for answer in answers:
        end = answer.finished
        if end is not None and end.reason == "error":
            raise from_code(end.code, end.message, end.remedy)
    return rate_between(answers)


def rate_between(answers: Sequence[Answer]) -> float:
    """From the moment when all have begun until the first one ends."""
    began = max(a.times[min(_WARM_STEPS, len(a.times) - 1)] for a in answers)
    ended = min(a.times[-1] for a in answers)
    if ended <= began:
        raise RunnerFailed("The answers were too short to tell a speed from them.")
    count = sum(
        len(delta.token_ids)
        for a in answers
        for delta, at in zip(a.deltas, a.times, strict=True)
        if began < at <= ended
    )
    return count / (ended - began)
