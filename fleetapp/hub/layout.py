"""Who should hold what of one model, and how a chain that lost a PC is mended. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from fleetapp.hub.planner.inputs import STAGE_OVERHEAD
from fleetapp.hub.stage import Candidate, Deal, Stage, StagePlan
from fleetapp.types import DeviceId, LayerRange


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


def as_planned(running: Sequence[Sequence[Stage]], layout: Layout) -> bool:
    """Whether these chains are those of the layout, in any order."""
    return len(running) == len(layout.chains) and all(
        any(same(stages, deals) for deals in layout.chains) for stages in running
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
    room = {n.device_id: n.memory_free for n in nodes}
    there = [_holder(deal, sound, spares, by_id) for deal in deals]
    used = {n.device_id for n in there if n is not None}
    mended: list[Deal] = []
    for deal, holder in zip(deals, there, strict=True):
        if holder is not None:
            mended.append(_moved(deal, holder))
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


def _holder(
    deal: Deal,
    sound: Collection[Stage],
    spares: Collection[Stage],
    by_id: Mapping[DeviceId, Candidate],
) -> Candidate | None:
    """Who has that stage loaded already, in the chain or outside of it."""
    for stage in (*sound, *spares):
        node = by_id.get(stage.candidate.device_id)
        if (
            node is not None
            and stage.sound
            and stage.can_be(deal.plan.layers, deal.index, deal.count)
            and node.session == stage.candidate.session
        ):
            return node
    return None


def _moved(deal: Deal, node: Candidate) -> Deal:
    device = deal.plan.device if deal.plan.device in node.devices else node.devices[0]
    plan = structs.replace(deal.plan, device_id=node.device_id, name=node.name, device=device)
    return replace(deal, plan=plan, candidate=node)


def copies(
    chains: Sequence[Sequence[Stage]], held: Collection[Stage], nodes: Sequence[Candidate]
) -> tuple[Deal, ...]:
    """One copy of each running stage, on PCs that have no part in any chain.

    Args:
        chains: what runs, whether or not a plan would have it so.
        held: copies that are loaded or being loaded; those that still fit are wished for again.
        nodes: that may be used, draining ones left out.
    """
    busy = {s.candidate.device_id for stages in chains for s in stages}
    spare = [n for n in nodes if n.device_id not in busy]
    sessions = {n.device_id: n.session for n in spare}
    room = {n.device_id: n.memory_free for n in spare}
    there = [s for s in held if sessions.get(s.candidate.device_id) == s.candidate.session]
    wished: dict[tuple[LayerRange, int, int], Deal] = {}
    for stage in (s for stages in chains for s in stages):
        what = (stage.plan.layers, stage.index, stage.count)
        if what in wished:
            continue
        kept = next((s for s in there if s.can_be(*what)), None)
        if kept is not None:
            wished[what] = Deal(kept.plan, kept.candidate, stage.index, stage.count)
            continue
        bytes_ = need(stage.plan)
        fitting = [n for n in spare if room[n.device_id] >= bytes_]
        if fitting:
            best = max(fitting, key=lambda n: (room[n.device_id], n.device_id))
            room[best.device_id] -= bytes_
            deal = Deal(stage.plan, best, stage.index, stage.count)
            wished[what] = _moved(deal, best)
    return tuple(wished.values())


def unneeded(
    extra: Iterable[Stage], missing: Collection[Deal], copies_: Collection[Stage]
) -> list[Stage]:
    """Which stages in no chain can be let go.

    Such as a PC holds that had copies of several and serves one of them now: the others are the
    only ones until they are loaded elsewhere, and another PC may be lost meanwhile.

    Args:
        extra: in no chain and not wished for where they are.
        missing: copies that are wished for and that nobody has begun to load.
        copies_: those that are where they are wished for, loaded or being loaded.
    """
    awaited = {(d.plan.layers, d.index, d.count) for d in missing}
    awaited |= {(s.plan.layers, s.index, s.count) for s in copies_ if not s.sound}
    needless = []
    for stage in extra:
        what = (stage.plan.layers, stage.index, stage.count)
        if stage.sound and what in awaited:
            awaited.remove(what)
        else:
            needless.append(stage)
    return needless


def kept_division(
    spares: Collection[Stage], layers: int, *, whole: bool
) -> tuple[Deal, ...] | None:
    """The division of which members have kept stages loaded, as after the hub was away; None if
    there is none. What is missing of it is for ``patch`` to fill.

    Args:
        spares: loaded stages of one model.
        layers: that it has.
        whole: nothing may be missing; else single stages between others may, such as that of a
            coordinator whose runner ended with it.
    """
    for count in sorted({s.count for s in spares}):
        held: list[list[Stage]] = [
            [s for s in spares if s.sound and (s.count, s.index) == (count, index)]
            for index in range(count)
        ]
        missing = [i for i, stages in enumerate(held) if not stages]
        if (whole and missing) or len(missing) == count or _neighbours(missing):
            continue
        found = _joined(held, layers, ())
        if found is not None:
            return found
    return None


def _joined(
    held: Sequence[Sequence[Stage]], layers: int, found: tuple[Deal, ...]
) -> tuple[Deal, ...] | None:
    """Go on from ``found`` to the end of the model. Members may hold stages of two divisions, as
    when the hub was lost while it changed from one to the other; one of each index fits.
    """
    index, count = len(found), len(held)
    start = found[-1].plan.layers.stop if found else 0
    if index == count:
        return found if start == layers else None
    if held[index]:
        fitting = [s for s in held[index] if s.plan.layers.start == start]
        deals = [Deal(s.plan, s.candidate, index, count) for s in fitting]
    else:
        after = held[index + 1] if index + 1 < count else ()
        stops = sorted({s.plan.layers.start for s in after} if after else {layers})
        deals = [_missing(held, LayerRange(start, stop), index) for stop in stops if stop > start]
    for deal in deals:
        division = _joined(held, layers, (*found, deal))
        if division is not None:
            return division
    return None


def _missing(held: Sequence[Sequence[Stage]], span: LayerRange, index: int) -> Deal:
    """A stage that nobody holds; its size by what one of the others takes for a layer."""
    some = next(s for stages in held for s in stages)
    each = some.plan.weight_bytes // max(1, some.plan.layers.stop - some.plan.layers.start)
    size = each * (span.stop - span.start)
    part = structs.replace(some.plan, layers=span, weight_bytes=size, memory=0)
    return Deal(part, some.candidate, index, len(held))


def _neighbours(indices: Sequence[int]) -> bool:
    return any(b == a + 1 for a, b in itertools.pairwise(indices))


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
