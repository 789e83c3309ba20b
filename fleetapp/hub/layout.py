"""Who should hold what of one model, and how a chain that lost a PC is mended. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from fleetapp.hub.planner.inputs import STAGE_OVERHEAD
from fleetapp.hub.stage import Candidate, Deal, Stage, StagePlan
from fleetapp.types import DeviceId


def need(plan: StagePlan) -> int:
    """Bytes of memory that a stage takes."""
    return plan.memory or plan.weight_bytes + STAGE_OVERHEAD


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
