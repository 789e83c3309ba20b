"""Finding the LM head by structure, on graphs small enough to see at a glance."""

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from fleetapp.engine.executor.device import core
from fleetapp.engine.executor.graph import SAMPLE_INDICES, _choose_rows

HIDDEN, VOCAB = 4, 10
WEIGHTS = np.arange(VOCAB * HIDDEN, dtype=np.float32).reshape(VOCAB, HIDDEN) / 10


def head(shape, tail=lambda x: x, weights=None, norm=True) -> ov.Model:
    x = op.parameter(shape, np.float32, name="x")
    y = op.multiply(x, op.constant(np.float32(2))) if norm else x
    w = op.constant(WEIGHTS) if weights is None else weights(x)
    logits = tail(op.matmul(y, w, transpose_a=False, transpose_b=True))
    return ov.Model([op.result(logits)], [x], "head")


def softcap(x):
    return op.multiply(
        op.tanh(op.divide(x, op.constant(np.float32(30)))), op.constant(np.float32(30))
    )


def run(model: ov.Model, **inputs):
    return core().compile_model(model, "CPU")(inputs)[0]


@pytest.mark.parametrize("shape", [[-1, 1, HIDDEN], [-1, HIDDEN]])
@pytest.mark.parametrize(
    "tail",
    [
        lambda x: x,
        softcap,
        lambda x: op.add(x, op.constant(np.ones(VOCAB, np.float32))),
        lambda x: op.convert(op.convert(x, np.float16), np.float32),
    ],
    ids=["plain", "soft-capped", "biased", "cast"],
)
def test_logits_of_chosen_rows_are_rows_of_all_logits(shape, tail) -> None:
    x = np.random.default_rng(0).standard_normal((6, *shape[1:])).astype(np.float32)
    everything = run(head(shape, tail), x=x)
    model = head(shape, tail)
    assert _choose_rows(model)
    rows = np.array([5, 0, 3], np.int64)
    assert np.allclose(run(model, x=x, **{SAMPLE_INDICES: rows}), everything[rows], atol=1e-5)


@pytest.mark.parametrize("kind", ["compressed", "scaled"])
def test_decompressed_weights_count_as_constant(kind: str) -> None:
    def weights(_):
        low = op.convert(op.constant(np.ones((VOCAB, HIDDEN), np.uint8)), np.float32)
        return op.multiply(low, op.constant(np.float32(0.5))) if kind == "scaled" else low

    assert _choose_rows(head([-1, 1, HIDDEN], weights=weights))


@pytest.mark.parametrize(
    "model",
    [
        head([-1, HIDDEN], lambda x: op.softmax(x, 1)),
        head([-1, HIDDEN], lambda x: op.add(x, op.relu(x))),
        head([-1, VOCAB], weights=lambda x: x),
        head([3, HIDDEN]),
        head([2, 3, -1, HIDDEN]),
    ],
    ids=["not elementwise", "two branches", "no constant", "fixed rows", "four dimensions"],
)
def test_anything_else_keeps_its_full_logits(model: ov.Model) -> None:
    before = [p.get_any_name() for p in model.inputs if p.names]
    assert not _choose_rows(model)
    assert [p.get_any_name() for p in model.inputs if p.names] == before
