"""From an OpenVINO language-model IR to the IR of one stage, by structure alone (no torch).

Weights stay memory-mapped and are written straight out, so memory use does not grow with the
model. Imports OpenVINO: run it in the worker process (:mod:`fleetapp.models.worker`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import openvino as ov
from openvino import opset13 as ops13

from fleetapp.errors import CannotSplit, CorruptModel, NotAModel, StorageError
from fleetapp.models.cuts import Anatomy, Op, StagePlan, examine, plan_stage, weigh
from fleetapp.models.facts import GraphFacts
from fleetapp.types import LayerRange

INPUT = "inputs_embeds"
HIDDEN = "hidden"
LOGITS = "logits"
_SOURCES = ("input_ids", INPUT)

# Upper bounds that tell dimensions apart after shape inference. All lower bounds stay 0: graphs
# made from GGUF files broadcast keys to a length of 0 and rely on fusion to repair it.
_BATCH, _SEQ, _PAST = 101, 1009, 100003
_Axis = Literal["batch", "seq", "past", "total"]
_AXES: dict[int, _Axis] = {_BATCH: "batch", _SEQ: "seq", _PAST: "past", _SEQ + _PAST: "total"}


class Graph:
    """An IR read memory-mapped, with its anatomy.

    Raises:
        NotAModel: no states or no token input: not a stateful language model.
        CannotSplit: no attention operation is visible.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = read_ir(path)
        self.nodes: list[Any] = self.model.get_ordered_ops()
        inputs = {name for port in self.model.inputs for name in port.names}
        source = next((name for name in _SOURCES if name in inputs), None)
        if source is None or not self.model.get_variables():
            missing = "token input" if source is None else "key-value state"
            raise NotAModel(
                f"{path.name} has no {missing}, so it is not a stateful language model.",
                remedy="Export it with optimum-intel as text-generation-with-past, stateful.",
            )
        index = {node.get_name(): i for i, node in enumerate(self.nodes)}
        self.source_name = source
        output = self._logits()
        self.anatomy: Anatomy = examine(
            [_describe(node, index) for node in self.nodes],
            source=index[self.model.input(source).get_node().get_name()],
            result=index[output.input_value(0).get_node().get_name()],
        )
        self.logits = output.input_value(0)

    def _logits(self) -> Any:
        results = self.model.get_results()
        for result in results:
            if LOGITS in result.output(0).names:
                return result
        if len(results) != 1:
            raise NotAModel(f"{self.path.name} has {len(results)} outputs and none named logits.")
        return results[0]

    def facts(self) -> GraphFacts:
        """Measure the graph; weights are not read."""
        anatomy = self.anatomy
        kv_heads, head_sizes = [], []
        for group in anatomy.states:
            if not group:
                raise NotAModel(
                    f"{self.path.name} has an attention without key-value state.",
                    remedy="Export it with optimum-intel as text-generation-with-past, stateful.",
                )
            static = [d.get_length() for d in _shape(self.nodes[group[0]].output(0)) if d.is_static]
            if len(static) != 2:
                raise NotAModel(f"{self.path.name}: keys have an unexpected shape.")
            kv_heads.append(static[0])
            head_sizes.append(static[1])
        hidden = next((anatomy.ops[c].hidden for c in anatomy.cuts if c is not None), None)
        if hidden is None and anatomy.head is not None:
            hidden = anatomy.ops[anatomy.head].hidden
        vocab = _shape(self.logits)[-1]
        if hidden is None or vocab.is_dynamic:
            raise NotAModel(f"{self.path.name}: hidden or vocabulary size cannot be told.")
        weights = weigh(anatomy)
        by_type: dict[str, int] = {}
        for node, op in zip(self.nodes, anatomy.ops, strict=True):
            if op.kind == "Constant":
                kind = node.get_element_type().get_type_name()
                by_type[kind] = by_type.get(kind, 0) + op.nbytes
        return GraphFacts(
            layers=anatomy.layers,
            hidden_size=hidden,
            vocab_size=vocab.get_length(),
            kv_heads=tuple(kv_heads),
            head_sizes=tuple(head_sizes),
            layer_bytes=weights.layers,
            embedding_bytes=weights.embedding,
            head_bytes=weights.head,
            cuttable=tuple(k for k, c in enumerate(anatomy.cuts) if k and c is not None),
            weight_types=tuple(sorted(by_type.items(), key=lambda kv: -kv[1])),
        )


def read_ir(path: Path) -> Any:
    """Read an IR with its weights memory-mapped.

    Raises:
        CorruptModel: the runtime cannot parse the graph or its weights.
    """
    core = ov.Core()
    core.set_property({"ENABLE_MMAP": True})
    try:
        return core.read_model(os.fspath(path))
    except RuntimeError as e:
        reason = str(e).strip().splitlines()[-1] if str(e).strip() else "no reason given"
        raise CorruptModel(f"{path.name} cannot be read as an OpenVINO graph: {reason}") from e


def _shape(output: Any) -> list[Any]:
    shape = output.get_partial_shape()
    return [] if shape.rank.is_dynamic else list(shape)


