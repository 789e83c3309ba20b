"""Whether a new plan is worth the interruption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from fleetapp.hub.planner import predict
from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.inputs import Link, Node, Wish
from fleetapp.hub.planner.plan import FleetPlan, ModelPlan, PlannedChain
from fleetapp.hub.planner.predict import Cut

IDLE_GAIN: Final = 1.15
BUSY_GAIN: Final = 1.5
"""By how much a plan must be faster before layers are dealt again, while nobody waits and while
somebody does: shards travel, runners load, and running answers are computed again."""


def repredict(
    chain: PlannedChain, nodes: Sequence[Node], links: Sequence[Link], wish: Wish
) -> float:
    """Tokens per second of a running chain by what is known now; 0 if a node is gone.

    Memory is no question: it has what it holds.
    """
    costs = Costs.of(nodes, links, wish.model)
    ids = [(nodes[p.node].device_id, p.kind) for p in costs.places]
    if any((s.device_id, s.device) not in ids for s in chain.stages):
        return 0.0
    order = tuple(ids.index((s.device_id, s.device)) for s in chain.stages)
    cuts = (0, *(s.layers.stop for s in chain.stages))
    cut = Cut(order, cuts)
    return predict.rate(costs, cut, chain.running)


def refreshed(
    plan: FleetPlan, nodes: Sequence[Node], links: Sequence[Link], wishes: Sequence[Wish]
) -> FleetPlan:
    """A plan that is running, with its rates as they would be predicted now."""
    by_model = {w.model.model_id: w for w in wishes}
    models = []
    for model in plan.models:
        wish = by_model.get(model.model_id)
        if wish is None:
            continue
        rates = [repredict(chain, nodes, links, wish) for chain in model.chains]
        chains = tuple(
            structs.replace(chain, tokens_per_second=rate)
            for chain, rate in zip(model.chains, rates, strict=True)
        )
        total = sum(rates)
        models.append(structs.replace(model, chains=chains, tokens_per_second=total))
    return FleetPlan(tuple(models), plan.memory, plan.unused)


def worth_changing(current: FleetPlan | None, new: FleetPlan, running: int) -> bool:
    """Whether to deal layers again.

    Args:
        current: what is running, with rates by the same knowledge as ``new``'s (``refreshed``);
            None if nothing is.
        new: what would be.
        running: answers under way.
    """
    if current is None:
        return True
    before = {m.model_id: m for m in current.models}
    after = {m.model_id: m for m in new.models}
    if set(before) != set(after):
        return True
    if all(_layouts(before[name]) == _layouts(after[name]) for name in after):
        return False
    served = [n for n in after if before[n].tokens_per_second > 0]
    if any(after[n].tokens_per_second > 0 for n in after if n not in served):
        return True
    if any(chain.tokens_per_second <= 0 for n in served for chain in before[n].chains):
        return any(after[n].tokens_per_second > 0 for n in served)
    gain = BUSY_GAIN if running else IDLE_GAIN
    gains = [after[n].tokens_per_second / before[n].tokens_per_second for n in served]
    return bool(gains) and max(gains) >= gain and min(gains) >= 1 / IDLE_GAIN


def _layouts(model: ModelPlan) -> set[tuple[tuple[str, str, int, int], ...]]:
    return {chain.layout for chain in model.chains}
