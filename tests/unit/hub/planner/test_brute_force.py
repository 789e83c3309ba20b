"""What the planner finds equals the best of all plans there are, on random small fleets."""

from __future__ import annotations

import pytest
from msgspec import structs

from fleetapp.bench.exhaustive import Brute, random_fleet
from fleetapp.hub.planner.fleet import plan_fleet

EVERY_TIME, IN_ALL = 60, 500


def compare(seed: int) -> None:
    """One fleet."""
    nodes, links, wish = random_fleet(seed)
    plan = plan_fleet(nodes, links, [wish]).models[0]
    assert plan.exact
    assert plan.tokens_per_second == pytest.approx(Brute(nodes, links, wish).best(), rel=1e-5)


@pytest.mark.parametrize("seed", range(EVERY_TIME))
def test_the_plan_is_the_best_there_is(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(EVERY_TIME, IN_ALL))
def test_the_plan_is_the_best_there_is_in_many_fleets(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize("seed", range(40))
def test_a_wish_for_stages_gets_the_best_chain_of_so_many(seed: int) -> None:
    nodes, links, wish = random_fleet(1000 + seed)
    stages = 1 + seed % 3
    wish = structs.replace(wish, demand=structs.replace(wish.demand, stages=stages))
    users = max(wish.demand.users, stages)
    plan = plan_fleet(nodes, links, [wish]).models[0]
    best = Brute(nodes, links, wish).best_of_stages(stages, users)
    assert plan.tokens_per_second == pytest.approx(best, rel=1e-5)
    assert [len(c.stages) for c in plan.chains] == ([stages] if best else [])
