"""What a GGUF file holds, read with every length checked against the file. No OpenVINO.

The tables of types and block sizes are the ``gguf`` package's. Its reader is not used: it believes
every length in the file, so one damaged count makes it loop for hours or fill the memory.
Layout: the specification of the ggml project, ``docs/gguf.md``.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gguf.constants import GGML_QUANT_SIZES, GGUF_MAGIC, GGMLQuantizationType, GGUFValueType

from fleetapp.errors import CorruptModel, NotAModel, UnknownArchitecture, Unsupported
from fleetapp.models.facts import Description

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""What openvino-genai 2026.4 converts."""
_ELSEWHERE = (
    "Export it to an OpenVINO IR folder with optimum-intel on another machine "
    "and import that with 'fleetapp model import FOLDER'."
)
MATRIX_TYPES = ("F16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K")
"""Types of weight matrices that it reads (seen with 2026.4.1: F32 and BF16 are refused too)."""
_PARTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down", "ffn_gate")
_NEEDED = (
    "general.file_type",
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.pre",
)
_MOST_KEYS = 65_536
_MOST_TENSORS = 1_048_576
_MOST_ELEMENTS = 16_777_216
_LONGEST_KEPT = 1_048_576
_MAX_DIMS = 4
_SCALARS: dict[int, struct.Struct] = {
    GGUFValueType.UINT8: struct.Struct("<B"),
    GGUFValueType.INT8: struct.Struct("<b"),
    GGUFValueType.UINT16: struct.Struct("<H"),
    GGUFValueType.INT16: struct.Struct("<h"),
    GGUFValueType.UINT32: struct.Struct("<I"),
    GGUFValueType.INT32: struct.Struct("<i"),
    GGUFValueType.FLOAT32: struct.Struct("<f"),
    GGUFValueType.BOOL: struct.Struct("<?"),
    GGUFValueType.UINT64: struct.Struct("<Q"),
    GGUFValueType.INT64: struct.Struct("<q"),
    GGUFValueType.FLOAT64: struct.Struct("<d"),
}
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_LISTED = frozenset({"tokenizer.ggml.eos_token_ids", "tokenizer.ggml.eot_token_ids"})


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor; offset from the start of the data section."""

    name: str
    dims: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GgufInfo:
    """A checked header. Arrays in ``values`` are their lengths, except a few short ones."""

    size: int
    data_start: int
    """Where tensor data begins."""
    values: dict[str, Any] = field(repr=False)
    tensors: tuple[Tensor, ...] = field(repr=False)

    @property
    def architecture(self) -> str:
        """The family's name in lower case, or empty."""
        value = self.values.get("general.architecture", "")
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | None:
        """An integer of the family (``<family>.<key>``), or None."""
        return _as_int(self.values.get(f"{self.architecture}.{key}"))


def _as_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Cursor:
    """Reads little-endian values from a buffer and never beyond its end."""

    def __init__(self, data: mmap.mmap, name: str) -> None:
        self.data, self.at, self.name = data, 0, name

    def need(self, size: int) -> int:
        at = self.at
        if size > len(self.data) - at:
            raise CorruptModel(f"{self.name} ends in the middle of its header; it is truncated.")
        self.at = at + size
        return at

    def scalar(self, kind: struct.Struct) -> Any:
        return kind.unpack_from(self.data, self.need(kind.size))[0]

    def text(self) -> str:
        size = self.scalar(_U64)
        at = self.need(size)
        if size > _LONGEST_KEPT:
            return ""
        return self.data[at : at + size].decode("utf-8", "replace")

    def skip_text(self) -> None:
        self.need(self.scalar(_U64))

    def value(self, key: str) -> Any:
        kind = self.scalar(_U32)
        if kind == GGUFValueType.STRING:
            return self.text()
        if kind == GGUFValueType.ARRAY:
            return self.array(key)
        scalar = _SCALARS.get(kind)
        if scalar is None:
            raise CorruptModel(f"{self.name}: '{key[:60]}' has the unknown type {kind}.")
        return self.scalar(scalar)

    def array(self, key: str) -> Any:
        kind, count = self.scalar(_U32), self.scalar(_U64)
        if count > min(_MOST_ELEMENTS, len(self.data)):
            raise CorruptModel(f"{self.name}: '{key[:60]}' claims {count} elements.")
        if kind == GGUFValueType.STRING:
            for _ in range(count):
                self.skip_text()
            return count
        scalar = _SCALARS.get(kind)
        if scalar is None:
            raise CorruptModel(f"{self.name}: '{key[:60]}' is an array of unknown type {kind}.")
        if key in _LISTED and count <= _MAX_DIMS * 64:
            return [self.scalar(scalar) for _ in range(count)]
        self.need(scalar.size * count)
        return count


