"""Who should hold what of one model, and how a chain that lost a PC is mended. Pure but for the
last function, which asks the hub what a model weighs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from fleetapp.errors import NoCapacity
from fleetapp.hub.drafts import AUTO, Drafting
from fleetapp.hub.planner.equal import (
    STAGE_OVERHEAD,
    ModelCost,
    NodeBudget,
    StagePlan,
    partition,
)
from fleetapp.hub.stage import Candidate, Deal, Stage, Surroundings
from fleetapp.hub.state import Wanted
from fleetapp.types import DeviceId

Need = Callable[[StagePlan], int]
"""Bytes of memory that a stage takes."""


@dataclass(frozen=True)
class Layout:
    """Of one model over the fleet."""

    chains: tuple[tuple[Deal, ...], ...]
    standbys: tuple[Deal, ...] = ()
    """Copies of stages on PCs that have no part in a chain, to be there when one leaves."""
    sentences: tuple[str, ...] = ()


def same(stages: Sequence[Stage], deals: Sequence[Deal]) -> bool:
    """Whether these stages are that division."""
    return len(stages) == len(deals) and all(
        s.candidate.device_id == d.candidate.device_id and s.can_be(d.plan.layers, d.index, d.count)
        for s, d in zip(stages, deals, strict=True)
    )


def patch(
    deals: Sequence[Deal],
    sound: Collection[Stage],
    spares: Collection[Stage],
    nodes: Sequence[Candidate],
    taken: Collection[DeviceId],
    need: Need,
) -> tuple[Deal, ...] | None:
    """Fill the holes of a division and leave the rest as it is, for that is quickest.

    A stage that is loaded somewhere already comes first, then a PC with nothing to do, then one of
    the same chain, which holds two stages until there is time for a better division.

    Args:
        deals: the division that broke.
        sound: its stages that still are.
        spares: loaded stages of the same model that nobody uses.
        nodes: that may be used, draining ones left out.
        taken: devices that other chains use.
        need: bytes that a stage takes.

    Returns:
        None if a hole cannot be filled.
    """
    by_id = {n.device_id: n for n in nodes}
    mended: list[Deal] = []
    used = {s.candidate.device_id for s in sound if s.candidate.device_id in by_id}
    room = {n.device_id: n.memory_free for n in nodes}
    for deal in deals:
        place = (deal.plan.layers, deal.index, deal.count)
        kept = next((s for s in sound if s.can_be(*place)), None)
        if kept is not None and kept.candidate.device_id in by_id:
            mended.append(_moved(deal, by_id[kept.candidate.device_id]))
            continue
        ready = next(
            (
                s
                for s in spares
                if s.can_be(*place)
                and s.sound
                and s.candidate.device_id in by_id
                and by_id[s.candidate.device_id].session == s.candidate.session
            ),
            None,
        )
        if ready is not None:
            mended.append(_moved(deal, by_id[ready.candidate.device_id]))
            used.add(ready.candidate.device_id)
            continue
        fitting = [
            n
            for n in nodes
            if room[n.device_id] >= need(deal.plan)
            and (n.device_id in used or n.device_id not in taken)
        ]
        if not fitting:
            return None
        best = min(fitting, key=lambda n: (n.device_id in used, -room[n.device_id], n.device_id))
        mended.append(_moved(deal, best))
        used.add(best.device_id)
        room[best.device_id] -= need(deal.plan)
    return tuple(mended)


def _moved(deal: Deal, node: Candidate) -> Deal:
    plan = structs.replace(deal.plan, device_id=node.device_id, name=node.name)
    return replace(deal, plan=plan, candidate=node)


def standbys(
    chains: Iterable[Sequence[Deal]], spare: Iterable[Candidate], need: Need
) -> tuple[Deal, ...]:
    """Copies for the PCs that have no part in a chain: each takes what has the fewest copies, in
    ring order, as long as its memory lasts.
    """
    deals = [d for chain in chains for d in chain]
    copies = dict.fromkeys(deals, 0)
    found: list[Deal] = []
    for node in spare:
        room = node.memory_free
        for deal in sorted(deals, key=lambda d: (copies[d], d.index)):
            if need(deal.plan) <= room:
                room -= need(deal.plan)
                copies[deal] += 1
                found.append(_moved(deal, node))
    return tuple(found)


def match(running: Sequence[Sequence[Stage]], wished: Sequence[Sequence[Deal]]) -> dict[int, int]:
    """Which running chain becomes which of the wished ones: those that share most PCs, and of
    those the ones with the same head. Indices of ``running`` to indices of ``wished``.
    """
    pairs: list[tuple[int, bool, int, int]] = []
    for i, stages in enumerate(running):
        held = {s.candidate.device_id for s in stages}
        for j, deals in enumerate(wished):
            asked = {d.candidate.device_id for d in deals}
            head = bool(stages) and stages[0].candidate.device_id == deals[0].candidate.device_id
            pairs.append((len(held & asked), head, -i, -j))
    found: dict[int, int] = {}
    for _, _, i, j in sorted(pairs, reverse=True):
        if -i not in found and -j not in found.values():
            found[-i] = -j
    return found


async def lay_out(
    hub: Surroundings, wanted: Wanted, nodes: Sequence[Candidate]
) -> tuple[Layout, Drafting, Need]:
    """Decide for a model and these nodes.

    Raises:
        NoCapacity: it cannot be held.
    """
    if not nodes:
        raise NoCapacity("No PC contributes.", remedy="Switch contributing on at one PC or more.")
    ranked = sorted(nodes, key=lambda n: (not n.coordinator, n.name, n.device_id))
    cost = await hub.cost(wanted.model_id)
    drafting, size = await hub.drafting(wanted)
    if drafting.model and wanted.draft == AUTO and 2 * size > ranked[0].memory_free:
        drafting, size = Drafting(lookup=True), 0
    chosen = ranked[: wanted.stages or len(ranked)][: len(cost.layer_bytes)]
    plan = partition(
        [
            NodeBudget(n.device_id, n.name, n.memory_free - (0 if i else size))
            for i, n in enumerate(chosen)
        ],
        cost,
    )
    deals = tuple(
        Deal(stage, node, i, len(chosen))
        for i, (stage, node) in enumerate(zip(plan.stages, chosen, strict=True))
    )
    need = needs(cost, size)
    sentences = plan.sentences + ((str(drafting),) if drafting.lookup else ())
    copies = standbys([deals], [n for n in ranked if n not in chosen], need)
    return Layout((deals,), copies, sentences), drafting, need


def needs(cost: ModelCost, draft: int) -> Need:
    """What a stage of this model takes, the draft model of a head included."""

    def need(plan: StagePlan) -> int:
        layers = plan.layers.stop - plan.layers.start
        held = plan.weight_bytes + layers * cost.kv_bytes_per_layer + STAGE_OVERHEAD
        return held + (draft if plan.layers.start == 0 else 0)

    return need
