"""Where a language model's graph can be cut. Pure: values in, values out, no OpenVINO.

The layer of an operation is the largest number of attention operations on a path that reaches it.
The cut before layer ``k`` is the last single ``[batch, seq, hidden]`` tensor that every path from
the tokens to the logits goes through and that ``k`` attentions lie before: the residual stream.
Found by structure, never by name. What only asks for the *shape* or the *type* of a tensor is no
path: those questions a stage can answer from tensors of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fleetapp.errors import CannotSplit
from fleetapp.types import LayerRange

ATTENTION = "ScaledDotProductAttention"


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. ``inputs`` are indices of earlier operations in topological order."""

    kind: str
    inputs: tuple[int, ...]
    hidden: int | None = None
    """H, if its only output is ``[dynamic, dynamic, H]`` of a floating type."""
    name: str = ""
    state: str | None = None
    """The variable's id of a ReadValue or an Assign."""
    nbytes: int = 0
    """Size of a Constant."""

    @property
    def value_inputs(self) -> tuple[int, ...]:
        """Inputs whose contents matter, not only their shape or type."""
        if self.kind == "ShapeOf":
            return ()
        if self.kind == "ConvertLike":
            return self.inputs[:1]
        return self.inputs


@dataclass(frozen=True, slots=True)
class Anatomy:
    """What the chooser found out about a graph of ``L`` decoder layers."""

    ops: tuple[Op, ...] = field(repr=False)
    source: int
    """The parameter that carries token ids or embeddings."""
    result: int
    """The operation that makes the logits."""
    cuts: tuple[int | None, ...]
    """``cuts[k]``, ``0 <= k < L``: the tensor that enters layer k, or None where there is none."""
    head: int | None
    """The last hidden state before the vocabulary projection."""
    attention: tuple[tuple[int, ...], ...]
    """Attention operations of each layer."""
    states: tuple[tuple[int, ...], ...]
    """ReadValues whose contents each layer's attention uses."""

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return len(self.attention)


def depths(ops: Sequence[Op]) -> list[int]:
    """Return, for each operation, the most attentions on any path that ends just before it."""
    out: list[int] = []
    for op in ops:
        out.append(
            max((out[i] + (ops[i].kind == ATTENTION) for i in op.inputs), default=0),
        )
    return out


def _descendants(ops: Sequence[Op], roots: Iterable[int], stop: int | None = None) -> list[bool]:
    """Mark what the roots' contents reach; nothing flows through ``stop``."""
    marked = [False] * len(ops)
    for root in roots:
        marked[root] = True
    for i, op in enumerate(ops):
        if i != stop and not marked[i]:
            marked[i] = any(marked[j] for j in op.value_inputs)
    if stop is not None:
        marked[stop] = False
    return marked


def _ancestors(ops: Sequence[Op], root: int) -> list[bool]:
    marked = [False] * len(ops)
    marked[root] = True
    for i in range(root, -1, -1):
        if marked[i]:
            for j in ops[i].value_inputs:
                marked[j] = True
    return marked


def bottlenecks(ops: Sequence[Op], source: int, result: int) -> Iterator[int]:
    """Yield, in order, the operations that every path from ``source`` to ``result`` goes through.

    In topological order an operation is one exactly if no edge between two operations on such
    paths jumps over it.
    """
    down, up = _descendants(ops, [source]), _ancestors(ops, result)
    path = [i for i in range(len(ops)) if down[i] and up[i]]
    last_use = {i: i for i in path}
    for i in path:
        for j in ops[i].value_inputs:
            if j in last_use:
                last_use[j] = i
    reach = -1
    for i in path:
        if reach <= i:
            yield i
        reach = max(reach, last_use[i])


def _states_of(ops: Sequence[Op], attention: int) -> tuple[int, ...]:
    """Return the ReadValues that reach an attention without passing another one."""
    seen: set[int] = set()
    found: list[int] = []
    stack = list(ops[attention].value_inputs)
    while stack:
        i = stack.pop()
        if i in seen or ops[i].kind == ATTENTION:
            continue
        seen.add(i)
        if ops[i].kind == "ReadValue":
            found.append(i)
        else:
            stack.extend(ops[i].value_inputs)
    return tuple(sorted(found))


def examine(ops: Sequence[Op], source: int, result: int) -> Anatomy:
    """Find layers, their states and the cuts between them.

    Raises:
        CannotSplit: no attention lies between source and result.
    """
    depth = depths(ops)
    down, up = _descendants(ops, [source]), _ancestors(ops, result)
    layers = depth[result]
    if not layers:
        raise CannotSplit("The graph has no ScaledDotProductAttention, so its layers are not seen.")
    attention = tuple(
        tuple(
            i
            for i, op in enumerate(ops)
            if op.kind == ATTENTION and depth[i] == k and down[i] and up[i]
        )
        for k in range(layers)
    )
    cuts: list[int | None] = [None] * layers
    head: int | None = None
    width: int | None = None
    for i in bottlenecks(ops, source, result):
        if ops[i].hidden is None or i == result:
            continue
        if depth[i] < layers and i < min(attention[depth[i]]):
            cuts[depth[i]] = i
            width = ops[i].hidden
        elif depth[i] == layers and ops[i].hidden == width:
            head = i
    return Anatomy(
        ops=tuple(ops),
        source=source,
        result=result,
        cuts=tuple(cuts),
        head=head,
        attention=attention,
        states=tuple(
            tuple(sorted({s for a in group for s in _states_of(ops, a)})) for group in attention
        ),
    )


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Which part of a graph makes one stage."""

    layers: LayerRange
    entry: int | None
    """The operation that the stage's ``inputs_embeds`` stands for; None in the first stage."""
    exit: int
    """The operation whose output leaves the stage."""
    states: tuple[str, ...]
    """Ids of the stage's own variables."""
    foreign_shapes: tuple[int, ...]
    """ShapeOf operations of tensors that stay outside: to be answered from the stage's own."""
    foreign_types: tuple[int, ...]
    """ConvertLike operations whose pattern stays outside."""
    parameters: tuple[int, ...]
    """Standard inputs that the stage keeps."""


