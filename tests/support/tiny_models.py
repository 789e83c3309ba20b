"""Random language models of a few hundred kilobytes, as GGUF files that openvino-genai converts.

Their text is nonsense; their graphs, shapes, states and tokenizers are of the real kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize, quantize

ARCHITECTURES = ("llama", "qwen2", "qwen3")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
MERGES = ("h e", "t he", "Ġ the", "Ġ a", "i n", "l l", "e r", "o n", "Ġ i", "o r")

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TinyModel:
    """A written file and what is in it."""

    path: Path
    arch: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    rope_base: float
    weights: Mapping[str, Array] = field(repr=False)
    """By GGUF name, ``[out, in]``, as they read back from the file."""
    rope_factors: Array | None = None


def byte_tokens() -> list[str]:
    """The 256 bytes as the printable characters of byte-level BPE."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in printable}
    spare = iter(range(256, 512))
    return [table[b] if b in table else chr(next(spare)) for b in range(256)]


def vocabulary() -> tuple[list[str], list[str], list[int]]:
    """Tokens, merges and token types (1 normal, 3 control)."""
    tokens = [*SPECIAL, *byte_tokens(), *("".join(m.split(" ")) for m in MERGES)]
    types = [3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL))
    return tokens, list(MERGES), types


def tiny_gguf(
    path: Path,
    arch: str = "llama",
    layers: int = 3,
    *,
    hidden: int = 64,
    heads: int = 4,
    kv_heads: int = 2,
    head_size: int | None = None,
    ffn: int = 96,
    context: int = 512,
    quant: str = "F16",
    tied: bool = True,
    seed: int = 0,
    rope_base: float = 10_000.0,
    rope_factors: Sequence[float] | None = None,
    extra: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
) -> TinyModel:
    """Write a random model.

    Args:
        path: the file to write.
        arch: what the file claims to be; tensors are those of llama unless it is a qwen.
        layers: decoder layers.
        head_size: ``hidden // heads`` if not given.
        quant: GGML type of the matrices: F16, Q4_0, Q4_1, Q8_0, F32, BF16 …
        tied: no output matrix of its own.
        rope_factors: as in Llama 3 files, divisors of the frequencies, ``head_size / 2`` of them.
        extra: more metadata: integers, strings, lists of integers; None leaves a key out.
        without: metadata keys or tensor names to leave out.
    """
    rng = np.random.default_rng(seed)
    head_size = head_size or hidden // heads
    tokens, merges, types = vocabulary()
    vocab = len(tokens)
    kind = getattr(gguf.GGMLQuantizationType, quant)
    weights: dict[str, Array] = {}
    writer = gguf.GGUFWriter(path, arch)

    def add(name: str, array: Array, matrix: bool) -> None:
        if name in without:
            return
        if not matrix:
            writer.add_tensor(name, array)
            weights[name] = array
            return
        raw = quantize(array, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        weights[name] = dequantize(raw, kind)

    def matrix(name: str, rows: int, columns: int, scale: float = 1.0) -> None:
        values = rng.standard_normal((rows, columns)).astype(np.float32)
        add(name, values * np.float32(scale / np.sqrt(columns)), True)

    def vector(name: str, size: int, around: float = 1.0) -> None:
        add(name, (around + 0.1 * rng.standard_normal(size)).astype(np.float32), False)

    _metadata(writer, arch, layers, hidden, heads, kv_heads, ffn, context, rope_base, without)
    if head_size != hidden // heads:
        writer.add_key_length(head_size)
        writer.add_value_length(head_size)
    _tokenizer(writer, tokens, merges, types, without)
    for key, value in (extra or {}).items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_uint32(key, value)

    matrix("token_embd.weight", vocab, hidden, scale=4.0)
    for i in range(layers):
        block = f"blk.{i}."
        vector(block + "attn_norm.weight", hidden)
        matrix(block + "attn_q.weight", heads * head_size, hidden)
        matrix(block + "attn_k.weight", kv_heads * head_size, hidden)
        matrix(block + "attn_v.weight", kv_heads * head_size, hidden)
        matrix(block + "attn_output.weight", hidden, heads * head_size)
        if arch == "qwen2":
            vector(block + "attn_q.bias", heads * head_size, 0.0)
            vector(block + "attn_k.bias", kv_heads * head_size, 0.0)
            vector(block + "attn_v.bias", kv_heads * head_size, 0.0)
        if arch == "qwen3":
            vector(block + "attn_q_norm.weight", head_size)
            vector(block + "attn_k_norm.weight", head_size)
        vector(block + "ffn_norm.weight", hidden)
        matrix(block + "ffn_gate.weight", ffn, hidden)
        matrix(block + "ffn_up.weight", ffn, hidden)
        matrix(block + "ffn_down.weight", hidden, ffn)
    vector("output_norm.weight", hidden)
    if not tied:
        matrix("output.weight", vocab, hidden)
    factors = None
    if rope_factors is not None:
        factors = np.array(rope_factors, np.float32)
        add("rope_freqs.weight", factors, False)

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyModel(
        path=path,
        arch=arch,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        vocab=vocab,
        rope_base=rope_base,
        weights=weights,
        rope_factors=factors,
    )


def _metadata(
    writer: Any,
    arch: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    context: int,
    rope_base: float,
    without: Sequence[str],
) -> None:
    writer.add_name(f"tiny {arch}")
    writer.add_license("CC0-1.0")
    writer.add_block_count(layers)
    writer.add_context_length(context)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_freq_base(rope_base)
    writer.add_layer_norm_rms_eps(1e-5)
    if "general.file_type" not in without:
        writer.add_file_type(7)


def _tokenizer(
    writer: Any, tokens: list[str], merges: list[str], types: list[int], without: Sequence[str]
) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_merges(merges)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    if "tokenizer.ggml.eos_token_id" not in without:
        writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    if "tokenizer.chat_template" not in without:
        writer.add_chat_template(CHAT_TEMPLATE)


def reference_logits(model: TinyModel, ids: Sequence[int]) -> npt.NDArray[np.float64]:
    """What the file means, in plain numpy and double precision: logits ``[len(ids), vocab]``."""
    w = {name: array.astype(np.float64) for name, array in model.weights.items()}
    size, count = model.head_size, len(ids)
    frequency = model.rope_base ** (-np.arange(0, size, 2) / size)
    if model.rope_factors is not None:
        frequency = frequency / model.rope_factors
    angle = np.arange(count)[:, None] * frequency[None]
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def rotate(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        out = np.empty_like(x)
        # llama files interleave the two halves of a pair, qwen files keep them apart
        even, odd = (
            (slice(0, None, 2), slice(1, None, 2))
            if model.arch == "llama"
            else (slice(0, size // 2), slice(size // 2, None))
        )
        out[..., even] = x[..., even] * cos - x[..., odd] * sin
        out[..., odd] = x[..., odd] * cos + x[..., even] * sin
        return out

    def norm(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name]

    def linear(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)

    mask = np.triu(np.full((count, count), -np.inf), 1)
    x = w["token_embd.weight"][list(ids)]
    for i in range(model.layers):
        b = f"blk.{i}."
        h = norm(x, b + "attn_norm.weight")
        q = linear(h, b + "attn_q").reshape(count, model.heads, size)
        k = linear(h, b + "attn_k").reshape(count, model.kv_heads, size)
        v = linear(h, b + "attn_v").reshape(count, model.kv_heads, size)
        if model.arch == "qwen3":
            q, k = norm(q, b + "attn_q_norm.weight"), norm(k, b + "attn_k_norm.weight")
        q, k = rotate(q), rotate(k)
        group = model.heads // model.kv_heads
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + linear(np.einsum("hqk,khd->qhd", scores, v).reshape(count, -1), b + "attn_output")
        h = norm(x, b + "ffn_norm.weight")
        gate = linear(h, b + "ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, b + "ffn_up"), b + "ffn_down")
    h = norm(x, "output_norm.weight")
    return h @ w.get("output.weight", w["token_embd.weight"]).T
