"""The chooser of cuts: pure, on graphs small enough to draw."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import CannotSplit
from fleetapp.models.cuts import ATTENTION, Op, bottlenecks, depths, examine, plan_stage, weigh
from fleetapp.types import LayerRange


class Sketch:
    """Draws a graph operation by operation."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __call__(self, kind: str, *inputs: int, **more: object) -> int:
        more.setdefault("name", f"{kind}{len(self.ops)}")
        self.ops.append(Op(kind, inputs, **more))  # type: ignore[arg-type]
        return len(self.ops) - 1


def language_model(
    layers: int,
    *,
    share_keys_from: int | None = None,
    skip_from: int | None = None,
    leak_shape: bool = True,
) -> tuple[list[Op], int, int]:
    """A decoder. ``share_keys_from``: those layers read layer 0's state. ``skip_from``: the
    embeddings are added again after that layer (per-layer embeddings)."""
    g = Sketch()
    ids = g("Parameter")
    mask = g("Parameter")
    x = embeds = g("Gather", g("Constant", nbytes=1000), ids, hidden=8)
    shape = g("ShapeOf", embeds) if leak_shape else g("Constant", nbytes=0)
    state = -1
    for i in range(layers):
        h = g("Multiply", x, g("Constant", nbytes=1), hidden=8)
        q = g("MatMul", h, g("Constant", nbytes=10))
        if share_keys_from is None or i < share_keys_from or state < 0:
            state = g("ReadValue", shape, state=f"s{i}")
            k = g("Concat", state, g("MatMul", h, g("Constant", nbytes=10)))
            g("Assign", k, state=f"s{i}")
        attended = g(ATTENTION, q, k, k, mask)
        joined = g("Reshape", attended, shape, hidden=8)
        x = g("Add", x, joined, hidden=8)
        x = g("Add", x, g("MatMul", x, g("Constant", nbytes=100), hidden=8), hidden=8)
        if skip_from is not None and i >= skip_from:
            x = g("Add", x, embeds, hidden=8)
    head = g("Multiply", x, g("Constant", nbytes=1), hidden=8)
    logits = g("MatMul", head, g("Constant", nbytes=500), hidden=32)
    return g.ops, ids, logits


def test_the_layer_of_an_operation_is_the_number_of_attentions_before_it() -> None:
    ops, _, logits = language_model(3)
    assert depths(ops)[logits] == 3
    assert [depths(ops)[i] for i, op in enumerate(ops) if op.kind == ATTENTION] == [0, 1, 2]


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_every_layer_of_an_ordinary_decoder_can_be_cut_off(layers: int) -> None:
    anatomy = examine(*language_model(layers))
    assert anatomy.layers == layers
    assert all(c is not None for c in anatomy.cuts)
    for k, cut in enumerate(anatomy.cuts):
        assert cut is not None
        assert anatomy.ops[cut].kind == ("Add" if k else "Gather"), "the residual stream"


def test_a_stage_holds_its_own_states_and_asks_shapes_of_nobody_else() -> None:
    anatomy = examine(*language_model(4))
    plan = plan_stage(anatomy, LayerRange(1, 3))
    assert plan.states == ("s1", "s2")
    assert [anatomy.ops[i].kind for i in plan.foreign_shapes] == ["ShapeOf"]
    assert plan_stage(anatomy, LayerRange(0, 2)).foreign_shapes == ()


def test_the_whole_model_is_a_stage_too() -> None:
    anatomy = examine(*language_model(2))
    plan = plan_stage(anatomy, LayerRange(0, 2))
    assert (plan.entry, plan.exit) == (None, anatomy.result)
    assert plan.parameters == (0, 1)


def test_keys_shared_across_a_cut_are_refused_by_name() -> None:
    anatomy = examine(*language_model(4, share_keys_from=2))
    plan_stage(anatomy, LayerRange(0, 1))  # layer 0 keeps its keys to itself
    with pytest.raises(CannotSplit, match="Between layers 1 and 2"):
        plan_stage(anatomy, LayerRange(0, 2))


def test_a_second_stream_across_a_cut_is_refused() -> None:
    anatomy = examine(*language_model(3, skip_from=2))
    with pytest.raises(CannotSplit, match="Between layers 0 and 1"):
        plan_stage(anatomy, LayerRange(0, 1))


@pytest.mark.parametrize("layers", [LayerRange(0, 0), LayerRange(2, 1), LayerRange(0, 9)])
def test_an_impossible_range_is_refused(layers: LayerRange) -> None:
    with pytest.raises(CannotSplit, match="are not within"):
        plan_stage(examine(*language_model(3)), layers)


def test_a_graph_without_attention_is_refused() -> None:
    g = Sketch()
    x = g("Parameter")
    y = g("MatMul", x, x, hidden=8)
    with pytest.raises(CannotSplit, match="no ScaledDotProductAttention"):
        examine(g.ops, x, y)


def test_weights_are_counted_where_they_are_used() -> None:
    weights = weigh(examine(*language_model(3)))
    assert weights.embedding == 1000
    assert weights.layers == (121, 121, 122), "the last norm belongs to the last layer"
    assert weights.head == 500


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=2, max_size=24))
def test_a_bottleneck_is_what_no_path_avoids(edges: list[list[int]]) -> None:
    """Against the definition: remove the operation and see whether the end is still reached."""
    ops = [Op("Parameter", ())]
    ops += [Op("Add", tuple(e % (i + 1) for e in ins)) for i, ins in enumerate(edges)]
    end = len(ops) - 1

    def reaches(without: int | None) -> bool:
        seen = {0} - {without}
        for i, op in enumerate(ops):
            if i != without and any(j in seen for j in op.inputs):
                seen.add(i)
        return end in seen

    expected = {i for i in range(len(ops)) if not reaches(i)} if reaches(None) else set()
    assert set(bottlenecks(ops, 0, end)) == expected


def test_cutting_everywhere_covers_every_constant_of_the_model_once() -> None:
    anatomy = examine(*language_model(5))
    plans = [plan_stage(anatomy, LayerRange(k, k + 1)) for k in range(5)]
    assert [p.entry for p in plans[1:]] == [p.exit for p in plans[:-1]]
    assert {s for p in plans for s in p.states} == {f"s{k}" for k in range(5)}