def _describe(node: Any, index: dict[str, int]) -> Op:
    kind = node.get_type_name()
    hidden = None
    if node.get_output_size() == 1 and node.get_output_element_type(0).is_real():
        shape = _shape(node.output(0))
        if len(shape) == 3 and shape[0].is_dynamic and shape[1].is_dynamic and shape[2].is_static:
            hidden = shape[2].get_length()
    return Op(
        kind=kind,
        inputs=tuple(index[value.get_node().get_name()] for value in node.input_values()),
        hidden=hidden,
        name=node.get_friendly_name(),
        state=node.get_variable_id() if kind in ("ReadValue", "Assign") else None,
        nbytes=node.get_byte_size() if kind == "Constant" else 0,
    )


class _Probe:
    """Names the dynamic dimensions of every tensor by bounding the inputs and reading bounds."""

    def __init__(self, graph: Graph) -> None:
        self._original = graph
        model = read_ir(graph.path)
        self._nodes: list[Any] = model.get_ordered_ops()
        shapes: dict[str, Any] = {}
        for port in model.inputs:
            name = port.any_name
            axes = [_BATCH, _SEQ + _PAST if name == "attention_mask" else _SEQ]
            shapes[name] = ov.PartialShape(
                [
                    ov.Dimension(0, axes[i]) if i < len(axes) and dim.is_dynamic else dim
                    for i, dim in enumerate(_shape(port))
                ]
            )
        states = {
            variable.info.variable_id: ov.PartialShape(_bound_state(variable.info.data_shape))
            for variable in model.get_variables()
        }
        try:
            model.reshape(shapes, states)
        except RuntimeError as e:
            raise CannotSplit(
                f"The shapes inside {graph.path.name} cannot be followed: "
                f"{str(e).strip().splitlines()[-1]}"
            ) from e

    def axes(self, output: Any, index: int) -> tuple[int | _Axis, ...]:
        """Return for each dimension its size if fixed, else what it counts."""
        node = self._nodes[index]
        named: list[int | _Axis] = []
        for before, after in zip(
            _shape(output), _shape(node.output(output.get_index())), strict=True
        ):
            if before.is_static:
                named.append(before.get_length())
                continue
            axis = _AXES.get(after.get_max_length())
            if axis is None:
                raise CannotSplit(
                    f"A stage would need the shape {output.get_partial_shape()} of "
                    f"'{node.get_friendly_name()}', whose dimensions are not understood."
                )
            named.append(axis)
        return tuple(named)


def _bound_state(shape: Any) -> list[Any]:
    """Bound a state's batch (first) and past (other) dimensions."""
    return [
        dim if dim.is_static else ov.Dimension(0, _BATCH if i == 0 else _PAST)
        for i, dim in enumerate(shape)
    ]


def split(path: Path, layers: LayerRange, target: Path) -> None:
    """Write layers ``[start, stop)`` of an IR as ``stage.xml`` and ``stage.bin`` into a folder.

    A later stage takes ``inputs_embeds`` ``[B,S,H]`` f32 in place of token ids, an earlier one
    returns ``hidden`` ``[B,S,H]`` f32, the last returns ``logits`` ``[B,S,V]``.

    Raises:
        CannotSplit: no clean cut there; says why.
        StorageError: the folder cannot be written, or the disk is full.
    """
    graph = Graph(path)
    plan = plan_stage(graph.anatomy, layers)
    stage = _build(graph, plan)
    xml = target / "stage.xml"
    try:
        ov.save_model(stage, os.fspath(xml), compress_to_fp16=False)
    except RuntimeError as e:
        raise StorageError(
            f"{xml} cannot be written: {e}", remedy="Check the disk and try again."
        ) from e
    del stage, graph
    check_stage(xml, first=plan.entry is None, states=plan.states)


def _build(graph: Graph, plan: StagePlan) -> Any:
    nodes, anatomy = graph.nodes, graph.anatomy
    parameters = [nodes[i] for i in plan.parameters]
    if plan.entry is not None:
        parameters.insert(0, _enter(nodes[plan.entry], anatomy.ops[plan.entry].hidden))
        embeds = parameters[0].output(0)
    else:
        embeds = nodes[anatomy.source].output(0)
    if plan.foreign_shapes:
        _answer_shapes(graph, plan, embeds)
    for i in plan.foreign_types:
        node = nodes[i]
        convert = ops13.convert(
            node.input_value(0), node.get_output_element_type(0).get_type_name()
        )
        _redirect(node.output(0), convert.output(0))

    last = plan.exit == anatomy.result
    out = graph.logits if last else nodes[plan.exit].output(0)
    if not last and out.get_element_type() != ov.Type.f32:
        out = ops13.convert(out, "f32").output(0)
    result = ops13.result(out)
    result.output(0).get_tensor().set_names({LOGITS if last else HIDDEN})
    sinks = [s for s in graph.model.get_sinks() if s.get_variable_id() in plan.states]
    name = f"{graph.model.get_friendly_name()}.{plan.layers}"
    stage = ov.Model([result], sinks, parameters, name)
    for key, value in graph.model.get_rt_info().items():
        # Scale factors and cache hints of the whole model hold for each of its parts.
        if key not in ("version", "OpenVINO Runtime"):
            _copy_rt(stage, [key], value)
    stage.validate_nodes_and_infer_types()
    return stage