def read(path: Path) -> GgufInfo:
    """Read and check a GGUF file's header; tensor data is not touched.

    Raises:
        NotAModel: another kind of file.
        CorruptModel: truncated, or its tables are damaged.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            if file.read(4) != _U32.pack(GGUF_MAGIC):
                raise NotAModel(f"{path.name} is not a GGUF file.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(_Cursor(data, path.name), size)
    except OSError as e:
        raise NotAModel(f"{path} cannot be read: {e.strerror}.") from e


def _parse(cursor: _Cursor, size: int) -> GgufInfo:
    cursor.at = 4
    version = cursor.scalar(_U32)
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        what = "is big-endian" if swapped in (2, 3) else f"has version {version}"
        raise CorruptModel(
            f"{cursor.name} {what}; only little-endian GGUF version 2 and 3 are read."
        )
    tensors, keys = cursor.scalar(_U64), cursor.scalar(_U64)
    if tensors > _MOST_TENSORS or keys > _MOST_KEYS:
        raise CorruptModel(f"{cursor.name} claims {tensors} tensors and {keys} keys.")
    values: dict[str, Any] = {}
    for _ in range(keys):
        key = cursor.text()
        if key in values:
            raise CorruptModel(f"{cursor.name} has the key '{key[:60]}' twice.")
        values[key] = cursor.value(key)
    table = tuple(_tensor(cursor) for _ in range(tensors))
    if len({t.name for t in table}) != len(table):
        raise CorruptModel(f"{cursor.name} has two tensors of one name.")
    align = values.get("general.alignment", 32)
    if not isinstance(align, int) or align <= 0 or align & (align - 1) or align > 1 << 20:
        raise CorruptModel(f"{cursor.name} has the impossible alignment {align}.")
    start = -(-cursor.at // align) * align
    for tensor in table:
        if tensor.offset % align:
            raise CorruptModel(f"{cursor.name}: tensor '{tensor.name}' is not aligned.")
        if start + tensor.offset + tensor.nbytes > size:
            raise CorruptModel(
                f"{cursor.name} is truncated: tensor '{tensor.name}' needs "
                f"{start + tensor.offset + tensor.nbytes} bytes, the file has {size}."
            )
    return GgufInfo(size=size, data_start=start, values=values, tensors=table)


def _tensor(cursor: _Cursor) -> Tensor:
    name = cursor.text()
    count = cursor.scalar(_U32)
    if not 1 <= count <= _MAX_DIMS:
        raise CorruptModel(f"{cursor.name}: tensor '{name[:60]}' has {count} dimensions.")
    dims = tuple(cursor.scalar(_U64) for _ in range(count))
    raw, offset = cursor.scalar(_U32), cursor.scalar(_U64)
    try:
        kind = GGMLQuantizationType(raw)
        block, block_bytes = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise CorruptModel(
            f"{cursor.name}: tensor '{name[:60]}' has the unknown type {raw}."
        ) from None
    elements = 1
    for dim in dims:
        elements *= dim
    if not elements or dims[0] % block:
        raise CorruptModel(f"{cursor.name}: tensor '{name[:60]}' has the odd shape {dims}.")
    return Tensor(name[:200], dims, kind, offset, elements // block * block_bytes)


def require_convertible(info: GgufInfo, name: str) -> None:
    """Raise unless openvino-genai can convert the file.

    Raises:
        UnknownArchitecture: another family, or a quantisation it does not read.
        CorruptModel: the family's own numbers or tensors are missing.
    """
    family = info.architecture
    if not family:
        raise CorruptModel(f"{name} does not say which architecture it has.")
    if family not in ARCHITECTURES:
        raise UnknownArchitecture(
            f"{name} has the architecture '{family[:40]}'; GGUF files of "
            f"{', '.join(ARCHITECTURES)} can be imported.",
            remedy=_ELSEWHERE,
        )
    if info.number("expert_count"):
        raise UnknownArchitecture(
            f"{name} is a mixture of experts, which cannot be imported from a GGUF file.",
            remedy=_ELSEWHERE,
        )
    if (info.values.get("split.count") or 0) > 1:
        raise Unsupported(
            f"{name} is one of {info.values['split.count']} parts of a model.",
            remedy="Join them with llama.cpp's 'llama-gguf-split --merge' and import the result.",
        )
    if info.values.get("tokenizer.ggml.model") != "gpt2":
        raise UnknownArchitecture(
            f"{name} has a tokenizer of the kind '{info.values.get('tokenizer.ggml.model')}'; "
            "byte-level BPE (gpt2) can be imported from GGUF files.",
            remedy=_ELSEWHERE,
        )
    _require_complete(info, name)
    _require_types(info, name)
    rope(info, name)


def _require_complete(info: GgufInfo, name: str) -> None:
    layers, hidden = info.number("block_count"), info.number("embedding_length")
    heads = info.number("attention.head_count")
    if not layers or not hidden or not heads or min(layers, hidden, heads) < 1:
        raise CorruptModel(f"{name} lacks its numbers of layers, heads or hidden size.")
    keys = (*_NEEDED, f"{info.architecture}.attention.layer_norm_rms_epsilon")
    if lacking := next((k for k in keys if k not in info.values), None):
        raise CorruptModel(f"{name} lacks the key '{lacking}'.")
    names = {t.name for t in info.tensors}
    wanted = ["token_embd.weight", "output_norm.weight"]
    wanted += [f"blk.{i}.{part}.weight" for i in range(min(layers, 4096)) for part in _PARTS]
    if lacking := next((w for w in wanted if w not in names), None):
        raise CorruptModel(f"{name} lacks the tensor '{lacking}' of its {layers} layers.")


def _require_types(info: GgufInfo, name: str) -> None:
    for tensor in info.tensors:
        matrix = tensor.name.endswith(".weight") and len(tensor.dims) > 1
        if matrix and tensor.kind.name not in MATRIX_TYPES:
            raise UnknownArchitecture(
                f"{name} has weights of the type {tensor.kind.name}; "
                f"{', '.join(MATRIX_TYPES)} can be imported.",
                remedy="Get the file in one of these types, for example Q4_K_M or Q8_0.",
            )


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary frequencies: ``base ** (-2 i / head_size) / divisors[i]``."""

    head_size: int
    base: float
    divisors: tuple[float, ...]