def _cut(anatomy: Anatomy, k: int) -> int:
    cut = anatomy.cuts[k]
    if cut is None:
        raise CannotSplit(
            f"Between layers {k - 1} and {k} no single hidden state carries everything.",
            remedy="Run the model as one stage, or choose another cut.",
        )
    return cut


def plan_stage(anatomy: Anatomy, layers: LayerRange) -> StagePlan:
    """Choose the operations of one stage.

    Raises:
        CannotSplit: the range is impossible, a cut is not clean, or the stage would need contents
            (not only shapes) of tensors or states that belong to other stages.
    """
    ops, total = anatomy.ops, anatomy.layers
    if not 0 <= layers.start < layers.stop <= total:
        raise CannotSplit(f"Layers {layers} are not within the model's 0-{total - 1}.")
    entry = _cut(anatomy, layers.start) if layers.start else None
    leave = _cut(anatomy, layers.stop) if layers.stop < total else anatomy.result

    own = {s for k in range(layers.start, layers.stop) for s in anatomy.states[k]}
    for k in range(total):
        shared = own.intersection(anatomy.states[k])
        if shared and k not in range(layers.start, layers.stop):
            name = ops[min(shared)].state
            raise CannotSplit(
                f"Layer {k} uses the keys and values '{name}' of layers {layers}.",
                remedy="Keep both in one stage.",
            )
    foreign = [i for i, op in enumerate(ops) if op.kind == "ReadValue" and i not in own]
    roots = foreign if entry is None else [*foreign, anatomy.source]
    outside = _descendants(ops, roots, stop=entry)

    sinks = [i for i, op in enumerate(ops) if op.kind == "Assign" and _is_own(op, ops, own)]
    needed: set[int] = set()
    shapes: list[int] = []
    types: list[int] = []
    stack = [leave, *sinks]
    while stack:
        i = stack.pop()
        if i in needed or i == entry:
            continue
        needed.add(i)
        op = ops[i]
        if outside[i]:
            raise CannotSplit(
                f"Layers {layers} would need '{op.name}' ({op.kind}), "
                "which is computed in another stage.",
                remedy="Run the model as one stage, or choose another cut.",
            )
        if op.kind == "ShapeOf" and outside[op.inputs[0]]:
            shapes.append(i)
        elif op.kind == "ConvertLike" and outside[op.inputs[1]]:
            types.append(i)
            stack.append(op.inputs[0])
        else:
            stack.extend(op.inputs)
    return StagePlan(
        layers=layers,
        entry=entry,
        exit=leave,
        states=tuple(sorted(str(ops[s].state) for s in own)),
        foreign_shapes=tuple(sorted(shapes)),
        foreign_types=tuple(sorted(types)),
        parameters=tuple(sorted(i for i in needed if ops[i].kind == "Parameter")),
    )


def _is_own(assign: Op, ops: Sequence[Op], own: set[int]) -> bool:
    return any(ops[s].state == assign.state for s in own)


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes of constants, by where they are needed; a shared (tied) one counts in each place."""

    layers: tuple[int, ...]
    embedding: int
    head: int


def weigh(anatomy: Anatomy) -> WeightBytes:
    """Assign every constant to embedding, layers and head.

    A constant belongs where the main path first meets it, through whatever dequantises it.
    """
    ops, total = anatomy.ops, anatomy.layers
    down, up = _descendants(ops, [anatomy.source]), _ancestors(ops, anatomy.result)
    depth = depths(ops)
    # Groups: 0 is the embedding, 1..L the layers, L+1 the head.
    groups: list[set[int]] = [set() for _ in ops]
    fallback = 1
    for i in range(len(ops) - 1, -1, -1):
        if down[i] and up[i]:
            groups[i] = {_group(anatomy, i, depth[i])}
        here = groups[i]
        for j in ops[i].value_inputs:
            if not (down[j] and up[j]):
                groups[j] |= here
    sizes = [0] * (total + 2)
    for i, op in enumerate(ops):
        if op.kind == "Constant":
            for group in groups[i] or {fallback}:
                sizes[group] += op.nbytes
    return WeightBytes(layers=tuple(sizes[1:-1]), embedding=sizes[0], head=sizes[-1])


def _group(anatomy: Anatomy, index: int, depth: int) -> int:
    first = anatomy.cuts[0]
    if first is not None and index <= first:
        return 0
    if anatomy.head is not None and index > anatomy.head:
        return anatomy.layers + 1
    layer = min(depth, anatomy.layers - 1)
    while layer > 0 and index <= (anatomy.cuts[layer] or 0):
        layer -= 1
    return layer + 1
