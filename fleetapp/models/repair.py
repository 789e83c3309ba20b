"""Correcting what the GGUF converter and tokenizer exporters leave wrong, in the files they wrote.

Both change one small constant, found by structure. No OpenVINO.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fleetapp.errors import CorruptModel

_FLOATS = {"f32": np.float32, "f16": np.float16}
_PRECISION = {"f32": "FP32"}
_UNLIMITED = 2**31 - 1


class _Constant(NamedTuple):
    element: str
    shape: tuple[int, ...]
    offset: int
    size: int


class _Net:
    """Layers and edges of an IR's XML."""

    def __init__(self, xml: Path) -> None:
        try:
            self._tree = ET.parse(xml)  # noqa: S314 - expat limits entity expansion itself
        except ET.ParseError as e:
            raise CorruptModel(f"{xml.name} is not a well-formed graph file: {e}.") from e
        root = self._tree.getroot()
        self.kinds: dict[str, str] = {}
        self.constants: dict[str, _Constant] = {}
        for layer in root.iterfind("./layers/layer"):
            key = layer.get("id", "")
            self.kinds[key] = layer.get("type", "")
            data = layer.find("data")
            if self.kinds[key] == "Const" and data is not None:
                shape = tuple(int(d) for d in data.get("shape", "").split(",") if d.strip())
                self.constants[key] = _Constant(
                    data.get("element_type", ""),
                    shape,
                    int(data.get("offset", "0")),
                    int(data.get("size", "0")),
                )
        self.inputs: dict[str, list[str]] = {}
        for edge in root.iterfind("./edges/edge"):
            self.inputs.setdefault(edge.get("to-layer", ""), []).append(edge.get("from-layer", ""))

    def replace(self, constant: str, element: str, offset: int, size: int) -> None:
        """Let a constant have another type and lie elsewhere."""
        layer = next(
            e for e in self._tree.getroot().iterfind("./layers/layer") if e.get("id") == constant
        )
        data, port = layer.find("data"), layer.find("./output/port")
        if data is None or port is None:
            raise CorruptModel(f"Constant {constant} of the graph has no data.")
        data.attrib.update(element_type=element, offset=str(offset), size=str(size))
        port.set("precision", _PRECISION[element])

    def save(self, xml: Path) -> None:
        """Write the graph back."""
        self._tree.write(xml, encoding="utf-8", xml_declaration=True)

    def users(self, constant: str) -> set[str]:
        """Kinds of the operations that read a constant or another one at the same place."""
        same = {k for k, c in self.constants.items() if c.offset == self.constants[constant].offset}
        return {self.kinds[to] for to, froms in self.inputs.items() if same.intersection(froms)}


def lift_truncation(xml: Path) -> bool:
    """Let a tokenizer graph return every token of a long text.

    Exported tokenizers cut a text at a length that is baked in (8,192 tokens in those made from
    GGUF files), silently. Whether a prompt fits is for the engine to say, and it has to see all of
    it for that.

    Returns:
        Whether the graph had such a limit.
    """
    net = _Net(xml)
    lifted = False
    for layer, kind in net.kinds.items():
        if kind != "Minimum":
            continue
        for source in net.inputs.get(layer, ()):
            constant = net.constants.get(source)
            if constant is None or constant.element != "i32" or constant.size != 4:
                continue
            if net.users(source) == {"Minimum"}:
                _write(xml.with_suffix(".bin"), constant.offset, struct.pack("<i", _UNLIMITED))
                lifted = True
    return lifted


def set_frequencies(xml: Path, head_size: int, base: float, divisors: Sequence[float]) -> bool:
    """Give a graph made from a GGUF file the model's own rotary frequencies, in f32.

    Seen with openvino-genai 2026.4.1: it ignores ``rope_freqs.weight`` (Llama 3.1 and later) and
    linear scaling, so every answer differs from the model's; and it stores the frequencies of F16
    models rounded to f16, so that answers drift with every position. Can go when it does neither.

    Args:
        xml: the converted graph.
        head_size: of one attention head.
        base: of the rotary frequencies.
        divisors: one for each of the ``head_size / 2`` frequencies; 1 for no scaling.

    Returns:
        Whether anything had to be changed.

    Raises:
        CorruptModel: the frequencies are not where they should be.
    """
    half = head_size // 2
    plain = base ** -(np.arange(half, dtype=np.float64) * 2 / head_size)
    exact = (plain / np.asarray(divisors, np.float64)).astype(np.float32)
    net, weights = _Net(xml), xml.with_suffix(".bin")
    for key, constant in net.constants.items():
        if constant.element not in _FLOATS or constant.shape != (1, half, 1):
            continue
        with weights.open("rb") as file:
            file.seek(constant.offset)
            found = np.frombuffer(file.read(constant.size), _FLOATS[constant.element])
        if found.shape != plain.shape or not np.allclose(found, plain, rtol=2e-3, atol=1e-6):
            continue
        if constant.element == "f32":
            if np.allclose(found, exact, rtol=1e-6, atol=0):
                return False
            _write(weights, constant.offset, exact.tobytes())
        else:
            net.replace(key, "f32", weights.stat().st_size, exact.nbytes)
            _write(weights, weights.stat().st_size, exact.tobytes())
            net.save(xml)
        return True
    raise CorruptModel(f"The rotary frequencies of {xml.name} were not found.")


def _write(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
