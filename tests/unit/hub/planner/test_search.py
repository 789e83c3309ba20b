"""Orders and teams: the quicker searches against trying everything."""

from __future__ import annotations

import pytest

from fleetapp.hub.planner import partition, tour
from fleetapp.hub.planner.chain import Chains
from fleetapp.hub.planner.costs import Costs
from tests.support.fleets import model, office

CONTEXT = 512


def chains(count: int, seed: int, gib: float, layers: int = 24) -> Chains:
    nodes, hops = office(count, seed, gib)
    return Chains(Costs.of(nodes, hops, model(layers)), CONTEXT)


@pytest.mark.parametrize("running", [1, 3, 8])
@pytest.mark.parametrize("seed", range(6))
def test_the_program_over_subsets_finds_the_best_order(seed: int, running: int) -> None:
    some = chains(5, seed, gib=6.0)
    every = [f.rate for mask, f in enumerate(some.by_set(running)) if mask.bit_count() > 1]
    order = tour.best_order(some.costs, running, CONTEXT, range(2, 6))
    found = 0.0 if order is None else some.rate(order, running)
    assert found == pytest.approx(max(every), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_glance_is_nearly_the_exact_rate(seed: int) -> None:
    some = chains(5, seed, gib=8.0)
    for order in ((0,), (1, 2), (0, 3, 4), (4, 3, 2, 1, 0)):
        for running in (1, 4, 16):
            exact = some.rate(order, running)
            assert some.about(order, running) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(
    ("count", "users", "gib"), [(8, 1, 5.0), (9, 6, 12.0), (9, 6, 40.0), (11, 20, 9.0)]
)
def test_the_local_search_is_never_worse_than_a_simple_way(
    count: int, users: int, gib: float
) -> None:
    some = chains(count, seed=count, gib=gib)
    found, certain = partition.choose(some, users)
    assert not certain
    for simple in (partition.one_place, partition.replicas, partition.split):
        assert partition.score(found) >= partition.score(simple(some, users)) * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_local_search_is_close_to_the_exact_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, certain = partition.choose(chains(5, seed, gib=7.0), 4)
    assert certain
    monkeypatch.setattr(partition, "ENUMERATED", 3)
    found, certain = partition.choose(chains(5, seed, gib=7.0), 4)
    assert not certain
    assert partition.total(found) >= 0.93 * partition.total(exact)


def test_no_place_is_used_twice_and_no_user_served_twice() -> None:
    found, _ = partition.choose(chains(10, 3, gib=30.0), 12)
    places = [p for d in found for p in d.found.order]
    assert len(places) == len(set(places))
    assert sum(d.users for d in found) <= 12


def test_few_places_and_many_users_are_dealt_in_lots() -> None:
    assert partition.counts(3) == [0, 1, 2, 3]
    assert partition.counts(20) == [0, 3, 6, 9, 12, 15, 18, 20]
