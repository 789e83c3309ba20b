"""``bench planner``: is the plan the best there is, how soon, and does what it says come true?

Three parts. Random small fleets against an enumeration written apart from the planner. The time of
plans for 8 and 40 nodes. And emulated fleets, see ``emulated``.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fleetapp.bench import common, emulated, exhaustive
from fleetapp.bench.workshop import Workshop
from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.fleet import plan_fleet
from fleetapp.hub.planner.inputs import Demand, Device, Link, Model, Node, Profile, Wish
from fleetapp.hub.planner.interval import with_skips
from fleetapp.models.library import Library
from fleetapp.types import DeviceId, Precision

_GIB: Final = 2**30


@dataclass(frozen=True)
class Effort:
    """How much is done."""

    fleets: int
    repeats: int
    emulated: emulated.Effort


FULL: Final = Effort(
    fleets=500,
    repeats=9,
    emulated=emulated.Effort(
        rounds=5, tokens=64, users=(1, 8), environments=6, seconds=420.0, patience=60.0
    ),
)
QUICK: Final = Effort(
    fleets=60,
    repeats=3,
    emulated=emulated.Effort(
        rounds=1, tokens=40, users=(1, 8), environments=2, seconds=30.0, patience=3.0
    ),
)


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
        rows = emulated.Emulated(workshop, effort.emulated, progress).rows()
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
