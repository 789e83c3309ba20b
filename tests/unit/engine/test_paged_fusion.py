"""Joining the products of one input: fewer operations, the same bits."""

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from fleetapp.engine.executor.device import core
from fleetapp.engine.executor.fusion import join_projections

HIDDEN = 64
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
FAST = {"KV_CACHE_PRECISION": "u8"}


def dense(rows: int, rng: np.random.Generator) -> ov.Node:
    values = rng.standard_normal((rows, HIDDEN)).astype(np.float16)
    return op.convert(op.constant(values), np.float32)


def bytes_(rows: int, rng: np.random.Generator) -> ov.Node:
    low = op.constant(rng.integers(-127, 127, (rows, HIDDEN)).astype(np.int8))
    scale = op.constant(rng.uniform(0.01, 0.02, (rows, 1)).astype(np.float16))
    return op.convert(op.multiply(op.convert(low, np.float16), scale), np.float32)


def nibbles(rows: int, rng: np.random.Generator) -> ov.Node:
    def packed(columns: int) -> ov.Node:
        tensor = ov.Tensor(ov.Type.u4, ov.Shape([rows, HIDDEN // 32, columns]))
        raw = np.ravel(tensor.data).view(np.uint8)
        raw[:] = rng.integers(0, 256, raw.size).astype(np.uint8)
        return op.convert(ov.op.Constant(tensor), np.float16)

    scale = op.constant(rng.uniform(0.01, 0.02, (rows, HIDDEN // 32, 1)).astype(np.float16))
    whole = op.multiply(op.subtract(packed(32), packed(1)), scale)
    flat = op.reshape(whole, op.constant(np.array([rows, HIDDEN])), special_zero=False)
    return op.convert(flat, np.float32)


def separate(weights) -> ov.Model:
    """Three products, each of a node of its own."""
    rng = np.random.default_rng(7)
    x = op.parameter([-1, HIDDEN], np.float32, name="x")
    shape = op.constant(np.array([0, -1, 16]))
    products = [op.matmul(op.tanh(x), weights(rows, rng), False, True) for rows in (64, 16, 16)]
    results = [op.result(op.reshape(y, shape, special_zero=True)) for y in products]
    return ov.Model(results, [x], "separate")


def shared(weights, before=lambda y: y) -> ov.Model:
    """Three products of one node; ``before`` is what happens to them before they are reshaped."""
    rng = np.random.default_rng(7)
    x = op.parameter([-1, HIDDEN], np.float32, name="x")
    y = op.tanh(x)
    shape = op.constant(np.array([0, -1, 16]))
    results = []
    for rows in (64, 16, 16):
        product = op.matmul(y, weights(rows, rng), transpose_a=False, transpose_b=True)
        results.append(op.result(op.reshape(before(product), shape, special_zero=True)))
    return ov.Model(results, [x], "shared")


def products(model: ov.Model) -> int:
    return sum(node.get_type_name() == "MatMul" for node in model.get_ops())


@pytest.mark.parametrize("config", [EXACT, FAST], ids=["exact", "fast"])
@pytest.mark.parametrize("weights", [dense, bytes_, nibbles])
@pytest.mark.parametrize("tokens", [1, 5, 40])
def test_joined_products_give_the_same_bits(weights, config, tokens: int) -> None:
    x = np.random.default_rng(1).standard_normal((tokens, HIDDEN)).astype(np.float32)
    model, joined = shared(weights), shared(weights)
    assert join_projections(joined) == 1
    assert (products(model), products(joined)) == (3, 1)
    expected = core().compile_model(model, "CPU", config)({"x": x})
    got = core().compile_model(joined, "CPU", config)({"x": x})
    for i in range(3):
        assert np.array_equal(got[i], expected[i])


def test_products_that_a_plugin_completes_itself_are_left_alone() -> None:
    biased = shared(dense, before=lambda y: op.add(y, op.constant(np.float32(1))))
    assert join_projections(biased) == 0


def test_products_of_different_inputs_are_left_alone() -> None:
    assert join_projections(separate(dense)) == 0


def test_weights_of_different_kinds_are_left_alone() -> None:
    kinds = [dense, bytes_, nibbles]

    def next_kind(rows: int, rng: np.random.Generator) -> ov.Node:
        return kinds.pop()(rows, rng)

    assert join_projections(shared(next_kind)) == 0
