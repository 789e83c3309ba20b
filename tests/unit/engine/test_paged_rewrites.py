"""What is done to a paged graph before it is compiled: fewer operations, the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from fleetapp.engine.executor import graph
from fleetapp.engine.executor.device import core
from fleetapp.engine.executor.flatten import flatten_tokens
from fleetapp.engine.executor.nodes import constant
from fleetapp.engine.executor.paged import load
from fleetapp.engine.executor.rotary import join_rotations
from fleetapp.engine.executor.symmetric import make_symmetric
from fleetapp.models.library import Library
from fleetapp.types import LayerRange, Precision
from fleetapp.wire.frames import Segment
from tests.support.sample_model import NobodySigns
from tests.support.stages import LAYERS, shard
from tests.support.tiny_models import ARCHITECTURES, tiny_gguf

HIDDEN = 64


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A small model of each architecture, four bits a weight."""
    root = tmp_path_factory.mktemp("tiny")
    library = Library(root / "models", NobodySigns())
    for seed, arch in enumerate(ARCHITECTURES):
        model = tiny_gguf(root / f"{arch}.gguf", arch, 3, quant="Q8_0", seed=seed)
        library.import_path(model.path, arch)
    return library


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Within it graphs are compiled as they are."""
    with monkeypatch.context() as patch:
        for name in ("make_symmetric", "join_projections", "flatten_tokens", "join_rotations"):
            patch.setattr(graph, name, lambda _: 0)
        yield patch


def outputs(stage: Path, precision: Precision) -> list[np.ndarray]:
    """What two prompts gave, one of them in pieces, and then decodes, one with drafts."""
    executor = load(stage, precision=precision, threads=1, kv_bytes=32 << 20, max_context=256)
    info = executor.info
    rng = np.random.default_rng(3)

    def inputs(count: int) -> np.ndarray:
        if info.first:
            return rng.integers(0, info.vocab, count)
        return rng.standard_normal((count, info.hidden)).astype(np.float32)

    executor.open(0, 1)
    executor.open(1, 1)
    frames = [
        (Segment(0, 1, 0, 40, sample=False),),
        (Segment(1, 1, 0, 7, sample=True), Segment(0, 1, 40, 5, sample=True)),
        (Segment(1, 1, 7, 1, sample=True), Segment(0, 1, 45, 1, sample=True)),
        (Segment(1, 1, 8, 3, sample=True, drafts=(5, 6)), Segment(0, 1, 46, 1, sample=True)),
    ]
    return [executor.forward(frame, inputs(sum(s.count for s in frame))).copy() for frame in frames]


def both(stage: Path, precision: Precision, plain: pytest.MonkeyPatch):
    without = outputs(stage, precision)
    plain.undo()
    return without, outputs(stage, precision)


@pytest.mark.model
@pytest.mark.parametrize("layers", [(0, 3), (1, 3), (LAYERS - 2, LAYERS)], ids=str)
def test_the_sample_models_stages_give_the_same_bits(layers, plain) -> None:
    without, rewritten = both(shard(*layers), "exact", plain)
    assert all(map(np.array_equal, without, rewritten))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_other_architectures_give_the_same_bits(tiny, arch, plain) -> None:
    stage = tiny.stage(arch, LayerRange(0, 3)).path
    without, rewritten = both(stage, "exact", plain)
    assert all(map(np.array_equal, without, rewritten))


@pytest.mark.model
def test_fast_differs_by_rounding_at_most(plain) -> None:
    without, rewritten = both(shard(LAYERS - 2, LAYERS), "fast", plain)
    for one, other in zip(without[1:], rewritten[1:], strict=True):  # the first samples nothing
        assert np.abs(one - other).max() <= 0.05 * np.abs(one).max()


def read(start: int, stop: int) -> ov.Model:
    stage = shard(start, stop) / "stage.xml"
    return graph.read_paged(stage, last=stop == LAYERS, hidden=576, activations="f32").model


def count(model: ov.Model, kind: str) -> int:
    return sum(node.get_type_name() == kind for node in model.get_ordered_ops())


@pytest.mark.model
@pytest.mark.parametrize("layers", [(0, 3), (1, 3), (LAYERS - 2, LAYERS)], ids=str)
def test_every_layer_of_the_sample_model_is_rewritten(layers, plain) -> None:
    model = read(*layers)
    products = count(model, "MatMul")
    plain.undo()
    model = read(*layers)
    many = layers[1] - layers[0]
    assert count(model, "MatMul") == products - 2 * many
    assert count(model, "VariadicSplit") == 2 * many
    hidden = [n for n in model.get_ordered_ops() if n.get_type_name() == "MatMul"][1:]
    ranks = {n.output(0).get_partial_shape().rank.get_length() for n in hidden if _of_weights(n)}
    assert ranks == {2}


def _of_weights(product: ov.Node) -> bool:
    return constant(product.input_value(1).get_node())


def test_norms_of_heads_keep_queries_and_keys_apart(tiny) -> None:
    """Qwen3 scales the heads of queries and of keys with weights of their own."""
    stage = tiny.stage("qwen3", LayerRange(0, 3)).path / "stage.xml"
    model = graph.read_paged(stage, last=True, hidden=HIDDEN, activations="f32").model
    attentions = [n for n in model.get_ordered_ops() if "PagedAttention" in n.get_type_name()]
    assert len(attentions) == 3
    for node in attentions:
        sources = {node.input_value(i).get_node().get_name() for i in range(2)}
        assert len(sources) == 2
    assert join_rotations(model) == 0


def rows(*, strange: bool) -> ov.Model:
    """Hidden states that come in as rows and are given a dimension of one, as after paging."""
    x = op.parameter([-1, HIDDEN], np.float32, name="inputs_embeds")
    x.output(0).get_tensor().set_names({"inputs_embeds"})
    y = op.unsqueeze(x, op.constant(np.array(1)))
    y = op.multiply(y, op.constant(np.full((1, 1, HIDDEN), 2, np.float32)))
    y = op.cum_sum(y, op.constant(np.array(0))) if strange else op.tanh(y)
    return ov.Model([op.result(y)], [x], "rows")


def test_what_is_not_understood_stays_as_it_is() -> None:
    model = rows(strange=True)
    before = [node.get_friendly_name() for node in model.get_ordered_ops()]
    assert not flatten_tokens(model)
    assert [node.get_friendly_name() for node in model.get_ordered_ops()] == before
    assert model.output(0).get_partial_shape().rank.get_length() == 3


def test_rows_stay_rows() -> None:
    x = np.random.default_rng(0).standard_normal((5, HIDDEN)).astype(np.float32)
    expected = core().compile_model(rows(strange=False), "CPU")({0: x})[0]
    model = rows(strange=False)
    assert flatten_tokens(model)
    got = core().compile_model(model, "CPU")({0: x})[0]
    assert got.shape == (5, HIDDEN)
    assert np.array_equal(got, expected[:, 0])


def packed(element: ov.Type, rng: np.random.Generator, zero: int, odd: int | None) -> ov.Model:
    groups = HIDDEN // 32
    tensor = ov.Tensor(element, ov.Shape([3, groups, 32]))
    raw = np.ravel(tensor.data).view(np.uint8)
    raw[:] = rng.integers(0, 256, raw.size).astype(np.uint8)
    table = ov.Tensor(element, ov.Shape([3, groups, 1]))
    np.ravel(table.data).view(np.uint8)[:] = zero
    if odd is not None:
        np.ravel(table.data).view(np.uint8)[-1] = odd
    low, zeros = (op.convert(ov.op.Constant(t), np.float16) for t in (tensor, table))
    scale = op.constant(rng.uniform(0.01, 0.02, (3, groups, 1)).astype(np.float16))
    whole = op.multiply(op.subtract(low, zeros), scale)
    flat = op.reshape(whole, op.constant(np.array([3, HIDDEN])), special_zero=False)
    x = op.parameter([-1, HIDDEN], np.float32, name="x")
    product = op.matmul(x, op.convert(flat, np.float32), False, True)
    return ov.Model([op.result(product)], [x], "packed")


EXACT = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}


@pytest.mark.parametrize(("element", "zero"), [(ov.Type.u8, 128), (ov.Type.u4, 0x88)])
def test_weights_around_the_middle_become_signed_and_stay_the_same(element, zero) -> None:
    x = np.random.default_rng(1).standard_normal((4, HIDDEN)).astype(np.float32)
    model, signed = (packed(element, np.random.default_rng(5), zero, None) for _ in range(2))
    assert make_symmetric(signed) == 1
    assert count(signed, "Subtract") == 0
    expected = core().compile_model(model, "CPU", EXACT)({0: x})[0]
    got = core().compile_model(signed, "CPU", EXACT)({0: x})[0]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("element", "zero", "odd"), [(ov.Type.u8, 128, 127), (ov.Type.u4, 0x88, 0x78)]
)
def test_one_zero_point_elsewhere_keeps_all_of_them(element, zero, odd) -> None:
    model = packed(element, np.random.default_rng(5), zero, odd)
    assert make_symmetric(model) == 0
    assert count(model, "Subtract") == 1
