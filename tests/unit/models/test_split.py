"""Splitting changes nothing: the same logits from one stage, two, three and as many as layers."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from fleetapp.errors import CannotSplit, CorruptModel, NotAModel
from fleetapp.models.split import Graph, split
from fleetapp.models.trial import compare, run
from fleetapp.types import LayerRange
from tests.support.optimum_like import optimum_like
from tests.support.paged_run import paged_logits
from tests.support.tiny_models import ARCHITECTURES, TinyModel, reference_logits

PROMPT = [5, 80, 100, 33, 70, 90, 200, 7]
BOUNDS = [[0, 3], [0, 1, 3], [0, 2, 3], [0, 1, 2, 3]]


def cut(source: Path, bounds: list[int], folder: Path) -> list[Path]:
    parts = []
    for start, stop in pairwise(bounds):
        part = folder / f"{start}-{stop}"
        part.mkdir()
        split(source, LayerRange(start, stop), part)
        parts.append(part / "stage.xml")
    return parts


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_stages_compute_what_the_whole_does(
    irs: dict[str, Path], arch: str, bounds: list[int], tmp_path: Path
) -> None:
    whole = run([irs[arch]], PROMPT, 8)
    parts = run(cut(irs[arch], bounds, tmp_path), PROMPT, 8)
    assert np.abs(whole - parts).max() <= 1e-6


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_stages_compute_what_the_file_means(
    irs: dict[str, Path], tiny: dict[str, TinyModel], arch: str, tmp_path: Path
) -> None:
    logits = run(cut(irs[arch], [0, 1, 2, 3], tmp_path), PROMPT, 0)[0]
    assert np.abs(logits - reference_logits(tiny[arch], PROMPT)[-1]).max() < 1e-3


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("bounds", [[0, 3], [0, 1, 2, 3]], ids=str)
def test_every_stage_can_be_paged(
    irs: dict[str, Path], arch: str, bounds: list[int], tmp_path: Path
) -> None:
    whole = run([irs[arch]], PROMPT, 6)
    paged = paged_logits(cut(irs[arch], bounds, tmp_path), PROMPT, 6)
    assert np.abs(whole - paged).max() < 1e-4


def test_names_and_types_at_the_cuts(irs: dict[str, Path], tmp_path: Path) -> None:
    first, middle, last = cut(irs["llama"], [0, 1, 2, 3], tmp_path)
    core = ov.Core()
    models = [core.read_model(p) for p in (first, middle, last)]
    assert [m.outputs[0].any_name for m in models] == ["hidden", "hidden", "logits"]
    assert "input_ids" in {p.any_name for p in models[0].inputs}
    for model in models[1:]:
        port = model.input("inputs_embeds")
        assert port.element_type == ov.Type.f32
        assert list(port.partial_shape)[2] == 64
        assert "input_ids" not in {p.any_name for p in model.inputs}
    for model in models:
        assert len(model.get_variables()) == 2, "keys and values of one layer"
        assert all(p.output(0).get_target_inputs() for p in model.get_parameters())


def test_hints_of_the_whole_model_reach_its_parts(irs: dict[str, Path], tmp_path: Path) -> None:
    part = cut(irs["llama"], [0, 1], tmp_path)[0]
    model = ov.Core().read_model(part)
    assert model.get_rt_info(["runtime_options", "ACTIVATIONS_SCALE_FACTOR"]).value == "8"


def test_shapes_and_types_of_layer_0_that_serve_all_layers_are_answered_by_each_stage(
    tmp_path: Path,
) -> None:
    source = optimum_like(tmp_path / "ir", 4)
    whole = run([source], PROMPT[:4], 5)
    for bounds in ([0, 4], [0, 1, 4], [0, 1, 2, 3, 4]):
        folder = tmp_path / str(len(bounds))
        folder.mkdir()
        parts = run(cut(source, bounds, folder), PROMPT[:4], 5)
        assert np.abs(whole - parts).max() <= 1e-6


def test_keys_that_layers_share_are_not_cut_apart(tmp_path: Path) -> None:
    source = optimum_like(tmp_path / "ir", 4, shared_from=2)
    assert Graph(source).facts().cuttable == (1,)
    with pytest.raises(CannotSplit, match="Between layers 1 and 2"):
        split(source, LayerRange(0, 2), tmp_path)
    assert compare(source, tmp_path, [0, 1, 4], lambda _: None) <= 1e-6


def test_a_graph_without_states_is_not_a_language_model(tmp_path: Path) -> None:
    ids = op.parameter([-1, -1], np.int64, name="input_ids")
    ids.output(0).get_tensor().set_names({"input_ids"})
    ov.save_model(ov.Model([op.result(op.convert(ids, "f32"))], [ids], "x"), tmp_path / "x.xml")
    with pytest.raises(NotAModel, match="no key-value state"):
        Graph(tmp_path / "x.xml")


def test_a_graph_that_openvino_cannot_read_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text("<net><layers></net>")
    (tmp_path / "x.bin").write_bytes(b"")
    with pytest.raises(CorruptModel, match=r"x\.xml cannot be read"):
        Graph(tmp_path / "x.xml")
