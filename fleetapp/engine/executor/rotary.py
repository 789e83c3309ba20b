"""Queries and keys turned by one rotary embedding.

The same angles turn the heads of queries and of keys. Where both come out of one product, as rows
next to each other (``fusion``), their heads can be turned together: one operation instead of two,
and half of the reshaping around it. Every head is computed as it was; no value changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from fleetapp.engine.executor.nodes import numbers

_DEPTH: Final = 16
"""Operations from a projection to attention; a rotary embedding has about eight."""


def join_rotations(model: ov.Model) -> int:
    """Turn queries and keys together where that can be seen to be the same; returns how often."""
    done = 0
    for node in model.get_ordered_ops():
        if node.get_type_name() == "PagedAttentionExtension":
            done += _join(node)
    if done:
        model.validate_nodes_and_infer_types()
    return done


def _join(attention: ov.Node) -> bool:
    """Lead the keys through the queries' operations."""
    bases: list[tuple[ov.Node, ov.Node]] = []
    rows = attention.input_value(0).get_node()
    if rows.get_type_name() != "Reshape" or numbers(rows.input_value(1)) != [0, -1]:
        return False
    if not _alike(attention.input_value(0), attention.input_value(1), bases, _DEPTH):
        return False
    names = {(a.get_name(), b.get_name()) for a, b in bases}
    if len(names) != 1:
        return False
    queries, keys = bases[0]
    at = queries.input_value(0).get_index()
    if keys.input_value(0).get_index() != at + 1:
        return False
    source = queries.input_value(0).get_node()
    lengths = numbers(source.input_value(2)) or []
    widths = lengths[at : at + 2]
    together = opset.variadic_split(
        source.input_value(0),
        source.input_value(1),
        opset.constant([*lengths[:at], sum(widths), *lengths[at + 2 :]]),
    )
    heads = numbers(queries.input_value(1)) or []
    heads[2] = sum(widths) // heads[3]
    queries.input(0).replace_source_output(together.output(at))
    queries.input(1).replace_source_output(opset.constant(heads).output(0))
    for i in range(len(lengths)):
        if i not in {at, at + 1}:
            source.output(i).replace(together.output(i if i < at else i - 1))
    whole = opset.reshape(rows.input_value(0), opset.constant([-1, sum(widths)]), False)
    apart = opset.variadic_split(whole, opset.constant(-1, ov.Type.i64), opset.constant(widths))
    attention.input(0).replace_source_output(apart.output(0))
    attention.input(1).replace_source_output(apart.output(1))
    return True


def _alike(
    one: ov.Output, other: ov.Output, bases: list[tuple[ov.Node, ov.Node]], depth: int
) -> bool:
    """The same is done to both, down to the heads of two parts of one product."""
    a, b = one.get_node(), other.get_node()
    if a.get_name() == b.get_name():
        return bool(one.get_index() == other.get_index())
    kind = a.get_type_name()
    same_kind = kind == b.get_type_name() and a.get_attributes() == b.get_attributes()
    if not depth or not same_kind or a.get_input_size() != b.get_input_size():
        return False
    if kind == "Constant":
        return _same(a, b)
    if kind == "Reshape" and _is_base(a) and _is_base(b):
        bases.append((a, b))
        sources = [node.input_value(0).get_node().get_name() for node in (a, b)]
        return bool(sources[0] == sources[1])
    pairs = zip(a.input_values(), b.input_values(), strict=True)
    return all(_alike(x, y, bases, depth - 1) for x, y in pairs)


def _is_base(node: ov.Node) -> bool:
    """``[.., heads, size]`` of one part of a split along the last axis."""
    source = node.input_value(0).get_node()
    target = numbers(node.input_value(1))
    if source.get_type_name() != "VariadicSplit" or target is None or len(target) != 4:
        return False
    rank = len(source.input_value(0).get_partial_shape())
    return (
        numbers(source.input_value(1)) in ([-1], [rank - 1])
        and numbers(source.input_value(2)) is not None
        and target[2] > 0
    )


def _same(a: ov.Node, b: ov.Node) -> bool:
    """Equal constants that hold nothing per head."""
    shape = list(a.get_output_shape(0))
    per_head = len(shape) == 4 and max(shape[1], shape[2]) > 1
    return (
        not per_head
        and shape == list(b.get_output_shape(0))
        and a.get_element_type() == b.get_element_type()
        and np.array_equal(a.get_data(), b.get_data())
    )
