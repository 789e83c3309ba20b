"""Query, key and value in one matrix product.

A decode step of a small model is hundreds of small products; starting one, and quantising the
same activations for each, costs as much as its arithmetic. Products of the same input are joined
by stacking their weights, row by row: every output is the dot product it was before, so no value
changes (seen bit for bit on the CPU, in both precisions).

Products whose result goes straight into a sum or an activation are left alone: plugins fold that
into the product itself, and a joined product would lose it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from fleetapp.engine.executor.nodes import raw

_LARGEST: Final = 8 << 20
"""Bytes of joined weights. Above it, reading them is all that takes time."""
_CHAIN: Final = frozenset({"Convert", "Subtract", "Multiply", "Reshape"})
_PACKED: Final = frozenset({ov.Type.u4, ov.Type.i4})

Nodes = list[ov.Node]


def join_projections(model: ov.Model) -> int:
    """Join products of one input whose results are only reshaped; returns how many groups."""
    groups: defaultdict[Any, Nodes] = defaultdict(list)
    for node in model.get_ordered_ops():
        if node.get_type_name() == "MatMul" and _joinable(node):
            source = node.input_value(0)
            chain = _signature(node.input_value(1).get_node())
            if chain is not None:
                key = (source.get_node().get_friendly_name(), source.get_index(), chain)
                groups[key].append(node)
    joined = [group for group in groups.values() if len(group) > 1 and _bytes(group) <= _LARGEST]
    for group in joined:
        _join(group)
    if joined:
        model.validate_nodes_and_infer_types()
    return len(joined)


def _joinable(product: ov.Node) -> bool:
    attributes = product.get_attributes()
    users = [i.get_node().get_type_name() for i in product.output(0).get_target_inputs()]
    return (
        bool(attributes["transpose_b"])
        and not attributes["transpose_a"]
        and product.input_value(0).get_partial_shape().rank.is_static
        and bool(users)
        and all(user == "Reshape" for user in users)
    )


def _signature(weights: ov.Node) -> tuple[Any, ...] | None:
    """What two weights must have in common; None if they are not rows of one table each."""
    name, element = weights.get_type_name(), weights.get_output_element_type(0)
    shape = weights.get_output_partial_shape(0)
    if shape.is_dynamic or len(shape) < 2:
        return None
    own = (name, str(element), tuple(weights.get_output_shape(0))[1:])
    if name == "Constant":
        # Rows of half a byte cannot be stacked.
        row = int(np.prod(own[2])) * weights.get_output_element_type(0).bitwidth
        rows = weights.get_output_shape(0)[0]
        return own if element not in _PACKED or (rows * row) % 8 == 0 else None
    if name not in _CHAIN:
        return None
    rows = weights.get_output_shape(0)[0]
    parts: list[tuple[Any, ...]] = []
    for source in weights.input_values()[: 1 if name == "Reshape" else 2]:
        part = _signature(source.get_node())
        if part is None or source.get_shape()[0] != rows:
            return None
        parts.append(part)
    return (*own, *parts)


def _bytes(products: Nodes) -> int:
    """Of the weights as they are stored, without scales."""
    total = 0
    for product in products:
        node = product.input_value(1).get_node()
        while node.get_type_name() != "Constant":
            node = node.input_value(0).get_node()
        total += int(np.prod(node.get_output_shape(0))) * node.get_output_element_type(0).bitwidth
    return total // 8


def _join(products: Nodes) -> None:
    weights = _stacked([p.input_value(1).get_node() for p in products])
    product = opset.matmul(products[0].input_value(0), weights, False, True)
    product.set_friendly_name(products[0].get_friendly_name())
    rows = [p.input_value(1).get_shape()[0] for p in products]
    axis = len(product.output(0).get_partial_shape()) - 1
    split = opset.variadic_split(
        product, opset.constant(axis, ov.Type.i64), opset.constant(rows, ov.Type.i64)
    )
    for i, old in enumerate(products):
        old.output(0).replace(split.output(i))


def _stacked(nodes: Nodes) -> ov.Node:
    """The same operations over all weights, one above the other."""
    first, name = nodes[0], nodes[0].get_type_name()
    if name == "Constant":
        return _stacked_constants(nodes)
    sources = [_stacked([n.input_value(0).get_node() for n in nodes])]
    if name == "Convert":
        return opset.convert(sources[0], first.get_output_element_type(0))
    if name == "Reshape":
        shape = [sum(n.get_output_shape(0)[0] for n in nodes), *first.get_output_shape(0)[1:]]
        return opset.reshape(sources[0], opset.constant(shape, ov.Type.i64), special_zero=False)
    sources.append(_stacked([n.input_value(1).get_node() for n in nodes]))
    make = opset.subtract if name == "Subtract" else opset.multiply
    return make(*sources)


def _stacked_constants(nodes: Nodes) -> ov.Node:
    element = nodes[0].get_output_element_type(0)
    shape = [sum(n.get_output_shape(0)[0] for n in nodes), *nodes[0].get_output_shape(0)[1:]]
    tensor = ov.Tensor(element, ov.Shape(shape))
    raw(tensor)[:] = np.concatenate([raw(n) for n in nodes])
    return ov.op.Constant(tensor)
