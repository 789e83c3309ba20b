"""From a stage's stateful graph to one with explicit cache inputs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import openvino as ov
from openvino import opset13 as opset
from openvino._offline_transformations import paged_attention_transformation

from fleetapp.engine.executor.device import core
from fleetapp.engine.executor.flatten import flatten_tokens
from fleetapp.engine.executor.fusion import join_projections
from fleetapp.engine.executor.nodes import constant
from fleetapp.engine.executor.rotary import join_rotations
from fleetapp.engine.executor.symmetric import make_symmetric
from fleetapp.errors import CorruptModel, Unsupported
from fleetapp.wire.frames import ActivationType

log = logging.getLogger(__name__)

SAMPLE_INDICES: Final = "sample_indices"
CONTROL_INPUTS: Final = (
    "position_ids",
    "past_lens",
    "subsequence_begins",
    "block_indices",
    "block_indices_begins",
    "max_context_len",
)
"""Inputs of every paged stage besides its tokens or hidden states and its caches."""

_ELEMENTWISE: Final = frozenset({"Convert", "Add", "Subtract", "Multiply", "Divide", "Tanh"})


@dataclass(frozen=True)
class PagedGraph:
    """A stage ready to compile."""

    model: ov.Model
    rows_chosen: bool
    """The LM head runs only for the rows named by ``sample_indices``."""


def read_paged(path: Path, *, last: bool, hidden: int, activations: ActivationType) -> PagedGraph:
    """Read ``stage.xml``, make its states explicit inputs, join and narrow its products.

    Args:
        path: of the stage.
        last: it ends with the LM head.
        hidden: width of the hidden states.
        activations: type in which a stage that is not the last gives its hidden states.

    Raises:
        CorruptModel: the file is not a graph.
        Unsupported: the graph has no attention to page, or wants inputs nobody can give.
    """
    try:
        model = core().read_model(str(path))
    except RuntimeError as e:
        raise CorruptModel(f"{path} cannot be read as a model graph.") from e
    try:
        paged_attention_transformation(model)
    except RuntimeError as e:
        raise Unsupported(f"The attention of {path} cannot be paged: {_first_line(e)}") from e
    _check_inputs(model, path)
    _fix_width(model, hidden)
    if not last:
        _give_as(model, activations)
    make_symmetric(model)
    join_projections(model)
    flatten_tokens(model)
    join_rotations(model)
    rows_chosen = last and _choose_rows(model)
    if last and not rows_chosen:
        log.info("no LM head found at the end of %s: logits are computed for every row", path)
    return PagedGraph(model, rows_chosen)


def _check_inputs(model: ov.Model, path: Path) -> None:
    known = {*CONTROL_INPUTS, "input_ids", "inputs_embeds"}
    for port in model.inputs:
        name = port.get_any_name()
        if name not in known and not name.startswith(("key_cache.", "value_cache.")):
            raise Unsupported(f"{path} wants an input {name!r} that this version cannot give.")
    if not any(p.get_any_name().startswith("key_cache.") for p in model.inputs):
        raise Unsupported(f"{path} holds no attention layer.")


def _fix_width(model: ov.Model, hidden: int) -> None:
    """Say how wide ``inputs_embeds`` is: without that its first RMS norm is not fused."""
    for parameter in model.get_parameters():
        if parameter.output(0).get_any_name() == "inputs_embeds":
            parameter.set_partial_shape(ov.PartialShape([-1, hidden]))
    model.validate_nodes_and_infer_types()


def _give_as(model: ov.Model, activations: ActivationType) -> None:
    """Let the stage end in the type that the device computes in.

    The CPU plugin leaves everything between the last matrix product and an f32 output in f32 "to
    maintain accuracy" (``Graph::EnforceInferencePrecision``). At the end of a whole model that is
    a handful of operations; at the end of a stage it is the residual stream through all layers,
    and two conversions in each of them. An output in its own type switches that off; what crosses
    the boundary is then bit for bit what the unsplit model has there.
    """
    if activations == "f32":
        return
    for result in model.get_results():
        narrowed = opset.convert(result.input_value(0), activations)
        result.input(0).replace_source_output(narrowed.output(0))
    model.validate_nodes_and_infer_types()


def _choose_rows(model: ov.Model) -> bool:
    """Insert a Gather before the LM head's matrix, driven by a new input of row numbers.

    The head of a large vocabulary costs as much as several layers; a prefill of a thousand
    tokens needs it for one row.
    """
    matmul = _lm_head(model)
    if matmul is None:
        return False
    port = matmul.input(0)
    rows = opset.parameter([-1], ov.Type.i64, name=SAMPLE_INDICES)
    rows.output(0).get_tensor().set_names({SAMPLE_INDICES})
    axis = opset.constant(0, ov.Type.i64)
    port.replace_source_output(opset.gather(port.get_source_output(), rows, axis).output(0))
    model.add_parameters([rows])
    model.validate_nodes_and_infer_types()
    return True


def _lm_head(model: ov.Model) -> ov.Node | None:
    """The matrix product of activations and constants that ends the graph.

    Between it and the result only elementwise work with constants may lie (a cast, a scale, a
    bias, soft-capping): that is the same for any choice of rows.
    """
    if len(model.outputs) != 1:
        return None
    node = model.get_results()[0].input_value(0).get_node()
    while node.get_type_name() in _ELEMENTWISE:
        varying = [i for i in node.input_values() if not constant(i.get_node())]
        if len(varying) != 1:
            return None
        node = varying[0].get_node()
    if node.get_type_name() != "MatMul" or node.get_attributes().get("transpose_a"):
        return None
    activation = node.input_value(0)
    shape = activation.get_partial_shape()
    tokens_first = shape.rank.is_static and shape[0].is_dynamic and len(shape) in {2, 3}
    if not tokens_first or not constant(node.input_value(1).get_node()):
        return None
    return node


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
