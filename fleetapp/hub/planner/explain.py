"""Sentences for people: what a plan does, why, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from fleetapp.hub.planner.costs import READ_SPEED, Costs
from fleetapp.hub.planner.inputs import Wish
from fleetapp.hub.planner.plan import Alternative, ModelPlan, PlannedChain

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NAMED = 5


def size(n: float) -> str:
    """Bytes in words."""
    return f"{n / 2**30:.1f} GiB" if n >= 2**30 else f"{n / 2**20:.0f} MiB"


def number(n: int) -> str:
    """Small numbers as words."""
    return _NUMBERS[n] if n < len(_NUMBERS) else str(n)


def rate(tokens_per_second: float) -> str:
    """With as many digits as mean something."""
    return f"{tokens_per_second:.1f}" if tokens_per_second < 20 else f"{tokens_per_second:.0f}"


def together(words: Sequence[str]) -> str:
    """A, B and C."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _some(words: Sequence[str]) -> str:
    """The first few by name."""
    if len(words) <= _NAMED + 1:
        return together(words)
    return f"{', '.join(words[:_NAMED])} and {len(words) - _NAMED} others"


def sentences(plan: ModelPlan, costs: Costs, wish: Wish, *, shared: bool) -> tuple[str, ...]:
    """All that should be said of one model's plan."""
    if not plan.chains:
        return _unserved(costs, wish)
    out = [_choice(plan, costs, wish)]
    out += [_layers(chain) for chain in plan.chains if len(chain.stages) > 1]
    out += _idle(plan, costs)
    out.append(_prediction(plan))
    out += _waiting(plan)
    out += _reserves(plan)
    if shared:
        out.append("Its PCs also hold another model; both slow down while both answer.")
    out += _assumptions(plan, costs)
    if not plan.exact:
        out.append(
            "With so many devices the search was bounded: a better plan may exist, but none of "
            "one PC, replicas or a single split is."
        )
    return tuple(out)


def _need(wish: Wish) -> float:
    model = wish.model
    cache = wish.demand.context * model.kv_bytes * model.layers
    return (
        sum(model.layer_bytes) + model.embedding_bytes + model.head_bytes + cache + model.overhead
    )


def _unserved(costs: Costs, wish: Wish) -> tuple[str, ...]:
    model, stages = wish.model, wish.demand.stages
    if not costs.places:
        return ("No node contributes.",)
    if not any(p.can_head for p in costs.places):
        return ("No contributing node may be the head.",)
    if stages > model.layers:
        return (f"{stages} stages were asked for, but the model has {model.layers} layers.",)
    if stages > len(costs.places):
        return (f"{stages} stages were asked for, but only {len(costs.places)} devices are there.",)
    have = sum(p.memory for p in costs.places)
    way = f" over {stages} stages" if stages else ""
    need = f"needs {size(_need(wish))} with a cache of {wish.demand.context} tokens"
    more = f"and {size(model.overhead)} more for each PC after the first"
    room = f"the {size(have)} that {_some(costs.names)} can give"
    return (f"{model.model_id} {need}, {more}; it does not fit{way} {room}.",)


def _choice(plan: ModelPlan, costs: Costs, wish: Wish) -> str:
    alone = [c for c in plan.chains if len(c.stages) == 1]
    splits = [c for c in plan.chains if len(c.stages) > 1]
    by_way = {a.way: a for a in plan.alternatives}
    if wish.demand.stages:
        count = len(plan.chains[0].stages)
        return f"{count} stage{'s' if count > 1 else ''}, as asked."
    if not splits:
        what = "one PC" if len(alone) == 1 else f"{number(len(alone))} replicas"
        fits = f"Fits on {together([c.stages[0].name for c in alone])} alone"
        reason = _against(plan, by_way.get("split"), "splitting")
        return f"{fits}; {reason}so {what}." if reason else f"{fits}, so {what}."
    if "one PC" not in by_way and not alone:
        largest = max(p.memory for p in costs.places)
        return (
            f"Needs {size(_need(wish))}, and the largest device gives {size(largest)}: split over "
            f"{_chains(splits)}."
        )
    reason = _against(plan, by_way.get("replicas") or by_way.get("one PC"), "whole copies")
    mixture = (
        f"{_chains(splits)} and the whole on {together([c.stages[0].name for c in alone])}"
        if alone
        else _chains(splits)
    )
    return f"Split over {mixture}" + (f"; {reason[:-2]}." if reason else ".")


def _against(plan: ModelPlan, other: Alternative | None, what: str) -> str:
    """The beginning of a sentence: what the other way would cost."""
    if other is None:
        return ""
    if plan.one_user >= 1.05 * other.one_user:
        times, who = plan.one_user / other.one_user, "one user"
    elif plan.tokens_per_second >= 1.02 * other.tokens_per_second:
        times = plan.tokens_per_second / other.tokens_per_second
        who = f"{plan.users} users"
    else:
        return f"{what} would be no faster, "
    return f"{what} would be {times:.1f} times slower for {who}, "


def _chains(chains: Sequence[PlannedChain]) -> str:
    return "; ".join(together([s.name for s in c.stages]) for c in chains)


def _layers(chain: PlannedChain) -> str:
    # a name is left as its owner wrote it, at the beginning of a sentence too
    parts = ", ".join(f"{s.name} layers {s.layers} ({size(s.weight_bytes)})" for s in chain.stages)
    return f"{parts}."


def _idle(plan: ModelPlan, costs: Costs) -> list[str]:
    used = {s.name for c in plan.chains for s in c.stages}
    idle = [name for name in costs.names if name not in used]
    if not idle:
        return []
    who = _some(idle)
    if not plan.alternatives:  # other models or a wish for stages have a say in it
        return [f"{who} {'has' if len(idle) == 1 else 'have'} no layer of it."]
    return [f"{who} {'gets' if len(idle) == 1 else 'get'} no layer: that would not be faster."]


def _prediction(plan: ModelPlan) -> str:
    text = f"Predicted: {rate(plan.one_user)} tokens/s for one user"
    if plan.users > 1:
        text += f", {rate(plan.tokens_per_second)} for {plan.users} together"
    return f"{text}; first token after {plan.first_token:.1f} s."


def _waiting(plan: ModelPlan) -> list[str]:
    users = sum(c.users for c in plan.chains)
    running = sum(c.running for c in plan.chains)
    if running >= users:
        return []
    return [f"The caches hold {running} of {users} users at once; the others wait their turn."]


def _reserves(plan: ModelPlan) -> list[str]:
    if not plan.standbys:
        return []
    names_ = _some([s.name for s in plan.standbys])
    verb = "keeps" if len(plan.standbys) == 1 else "keep"
    return [f"{names_} {verb} copies, to take over when a PC is lost."]


def _assumptions(plan: ModelPlan, costs: Costs) -> list[str]:
    used = {(s.name, s.device) for c in plan.chains for s in c.stages}
    guessed = [
        p for p in costs.places if not p.profile.measured and (costs.names[p.node], p.kind) in used
    ]
    if not guessed:
        return []
    who = together(sorted({costs.names[p.node] for p in guessed}))
    kinds = {p.kind for p in costs.places if p.profile.measured}
    if all(p.kind in kinds for p in guessed):
        basis = "as fast as the median of those that have"
    else:
        basis = f"reading weights at {READ_SPEED / 1e9:.0f} GB/s"
    if len({p.node for p in guessed}) == 1:
        return [f"{who} has not been measured with this model yet, and is taken to be {basis}."]
    return [f"{who} have not been measured with this model yet, and are taken to be {basis}."]