def rope(info: GgufInfo, name: str, path: Path | None = None) -> Rope:
    """Return the rotary frequencies of a file, scaling included.

    Args:
        info: its header.
        name: for messages.
        path: the file, to read ``rope_freqs.weight``; without it divisors of 1 stand for them.

    Raises:
        UnknownArchitecture: a kind of scaling that cannot be added after conversion.
    """
    heads, hidden = info.number("attention.head_count"), info.number("embedding_length")
    size = info.number("attention.key_length") or (hidden or 0) // (heads or 1)
    kind = info.values.get(f"{info.architecture}.rope.scaling.type", "none")
    rotated = info.number("rope.dimension_count") or size
    if kind not in ("none", "linear", "llama3") or rotated != size:
        raise UnknownArchitecture(
            f"{name} scales its rotary positions in a way that cannot be imported ({kind}, "
            f"{rotated} of {size} dimensions).",
            remedy=_ELSEWHERE,
        )
    base = info.values.get(f"{info.architecture}.rope.freq_base", 10_000.0)
    factor = info.values.get(f"{info.architecture}.rope.scaling.factor", 1.0)
    divisors = [1.0] * (size // 2)
    if kind == "linear" and isinstance(factor, float) and factor > 0:
        divisors = [factor] * (size // 2)
    table = next((t for t in info.tensors if t.name == "rope_freqs.weight"), None)
    if table is not None:
        if table.kind.name != "F32" or table.dims != (size // 2,):
            raise CorruptModel(f"{name}: 'rope_freqs.weight' has an odd type or shape.")
        if path is not None:
            with path.open("rb") as file:
                file.seek(info.data_start + table.offset)
                divisors = list(struct.unpack(f"<{size // 2}f", file.read(table.nbytes)))
            if not all(0 < d < 1e6 for d in divisors):
                raise CorruptModel(f"{name}: 'rope_freqs.weight' makes no sense.")
    return Rope(size, float(base), tuple(divisors))


def describe(info: GgufInfo) -> Description:
    """Take from a header what the graph does not say."""
    values = info.values
    ids: set[int] = set()
    pick: Callable[[str], Any] = lambda key: values.get(f"tokenizer.ggml.{key}")  # noqa: E731
    for key in ("eos_token_id", "eot_token_id", "eom_token_id", "eos_token_ids", "eot_token_ids"):
        value = pick(key)
        ids.update(v for v in (value if isinstance(value, list) else [value]) if _is_id(v))
    bos, add_bos = pick("bos_token_id"), pick("add_bos_token")
    template = values.get("tokenizer.chat_template")
    by_type: dict[str, int] = {}
    for tensor in info.tensors:
        by_type[tensor.kind.name] = by_type.get(tensor.kind.name, 0) + tensor.nbytes
    name = values.get("general.name", "")
    licence = values.get("general.license", "")
    return Description(
        family=info.architecture,
        name=name if isinstance(name, str) else "",
        licence=licence if isinstance(licence, str) else "",
        context_length=info.number("context_length") or 0,
        eos_ids=tuple(sorted(ids)),
        bos_id=bos if _is_id(bos) and add_bos is not False else None,
        chat_template=template if isinstance(template, str) and template else None,
        quantization="GGUF " + (max(by_type, key=lambda k: by_type[k]) if by_type else ""),
    )


def _is_id(value: object) -> bool:
    number = _as_int(value)
    return number is not None and number >= 0
