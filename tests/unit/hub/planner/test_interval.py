"""Interval partitions for a given order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.interval import Goal, Load, Orders, with_skips
from tests.support.fleets import GIB, links, model, node, office


def exhaustive(costs: Costs, width: float, goal: Goal, tokens: int) -> float:
    """The least sum or slowest of all partitions of the order 0, 1, .. with skips."""
    tables, work, held = costs.tables(width, alone=False), costs.work, costs.held(tokens)
    layers, best = costs.model.layers, float("inf")
    for count in range(1, len(costs.places) + 1):
        for used in itertools.combinations(range(len(costs.places)), count):
            for inner in itertools.combinations(range(1, layers), count - 1):
                cuts = (0, *inner, layers)
                parts = []
                for i, p in enumerate(used):
                    took = tables.fixed[p] + tables.layer[p] * (work[cuts[i + 1]] - work[cuts[i]])
                    need = held[cuts[i + 1]] - held[cuts[i]]
                    if i == 0:
                        took, need = took + tables.first[p], need + costs.first_bytes
                    if i == count - 1:
                        took, need = took + tables.last[p], need + costs.last_bytes
                    parts.append(took if need <= costs.memory[p] else float("inf"))
                    if i:
                        hop = tables.hop if goal == "sum" else tables.occupied
                        parts.append(hop[used[i - 1], p])
                best = min(best, sum(parts) if goal == "sum" else max(parts))
    return best


def value_of(
    costs: Costs, used: tuple[int, ...], cuts: tuple[int, ...], width: float, goal: Goal
) -> float:
    tables, work = costs.tables(width, alone=False), costs.work
    parts = []
    for i, p in enumerate(used):
        took = tables.fixed[p] + tables.layer[p] * (work[cuts[i + 1]] - work[cuts[i]])
        took += tables.first[p] if i == 0 else 0
        parts.append(took + (tables.last[p] if i == len(used) - 1 else 0))
        if i:
            parts.append((tables.hop if goal == "sum" else tables.occupied)[used[i - 1], p])
    return sum(parts) if goal == "sum" else max(parts)


@pytest.mark.parametrize("goal", ["sum", "slowest"])
@pytest.mark.parametrize("seed", range(12))
def test_the_recurrence_with_skips_equals_trying_everything(seed: int, goal: Goal) -> None:
    nodes, hops = office(4, seed, gib=2.5)
    costs = Costs.of(nodes, hops, model(layers=7))
    found = with_skips(costs, range(4), 2.0, goal, 512)
    best = exhaustive(costs, 2.0, goal, 512)
    if found is None:
        assert best == float("inf")
    else:
        assert value_of(costs, *found, 2.0, goal) == pytest.approx(best)


def test_a_node_behind_a_slow_link_is_skipped() -> None:
    nodes = [node("A"), node("FAR"), node("B")]
    hops = [
        k if "far" not in (k.source, k.target) else type(k)(k.source, k.target, 0.2, 1e5)
        for k in links(nodes)
    ]
    costs = Costs.of(nodes, hops, model(layers=40))
    used, _ = with_skips(costs, range(3), 1.0, "sum", 512) or ((), ())
    assert 1 not in used


def test_a_weak_node_gets_fewer_layers_under_load() -> None:
    nodes = [node("FAST", layer=0.001), node("WEAK", layer=0.003)]
    costs = Costs.of(nodes, links(nodes), model(layers=40))
    used, cuts = with_skips(costs, range(2), 4.0, "slowest", 512) or ((), ())
    assert used == (0, 1)
    assert cuts[1] == pytest.approx(30, abs=2)


def test_frames_on_their_way_are_as_many_as_stages_or_sequences() -> None:
    assert Load.of(8, 3) == Load(8, 3, 8 / 3)
    assert Load.of(2, 5) == Load(2, 2, 1.0)


def test_equal_nodes_get_equal_parts_even_for_a_lone_user() -> None:
    nodes = [node("A"), node("B"), node("C")]
    free = model(layers=30)
    costs = Costs.of(nodes, links(nodes), free)
    cuts = Orders(costs, np.array([[0, 1, 2]]), 1, 512).cuts()
    # the output head is worth two layers
    assert [b - a for a, b in itertools.pairwise(cuts)] in ([11, 10, 9], [10, 11, 9])


def test_memory_decides_where_speed_would_not() -> None:
    nodes = [node("SMALL", gib=2.5, layer=0.0001), node("LARGE", gib=64)]
    costs = Costs.of(nodes, links(nodes), model(layers=20))
    cuts = Orders(costs, np.array([[0, 1]]), 1, 512).cuts()
    held = cuts[1] * (GIB // 2 + 512 * 4096) + GIB // 4 + costs.model.overhead
    assert held <= 2.5 * GIB < held + GIB // 2
