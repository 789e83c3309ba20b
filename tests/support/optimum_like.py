"""An IR in the style of optimum-intel's exports, where one layer's shapes serve all others.

What leaks across every cut here: shapes of ``input_ids``, of the embeddings, of layer 0's residual
stream and rotated queries, of layer 0's past keys and of its concatenated keys; and the *type* of
layer 0's hidden state (ConvertLike).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo


class Builder:
    """Builds one model; ``weight`` makes a matrix from a name and a shape ``[out, in]``."""

    def __init__(
        self,
        layers: int,
        hidden: int = 64,
        heads: int = 4,
        kv_heads: int = 2,
        ffn: int = 96,
        vocab: int = 128,
        seed: int = 0,
        shared_from: int | None = None,
        weight: Callable[[str, tuple[int, int]], Any] | None = None,
    ) -> None:
        self.layers, self.hidden, self.heads, self.kv_heads = layers, hidden, heads, kv_heads
        self.ffn, self.vocab, self.size = ffn, vocab, hidden // heads
        self.shared_from = shared_from
        self.rng = np.random.default_rng(seed)
        self._weight = weight or self._random

    def _random(self, _name: str, shape: tuple[int, int]) -> Any:
        scale = 1 / np.sqrt(shape[1])
        return (self.rng.standard_normal(shape) * scale).astype(np.float16)

    def matrix(self, name: str, rows: int, columns: int) -> Any:
        return op.convert(op.constant(self._weight(name, (rows, columns))), "f32")

    def linear(self, x: Any, name: str, rows: int, columns: int) -> Any:
        return op.matmul(x, self.matrix(name, rows, columns), False, True)

    def norm(self, x: Any) -> Any:
        mean = op.reduce_mean(op.power(x, _f(2.0)), _i([-1]), True)
        return op.multiply(x, op.divide(_f(1.0), op.sqrt(op.add(mean, _f(1e-5)))))

    def state(self, name: str, batch: Any) -> tuple[Any, Variable]:
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, self.kv_heads, -1, self.size])
        info.data_type = ov.Type.f32
        info.variable_id = name
        variable = Variable(info)
        shape = op.concat([batch, _i([self.kv_heads]), _i([0]), _i([self.size])], 0)
        return op.read_value(op.broadcast(_f(0.0), shape), variable), variable

    def build(self) -> Any:
        ids = _parameter("input_ids", [-1, -1], np.int64)
        mask = _parameter("attention_mask", [-1, -1], np.int64)
        positions = _parameter("position_ids", [-1, -1], np.int64)
        beam = _parameter("beam_idx", [-1], np.int32)
        self.sinks: list[Any] = []
        self.leaks: dict[str, Any] = {}
        batch = _dim(op.shape_of(ids), 0)
        embedding = self.matrix("embedding", self.vocab, self.hidden)
        x = op.gather(embedding, ids, op.constant(0))
        self.leaks["embeds"] = op.shape_of(x)
        cos, sin = self.rotary(positions)
        keys_values: tuple[Any, Any] | None = None
        for i in range(self.layers):
            shared = self.shared_from is not None and i >= self.shared_from
            x, keys_values = self.layer(
                i, x, batch, beam, cos, sin, mask, keys_values if shared else None
            )
        logits = op.matmul(self.norm(x), embedding, False, True)
        result = op.result(logits)
        result.output(0).get_tensor().set_names({"logits"})
        return ov.Model([result], self.sinks, [ids, mask, positions, beam], "like_optimum")

    def rotary(self, positions: Any) -> tuple[Any, Any]:
        frequency = (10_000.0 ** -(np.arange(0, self.size, 2) / self.size)).astype(np.float32)
        angle = op.multiply(
            op.unsqueeze(op.convert(positions, "f32"), _i([2])), op.constant(frequency[None, None])
        )
        both = op.concat([angle, angle], 2)
        return op.unsqueeze(op.cos(both), _i([1])), op.unsqueeze(op.sin(both), _i([1]))

    def rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        half = self.size // 2
        low = op.slice(x, _i([0]), _i([half]), _i([1]), _i([3]))
        high = op.slice(x, _i([half]), _i([self.size]), _i([1]), _i([3]))
        turned = op.concat([op.multiply(high, _f(-1.0)), low], 3)
        # the type of a tensor of layer 0 serves all layers
        kind = self.leaks.setdefault("type", x)
        cos, sin = op.convert_like(cos, kind), op.convert_like(sin, kind)
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))

    def heads_of(self, x: Any, heads: int) -> Any:
        # batch and sequence from the embeddings' shape, made once
        shape = op.concat(
            [op.gather(self.leaks["embeds"], _i([0, 1]), op.constant(0)), _i([heads, self.size])], 0
        )
        return op.transpose(op.reshape(x, shape, False), _i([0, 2, 1, 3]))

    def layer(
        self,
        i: int,
        x: Any,
        batch: Any,
        beam: Any,
        cos: Any,
        sin: Any,
        mask: Any,
        shared: tuple[Any, Any] | None,
    ) -> tuple[Any, tuple[Any, Any]]:
        h, name = self.norm(x), f"layer{i}."
        q = self.heads_of(self.linear(h, name + "q", self.hidden, self.hidden), self.heads)
        q = self.rotate(q, cos, sin)
        if shared is None:
            wide = self.kv_heads * self.size
            k = self.heads_of(self.linear(h, name + "k", wide, self.hidden), self.kv_heads)
            k = self.rotate(k, cos, sin)
            v = self.heads_of(self.linear(h, name + "v", wide, self.hidden), self.kv_heads)
            k = self.extend(f"past_key_values.{i}.key", k, batch, beam)
            v = self.extend(f"past_key_values.{i}.value", v, batch, beam)
        else:
            k, v = shared
        if i == 0:
            self.leaks["total"] = op.shape_of(k)
            self.leaks["queries"] = op.shape_of(q)
        attended = op.scaled_dot_product_attention(
            q, self.repeat(k), self.repeat(v), self.causal(mask)
        )
        joined = op.reshape(
            op.transpose(attended, _i([0, 2, 1, 3])),
            op.concat(
                [op.gather(self.leaks["embeds"], _i([0, 1]), op.constant(0)), _i([self.hidden])], 0
            ),
            False,
        )
        x = op.add(x, self.linear(joined, name + "o", self.hidden, self.hidden))
        if i == 0:
            self.leaks["residual"] = op.shape_of(x)
        h = self.norm(x)
        gate = op.swish(self.linear(h, name + "gate", self.ffn, self.hidden))
        up = op.multiply(gate, self.linear(h, name + "up", self.ffn, self.hidden))
        # reshaped by the shape of layer 0's residual, as some exports do
        down = op.reshape(
            self.linear(up, name + "down", self.hidden, self.ffn), self.leaks["residual"], False
        )
        return op.add(x, down), (k, v)

    def extend(self, name: str, new: Any, batch: Any, beam: Any) -> Any:
        past, variable = self.state(name, batch)
        past = op.gather(past, beam, op.constant(0))
        self.leaks.setdefault("past", op.shape_of(past))
        whole = op.concat([past, new], 2)
        self.sinks.append(op.assign(whole, variable))
        return whole

    def repeat(self, x: Any) -> Any:
        group = self.heads // self.kv_heads
        if group == 1:
            return x
        total = self.leaks["total"]
        wide = op.broadcast(
            op.unsqueeze(x, _i([2])),
            op.concat(
                [_at(total, 0), _i([self.kv_heads]), _i([group]), _at(total, 2), _i([self.size])], 0
            ),
        )
        flat = op.concat([_at(total, 0), _i([self.heads]), _at(total, 2), _i([self.size])], 0)
        return op.reshape(wide, flat, False)

    def causal(self, mask: Any) -> Any:
        """Additive mask [B,1,S,T] from past, total and sequence length, made once."""
        if "mask" not in self.leaks:
            zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
            past = op.squeeze(_at(self.leaks["past"], 2), _i([0]))
            total = op.squeeze(_at(self.leaks["total"], 2), _i([0]))
            count = op.squeeze(_at(self.leaks["queries"], 2), _i([0]))
            rows = op.unsqueeze(op.range(past, op.add(past, count), one, "i64"), _i([1]))
            columns = op.unsqueeze(op.range(zero, total, one, "i64"), _i([0]))
            causal = op.unsqueeze(op.less_equal(columns, rows), _i([0, 1]))
            padding = op.unsqueeze(op.convert(mask, "boolean"), _i([1, 2]))
            self.leaks["mask"] = op.select(op.logical_and(causal, padding), _f(0.0), _f(-65504.0))
        return self.leaks["mask"]


def optimum_like(folder: Path, layers: int, **options: Any) -> Path:
    """Write ``openvino_model.xml`` and ``.bin`` into a folder; returns the XML's path."""
    folder.mkdir(parents=True, exist_ok=True)
    xml = folder / "openvino_model.xml"
    ov.save_model(Builder(layers, **options).build(), os.fspath(xml), compress_to_fp16=False)
    return xml


def random_bytes(seed: int) -> Callable[[str, tuple[int, int]], Any]:
    """Weights of any size quickly, for models that are never run."""
    rng = np.random.default_rng(seed)

    def weight(_name: str, shape: tuple[int, int]) -> Any:
        return np.frombuffer(rng.bytes(2 * shape[0] * shape[1]), np.float16).reshape(shape)

    return weight


def _parameter(name: str, shape: list[int], kind: Any) -> Any:
    parameter = op.parameter(shape, kind, name=name)
    parameter.output(0).get_tensor().set_names({name})
    return parameter


def _f(value: float) -> Any:
    return op.constant(np.array(value, np.float32))


def _i(values: list[int]) -> Any:
    return op.constant(np.array(values, np.int64))


def _dim(shape: Any, index: int) -> Any:
    return op.gather(shape, _i([index]), op.constant(0))


def _at(shape: Any, index: int) -> Any:
    return op.gather(shape, _i([index]), op.constant(0))
