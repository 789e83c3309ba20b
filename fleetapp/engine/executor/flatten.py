"""Hidden states as ``[tokens, hidden]`` all the way through a paged stage.

OpenVINO's paged transformation keeps the layout of the stateful graph, ``[tokens, 1, hidden]``, and
bridges to attention's ``[tokens, hidden]`` by reshaping and transposing dimensions of one. None of
that moves data, but a plugin looks at each such operation anew in every step: with small models
that is felt. Here the dimension of one is left out from the start, so that most of these operations
are gone. No value is computed otherwise.

The whole graph is looked at first; if it holds anything this module does not know for certain, it
stays as it is.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from fleetapp.engine.executor.nodes import constant, numbers

_UNARY: Final = frozenset(
    {"Convert", "Swish", "Sigmoid", "Gelu", "Relu", "Tanh", "Sqrt", "Negative", "Exp", "HSwish"}
)
_BINARY: Final = frozenset(
    {"Add", "Subtract", "Multiply", "Divide", "Power", "SquaredDifference", "Maximum", "Minimum"}
)
_REDUCE: Final = frozenset({"ReduceMean", "ReduceSum", "ReduceMax"})
_SWAP: Final = [0, 2, 1, 3]


class _UnknownError(Exception):
    """Something this module cannot judge."""


def flatten_tokens(model: ov.Model) -> bool:
    """Drop the dimension of one from hidden states; returns whether it was done."""
    try:
        plan = _Plan(model)
    except _UnknownError:
        return False
    if not plan.sources:
        return False
    plan.apply()
    model.validate_nodes_and_infer_types()
    return True


class _Plan:
    """What would have to change; nothing is changed before all of the graph was understood.

    Attributes:
        sources: inputs, and what feeds them instead; none if there are no hidden states.
    """

    def __init__(self, model: ov.Model) -> None:
        self.sources: list[tuple[ov.Input, ov.Output]] = []
        self._constants: list[tuple[ov.Input, Any]] = []
        self._replaced: list[tuple[ov.Output, ov.Output]] = []
        self._shapes: list[ov.Input] = []
        self._flat: set[Any] = set()
        for node in model.get_ordered_ops():
            self._look(node)

    def apply(self) -> None:
        """Change the graph."""
        for port, source in self.sources:
            port.replace_source_output(source)
        for port in self._shapes:  # whoever asks for a shape gets the one there was
            port.replace_source_output(opset.unsqueeze(port.get_source_output(), 1).output(0))
        for port, value in self._constants:
            port.replace_source_output(opset.constant(value).output(0))
        for old, new in self._replaced:
            old.replace(new)

    def _is_flat(self, value: ov.Output) -> bool:
        return _key(value) in self._flat

    def _look(self, node: ov.Node) -> None:
        kind = node.get_type_name()
        flat = [i for i, value in enumerate(node.input_values()) if self._is_flat(value)]
        if kind == "Unsqueeze":
            if flat:
                raise _UnknownError
            self._start(node)
        elif kind == "Reshape" and (attention := _from_attention(node)) is not None:
            if node.output(0).get_partial_shape().rank.get_length() == 3:
                self._replaced.append((node.output(0), attention))
                self._flat.add(_key(node.output(0)))
        elif not flat or kind == "Result":
            return
        elif kind == "Reshape":
            self._reshape(node, flat)
        elif kind == "ShapeOf":
            self._shapes.append(node.input(0))
        else:
            self._rows(node, kind, flat)
            self._flat.update(_key(output) for output in node.outputs())

    def _rows(self, node: ov.Node, kind: str, flat: list[int]) -> None:
        """What works on rows, however many dimensions come before."""
        if kind in _BINARY:
            for i in range(2):
                if i not in flat:
                    self._operand(node.input(i))
            return
        known = kind in _UNARY
        reduces = kind in _REDUCE and node.get_attributes().get("keep_dims")
        if reduces or kind == "VariadicSplit":
            known = self._last_axis(node.input(1))
        elif kind == "Gather":
            known = numbers(node.input_value(2)) == [0]
        elif kind == "MatMul":
            weights = node.input_value(1).get_partial_shape()
            ranked = weights.rank.is_static and len(weights) == 2
            known = ranked and not node.get_attributes().get("transpose_a")
        if not known or flat != [0]:
            raise _UnknownError

    def _start(self, node: ov.Node) -> None:
        """``[tokens]`` to ``[tokens, 1]`` before the embedding, or after hidden states came in."""
        source = node.input_value(0)
        name = source.get_names() & {"input_ids", "inputs_embeds"}
        if not name or source.get_node().get_type_name() != "Parameter":
            return
        if numbers(node.input_value(1)) != [1]:
            raise _UnknownError
        users = [
            user
            for user in node.output(0).get_target_inputs()
            if user.get_node().get_type_name() != "ShapeOf"  # that may go on with what it had
        ]
        self.sources += [(user, source) for user in users]
        if "inputs_embeds" in name:
            self._flat.add(_key(node.output(0)))
            return
        for user in users:
            self._embedding(user)

    def _embedding(self, user: ov.Input) -> None:
        """With ``[tokens]`` instead of ``[tokens, 1]`` a lookup gives ``[tokens, hidden]``."""
        node = user.get_node()
        if node.get_type_name() == "Convert":
            for further in node.output(0).get_target_inputs():
                self._embedding(further)
            return
        if node.get_type_name() != "Gather" or user.get_index() != 1:
            raise _UnknownError
        table = node.input_value(0).get_partial_shape()
        if table.rank.is_dynamic or len(table) != 2 or numbers(node.input_value(2)) != [0]:
            raise _UnknownError
        self._flat.add(_key(node.output(0)))

    def _reshape(self, node: ov.Node, flat: list[int]) -> None:
        """``[tokens, 1, n]`` into heads, or straight back if nothing happens to the heads."""
        target = numbers(node.input_value(1))
        if flat != [0] or target is None or len(target) != 4:
            raise _UnknownError
        _, second, heads, size = target
        if second not in {0, 1} or min(heads, size) < 1:
            raise _UnknownError
        width = node.input_value(0).get_partial_shape()[-1]
        if not width.is_static or width.get_length() != heads * size:
            raise _UnknownError
        self._constants.append((node.input(1), np.array([-1, 1, heads, size], np.int64)))
        end = _back_to_rows(node)
        if end is not None:
            self._replaced.append((end.output(0), node.input_value(0)))

    def _operand(self, port: ov.Input) -> None:
        """An operand of all tokens: its leading dimensions of one must not add any."""
        value = port.get_source_output()
        shape = value.get_partial_shape()
        if not constant(value.get_node()) or shape.is_dynamic:
            raise _UnknownError
        whole = list(value.get_node().get_output_shape(value.get_index()))
        if math.prod(whole[:-1]) != 1:
            raise _UnknownError
        if len(whole) <= 2:
            return
        flat = opset.reshape(value, opset.constant([whole[-1]], ov.Type.i64), False)
        self.sources.append((port, flat.output(0)))

    def _last_axis(self, port: ov.Input) -> bool:
        if numbers(port.get_source_output()) not in ([-1], [2]):
            return False
        scalar = port.get_partial_shape().rank.get_length() == 0
        self._constants.append((port, np.array(-1 if scalar else [-1], np.int64)))
        return True


def _from_attention(node: ov.Node) -> ov.Output | None:
    """Attention's ``[tokens, heads * size]``, if all that happened to it since is reshaping."""
    value = _unswapped(node.input_value(0))
    if value is None or value.get_node().get_type_name() != "Reshape":
        return None
    value = value.get_node().input_value(0)
    if value.get_node().get_type_name() != "PagedAttentionExtension" or value.get_index() != 0:
        return None
    return value


