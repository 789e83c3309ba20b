"""The partition is exact: never worse than any other, and it says no when nothing fits."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import NoCapacity
from fleetapp.hub.planner.equal import STAGE_OVERHEAD, ModelCost, NodeBudget, partition
from fleetapp.types import DeviceId

PLENTY = 64 * 2**30


def node(name: str, memory: int = PLENTY) -> NodeBudget:
    return NodeBudget(DeviceId(name), name, memory)


def model(
    layers: list[int], embedding: int = 0, head: int = 0, kv: int = 0, start: int = 0
) -> ModelCost:
    return ModelCost(tuple(layers), embedding, head, kv, start)


def slowest(cuts: tuple[int, ...], cost: ModelCost) -> float:
    sums = [
        sum(cost.layer_bytes[a:b]) + (b - a) * cost.layer_start for a, b in itertools.pairwise(cuts)
    ]
    sums[-1] += cost.head_bytes
    return max(sums)


def brute_force(nodes: list[NodeBudget], cost: ModelCost) -> float:
    layers, count, best = len(cost.layer_bytes), len(nodes), float("inf")
    for inner in itertools.combinations(range(1, layers), count - 1):
        cuts = (0, *inner, layers)
        for k, (a, b) in enumerate(itertools.pairwise(cuts)):
            held = sum(cost.layer_bytes[a:b]) + (b - a) * cost.kv_bytes_per_layer + STAGE_OVERHEAD
            held += cost.embedding_bytes * (k == 0) + cost.head_bytes * (k == count - 1)
            if held > nodes[k].memory:
                break
        else:
            best = min(best, slowest(cuts, cost))
    return best


@given(
    layers=st.lists(st.integers(1, 100), min_size=1, max_size=9),
    memories=st.lists(st.integers(0, 400), min_size=1, max_size=4),
    embedding=st.integers(0, 50),
    head=st.integers(0, 150),
    kv=st.integers(0, 20),
    start=st.integers(0, 60),
)
def test_no_partition_is_better(
    layers: list[int], memories: list[int], embedding: int, head: int, kv: int, start: int
) -> None:
    cost = model(layers, embedding, head, kv, start)
    nodes = [node(f"n{i}", STAGE_OVERHEAD + m) for i, m in enumerate(memories)]
    best = brute_force(nodes, cost) if len(nodes) <= len(layers) else float("inf")
    if best == float("inf"):
        with pytest.raises(NoCapacity):
            partition(nodes, cost)
        return
    plan = partition(nodes, cost)
    cuts = (0, *(s.layers.stop for s in plan.stages))
    assert [s.device_id for s in plan.stages] == [n.device_id for n in nodes]
    assert all(len(s.layers) >= 1 for s in plan.stages)
    assert cuts[-1] == len(layers)
    assert slowest(cuts, cost) == best


def test_the_last_stage_gets_fewer_layers_because_it_has_the_head() -> None:
    plan = partition([node("a"), node("b")], model([10] * 10, head=40))
    assert [len(s.layers) for s in plan.stages] == [7, 3]


def test_small_layers_count_for_more_than_their_bytes() -> None:
    # The sample model: four bits a weight in its layers, a large vocabulary at eight bits.
    layers, head = [2_050_000] * 30, 30_000_000
    plan = partition([node("a"), node("b")], ModelCost(tuple(layers), 0, head, 0))
    assert [len(s.layers) for s in plan.stages] == [18, 12]
    plan = partition([node("a"), node("b")], model(layers, head=head))
    assert [len(s.layers) for s in plan.stages] == [22, 8]


def test_a_small_pc_gets_less() -> None:
    small = STAGE_OVERHEAD + 25
    plan = partition([node("a"), node("b", small)], model([10] * 10))
    assert [len(s.layers) for s in plan.stages] == [8, 2]


def test_says_who_has_no_room() -> None:
    with pytest.raises(NoCapacity, match="ANNA-PC"):
        partition([node("ANNA-PC", 1000)], model([10]))


def test_more_stages_than_layers_is_refused_with_the_number() -> None:
    with pytest.raises(NoCapacity, match="only 2 layers"):
        partition([node("a"), node("b"), node("c")], model([1, 1]))