def _copy_rt(stage: Any, path: list[str], value: Any) -> None:
    value = getattr(value, "value", value)
    if isinstance(value, dict):
        for key, inner in value.items():
            _copy_rt(stage, [*path, key], inner)
    else:
        stage.set_rt_info(value, path)


def _enter(node: Any, hidden: int | None) -> Any:
    """Make the stage's input and let it stand in for the tensor that enters."""
    assert hidden is not None, "cuts are hidden states"
    parameter = ops13.parameter([-1, -1, hidden], np.float32, name=INPUT)
    parameter.output(0).get_tensor().set_names({INPUT})
    value = parameter.output(0)
    inner = node.get_output_element_type(0)
    if inner != ov.Type.f32:
        value = ops13.convert(value, inner.get_type_name()).output(0)
    _redirect(node.output(0), value)
    return parameter


def _redirect(old: Any, new: Any) -> None:
    for consumer in list(old.get_target_inputs()):
        consumer.replace_source_output(new)


def _answer_shapes(graph: Graph, plan: StagePlan, embeds: Any) -> None:
    """Re-express every shape asked of a foreign tensor by the stage's own tensors."""
    probe = _Probe(graph)
    position = {node.get_name(): i for i, node in enumerate(graph.nodes)}
    first = graph.nodes[graph.anatomy.states[plan.layers.start][0]]
    own: list[tuple[Any, tuple[int | _Axis, ...]]] = [
        (tensor, probe.axes(tensor, position[tensor.get_node().get_name()]))
        for tensor in _key_tensors(graph, first)
    ]
    rank = len(embeds.get_partial_shape())
    static = [d.get_length() for d in _shape(embeds) if d.is_static]
    own.append((embeds, ("batch", "seq", *static) if rank == 3 else ("batch", "seq")))

    for i in plan.foreign_shapes:
        node = graph.nodes[i]
        foreign = node.input_value(0)
        axes = probe.axes(foreign, position[foreign.get_node().get_name()])
        # Same axes: keep the question, ask another tensor. OpenVINO's paged transformation
        # recognises ShapeOf followed by Gather and must still find it.
        same = next((tensor for tensor, have in own if have == axes), None)
        if same is not None:
            node.input(0).replace_source_output(same)
        else:
            kind = node.get_output_element_type(0).get_type_name()
            _redirect(node.output(0), _compose(axes, own, kind))


def _key_tensors(graph: Graph, read: Any) -> list[Any]:
    """Return a stage's past keys ``[B, heads, past, size]`` and its keys with the new ones."""
    past = read.output(0)
    for consumer in past.get_target_inputs():
        if consumer.get_node().get_type_name() == "Gather":
            past = consumer.get_node().output(0)  # reordered by beam_idx
            break
    assign = next(
        s for s in graph.model.get_sinks() if s.get_variable_id() == read.get_variable_id()
    )
    return [past, assign.input_value(0)]


def _compose(
    axes: Sequence[int | _Axis], own: Sequence[tuple[Any, tuple[int | _Axis, ...]]], kind: str
) -> Any:
    """Build the vector of dimensions ``axes`` from shapes of the stage's own tensors."""
    dtype = np.int32 if kind == "i32" else np.int64
    # The embeddings answer first: nothing is computed before them, so no cycle can arise.
    preferred = [own[-1], *own[:-1]]
    parts = []
    for axis in axes:
        if isinstance(axis, int):
            parts.append(ops13.constant(np.array([axis], dtype)))
            continue
        tensor, have = next(((t, h) for t, h in preferred if axis in h), (None, ()))
        if tensor is None:
            raise CannotSplit(f"A stage has no tensor that knows the {axis} length.")
        shape = ops13.shape_of(tensor, output_type=kind)
        where = ops13.constant(np.array([have.index(axis)], np.int64))
        parts.append(ops13.gather(shape, where, ops13.constant(np.array(0, np.int64))))
    return ops13.concat(parts, 0).output(0)


def check_stage(xml: Path, *, first: bool, states: Sequence[str]) -> None:
    """Read a stage back: its own states only, its own inputs only, none left dangling.

    Raises:
        CannotSplit: the stage is not self-contained.
        CorruptModel: what was written cannot be read.
    """
    model = read_ir(xml)
    found = {variable.info.variable_id for variable in model.get_variables()}
    if found != set(states):
        odd = sorted(found.symmetric_difference(states))[0]
        raise CannotSplit(f"The stage {xml.parent.name} has a foreign or missing state '{odd}'.")
    names = {port.any_name for port in model.inputs}
    if (INPUT in names) == first and not (first and "input_ids" not in names):
        raise CannotSplit(f"The stage {xml.parent.name} has the wrong inputs: {sorted(names)}.")
    for parameter in model.get_parameters():
        if not parameter.output(0).get_target_inputs():
            raise CannotSplit(f"Input '{parameter.get_friendly_name()}' of a stage is not used.")
