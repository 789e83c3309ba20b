"""Small questions about the nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import openvino as ov


def numbers(value: ov.Output) -> list[int] | None:
    """What a constant says, flat; None for anything else."""
    node = value.get_node()
    if node.get_type_name() != "Constant":
        return None
    return [int(v) for v in np.ravel(node.get_data())]


def constant(node: ov.Node) -> bool:
    """True if nothing but constants feeds the node (weights and their decompression)."""
    if node.get_type_name() == "Constant":
        return True
    sources = [v.get_node() for v in node.input_values()]
    return bool(sources) and all(constant(s) for s in sources)


def raw(values: Any) -> npt.NDArray[np.uint8]:
    """The bytes of a constant or tensor, to read or write: numpy has neither int4 nor bfloat16."""
    return np.ravel(values.data).view(np.uint8)
