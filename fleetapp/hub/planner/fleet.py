"""The plan of a fleet: which nodes serve which models together, and what comes of it.

``plan_fleet`` is the one function to call. It is pure, takes up to about a second, and so belongs
in a thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from fleetapp.hub.planner import explain, partition, predict
from fleetapp.hub.planner.chain import ENUMERATED, Chains
from fleetapp.hub.planner.costs import Costs
from fleetapp.hub.planner.inputs import Link, Node, Wish
from fleetapp.hub.planner.partition import Chosen
from fleetapp.hub.planner.plan import (
    Alternative,
    FleetPlan,
    ModelPlan,
    NodeMemory,
    PlannedChain,
    PlannedStage,
    Standby,
)
from fleetapp.hub.planner.predict import Cut
from fleetapp.types import LayerRange

_MODELS_TRIED: Final = 3
"""Models whose shares of few places are all tried out."""


@dataclass(frozen=True)
class _Task:
    """One model on all places."""

    wish: Wish
    chains: Chains

    @classmethod
    def of(cls, nodes: Sequence[Node], links: Sequence[Link], wish: Wish) -> _Task:
        costs = Costs.of(nodes, links, wish.model)
        return cls(wish, Chains(costs, wish.demand.context))

    @property
    def users(self) -> int:
        """Whoever asks for stages wants their work divided, also for a single user."""
        demand = self.wish.demand
        return max(1, demand.users, demand.stages)

    def choose(self, places: Sequence[int]) -> tuple[Chosen, bool]:
        """The best on these places, and whether that is certain."""
        if not places:
            return (), True
        demand = self.wish.demand
        if demand.stages:
            chosen = partition.one_chain(self.chains, places, self.users, demand.stages)
            return chosen, not self.chains.bounded
        return partition.choose_among(self.chains, list(places), self.users)

    def choose_by_set(self) -> list[Chosen]:
        """The best on every set of places; for few of them."""
        if not self.wish.demand.stages:
            return partition.choose_by_set(self.chains, self.users)
        size = len(self.chains.costs.places)
        return [
            self.choose([p for p in range(size) if mask >> p & 1])[0] for mask in range(1 << size)
        ]


@dataclass(frozen=True)
class _Share:
    """What one model gets."""

    chosen: Chosen
    certain: bool
    shared: bool = False
    """Its places also hold another model."""


def plan_fleet(nodes: Sequence[Node], links: Sequence[Link], wishes: Sequence[Wish]) -> FleetPlan:
    """Plan everything that is wanted, on the nodes that there are.

    Nodes, links and wishes may come in any order; that of the wishes is their rank where not all
    can be served. Never raises for want of memory: such a model has no chains, and sentences.
    """
    tasks = [_Task.of(nodes, links, wish) for wish in wishes]
    places = len(tasks[0].chains.costs.places) if tasks else 0
    shares = _divide(tasks, places)
    used = _used(tasks, shares, nodes)
    for i, task in enumerate(tasks):
        if shares[i].chosen or len(tasks) == 1:
            continue
        # Nobody has to itself what this model needs: on what memory the others leave.
        less = _less(nodes, used)
        again = _Task.of(less, links, task.wish)
        chosen, certain = again.choose(range(places))
        if chosen:
            tasks[i], shares[i] = again, _Share(chosen, certain, shared=True)
            used = _used(tasks, shares, nodes)
    models = tuple(
        _model_plan(task, share, nodes, used, len(tasks) == 1)
        for task, share in zip(tasks, shares, strict=True)
    )
    sizes: dict[int, int] = {}
    for (n, _), size in used.items():
        sizes[n] = sizes.get(n, 0) + size
    memory = tuple(
        NodeMemory(nodes[n].device_id, nodes[n].name, size) for n, size in sorted(sizes.items())
    )
    unused = tuple(node.name for n, node in enumerate(nodes) if n not in sizes)
    return FleetPlan(models, memory, unused)


# ---------------------------------------------------------------------- several models


def _divide(tasks: Sequence[_Task], places: int) -> list[_Share]:
    if not places:
        return [_Share((), certain=True) for _ in tasks]
    if len(tasks) == 1:
        return [_Share(*tasks[0].choose(range(places)))]
    if places <= ENUMERATED and len(tasks) <= _MODELS_TRIED:
        return _divide_exactly(tasks, places)
    groups = _ration(tasks, places)
    return [
        _Share(task.choose(group)[0], certain=False)
        for task, group in zip(tasks, groups, strict=True)
    ]


def _divide_exactly(tasks: Sequence[_Task], places: int) -> list[_Share]:
    """Every way to give each model its own places: most models served, then the worst-off one."""
    options = [task.choose_by_set() for task in tasks]
    whole = [partition.score(option[-1]) or 1.0 for option in options]
    best: tuple[tuple[float, ...], tuple[int, ...]] = ((-1.0,), ())
    for owners in itertools.product(range(len(tasks)), repeat=places):
        masks = tuple(
            sum(1 << p for p, owner in enumerate(owners) if owner == i) for i in range(len(tasks))
        )
        parts = [partition.score(options[i][mask]) / whole[i] for i, mask in enumerate(masks)]
        served = [p for p in parts if p]
        key = (float(len(served)), min(served, default=0.0), sum(served))
        if key > best[0]:
            best = key, masks
    return [_Share(options[i][mask], certain=True) for i, mask in enumerate(best[1])]


def _ration(tasks: Sequence[_Task], places: int) -> list[list[int]]:
    """Model after model the fewest places that hold it, then the others to whoever has least."""
    free = set(range(places))
    groups: list[list[int]] = [[] for _ in tasks]
    for i in sorted(range(len(tasks)), key=lambda i: -sum(tasks[i].wish.model.layer_bytes)):
        groups[i] = _fewest(tasks[i], free)
        free -= set(groups[i])
    speed = [1 / task.chains.costs.tables(1.0, alone=True).layer for task in tasks]
    for place in sorted(free):
        open_ = [i for i, group in enumerate(groups) if group]
        if not open_:
            break
        poorest = min(
            open_, key=lambda i: speed[i][groups[i]].sum() / speed[i].sum() / tasks[i].users
        )
        groups[poorest].append(place)
    return [sorted(group) for group in groups]


def _fewest(task: _Task, free: Iterable[int]) -> list[int]:
    costs, wanted = task.chains.costs, task.wish.demand.stages
    heads = [p for p in free if costs.places[p].can_head]
    if not heads:
        return []
    head = max(heads, key=lambda p: (costs.places[p].coordinator, costs.memory[p]))
    others = sorted((p for p in free if p != head), key=lambda p: -costs.memory[p])
    for size in range(max(0, wanted - 1), len(others) + 1):
        order = (head, *others[:size])
        if task.chains.about(order, 1):
            return list(order)
    return []


def _used(
    tasks: Sequence[_Task], shares: Sequence[_Share], nodes: Sequence[Node]
) -> dict[tuple[int, int], int]:
    """Bytes by node and device, as indexes."""
    used: dict[tuple[int, int], int] = {}
    for task, share in zip(tasks, shares, strict=True):
        for dealt in share.chosen:
            for stage, place in zip(_stages(task, dealt, nodes), dealt.found.order, strict=True):
                at = task.chains.costs.places[place]
                key = at.node, at.device
                used[key] = used.get(key, 0) + stage.memory
    return used


def _less(nodes: Sequence[Node], used: dict[tuple[int, int], int]) -> list[Node]:
    return [
        structs.replace(
            node,
            devices=tuple(
                structs.replace(device, memory=device.memory - used.get((n, d), 0))
                for d, device in enumerate(node.devices)
            ),
        )
        for n, node in enumerate(nodes)
    ]


# ---------------------------------------------------------------------- one model


def _cut(task: _Task, dealt: partition.Dealt) -> Cut:
    order, running = dealt.found.order, dealt.found.running
    return Cut(order, task.chains.cuts(order, running))


def _stages(task: _Task, dealt: partition.Dealt, nodes: Sequence[Node]) -> tuple[PlannedStage, ...]:
    costs, demand, chain = task.chains.costs, task.wish.demand, _cut(task, dealt)
    running = dealt.found.running
    width = running / min(running, chain.stages)
    weights = predict.weights(costs, chain)
    caches = predict.caches(costs, chain, running * demand.context)
    seconds = predict.stage_seconds(costs, chain, width)
    return tuple(
        PlannedStage(
            device_id=nodes[costs.places[place].node].device_id,
            name=nodes[costs.places[place].node].name,
            device=costs.places[place].kind,
            layers=LayerRange(chain.cuts[i], chain.cuts[i + 1]),
            weight_bytes=weights[i],
            cache_bytes=caches[i],
            memory=weights[i] + caches[i] + costs.model.overhead,
            seconds=seconds[i],
        )
        for i, place in enumerate(chain.order)
    )


def _chain_plan(task: _Task, dealt: partition.Dealt, nodes: Sequence[Node]) -> PlannedChain:
    costs, demand, chain = task.chains.costs, task.wish.demand, _cut(task, dealt)
    return PlannedChain(
        model_id=task.wish.model.model_id,
        stages=_stages(task, dealt, nodes),
        users=dealt.users,
        running=dealt.found.running,
        tokens_per_second=predict.rate(costs, chain, dealt.found.running),
        one_user=predict.rate(costs, chain, 1),
        first_token=predict.first_token(costs, chain, demand.prompt),
    )


def _everybody(chosen: Chosen, users: int) -> list[int]:
    """Users of each chain; those that make nothing faster wait where most are answered."""
    out = [dealt.users for dealt in chosen]
    for _ in range(users - sum(out) if out else 0):
        out[max(range(len(out)), key=lambda i: chosen[i].found.rate / out[i])] += 1
    return out


def _model_plan(
    task: _Task,
    share: _Share,
    nodes: Sequence[Node],
    used: dict[tuple[int, int], int],
    alone: bool,
) -> ModelPlan:
    users = _everybody(share.chosen, task.users)
    chains = tuple(
        structs.replace(_chain_plan(task, dealt, nodes), users=number)
        for dealt, number in zip(share.chosen, users, strict=True)
    )
    others = _alternatives(task) if alone and not task.wish.demand.stages else ()
    plan = ModelPlan(
        model_id=task.wish.model.model_id,
        users=task.wish.demand.users,
        chains=chains,
        standbys=_standbys(chains, nodes, used),
        tokens_per_second=sum(c.tokens_per_second for c in chains),
        one_user=max((c.one_user for c in chains), default=0.0),
        first_token=min((c.first_token for c in chains), default=0.0),
        alternatives=others,
        exact=share.certain,
        sentences=(),
    )
    sentences = explain.sentences(plan, task.chains.costs, task.wish, shared=share.shared)
    return structs.replace(plan, sentences=sentences)


def _alternatives(task: _Task) -> tuple[Alternative, ...]:
    """One PC, replicas and one split, where the model fits that way."""
    costs, out = task.chains.costs, []
    ways = (
        ("one PC", partition.one_place),
        ("replicas", partition.replicas),
        ("split", partition.split),
    )
    for way, find in ways:
        chosen = find(task.chains, task.users)
        if not chosen:
            continue
        cuts = [_cut(task, dealt) for dealt in chosen]
        out.append(
            Alternative(
                way=way,
                tokens_per_second=sum(
                    predict.rate(costs, cut, dealt.found.running)
                    for cut, dealt in zip(cuts, chosen, strict=True)
                ),
                one_user=max(predict.rate(costs, cut, 1) for cut in cuts),
                nodes=tuple(name for cut in cuts for name in predict.names(costs, cut.order)),
            )
        )
    return tuple(out)


def _standbys(
    chains: Sequence[PlannedChain],
    nodes: Sequence[Node],
    used: dict[tuple[int, int], int],
) -> tuple[Standby, ...]:
    """Nodes without layers, the steadiest first, hold copies of the stages most likely lost."""
    if not chains:
        return ()
    steady = {node.device_id: node.stability for node in nodes}
    stages = [(c, s) for c, chain in enumerate(chains) for s in range(len(chain.stages))]
    stages.sort(key=lambda at: steady[chains[at[0]].stages[at[1]].device_id])
    busy = {n for n, _ in used}
    spare = [(n, node) for n, node in enumerate(nodes) if n not in busy and node.devices]
    spare.sort(key=lambda pair: (-pair[1].stability, pair[1].name))
    held: dict[int, list[tuple[int, int]]] = {}
    room = {n: max(d.memory for d in node.devices) for n, node in spare}
    for c, s in stages:
        stage = chains[c].stages[s]
        for n, _ in spare:
            if s == 0 and not nodes[n].can_head:
                continue
            if stage.memory <= room[n]:
                room[n] -= stage.memory
                held.setdefault(n, []).append((c, s))
                break
    return tuple(
        Standby(node.device_id, node.name, tuple(sorted(held[n]))) for n, node in spare if n in held
    )