def _back_to_rows(node: ov.Node) -> ov.Node | None:
    """The Reshape to ``[tokens, heads * size]`` that ends a way on which nothing is computed."""
    value = node.output(0)
    swaps = 0
    while True:
        users = [u for u in value.get_target_inputs() if u.get_node().get_type_name() != "ShapeOf"]
        if len(users) != 1 or users[0].get_index() != 0:
            return None
        user = users[0].get_node()
        if user.get_type_name() == "Transpose":
            if numbers(user.input_value(1)) != _SWAP:
                return None
            swaps += 1
            value = user.output(0)
            continue
        if user.get_type_name() != "Reshape" or swaps % 2:
            return None
        return user if numbers(user.input_value(1)) == [0, -1] else None


def _unswapped(value: ov.Output) -> ov.Output | None:
    """Before an even number of exchanges of the two middle dimensions."""
    swaps = 0
    while value.get_node().get_type_name() == "Transpose":
        if numbers(value.get_node().input_value(1)) != _SWAP:
            return None
        value = value.get_node().input_value(0)
        swaps += 1
    return None if swaps % 2 else value


def _key(value: ov.Output) -> tuple[str, int]:
    """Names of nodes are unique within a graph; the wrappers of Python are not the nodes."""
    return value.get_node().get_name(), value.get_index()
