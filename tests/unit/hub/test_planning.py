"""Plans over real members and a library: what was reported counts, what is held is free again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from fleetapp.errors import BadRequest, NotFound
from fleetapp.fleet.control import HopMeasurement, ProfileReport, StageProfile, StageStatus
from fleetapp.hub.knowledge import model_of
from fleetapp.hub.planning import as_it_runs, layout_of
from fleetapp.hub.stage import Stage
from fleetapp.hub.state import Wanted
from fleetapp.models.manifest import Architecture, ModelManifest, encode
from fleetapp.types import LayerRange
from tests.support.hubs import Line, TestHub

MIB = 2**20


def manifest(name: str = "m", layers: int = 10, layer_mib: int = 100) -> ModelManifest:
    return ModelManifest(
        schema=1,
        model_id=name,
        revision="1",
        source="test",
        licence="none",
        architecture=Architecture(
            family="fake",
            layers=layers,
            hidden_size=64,
            vocab_size=100,
            kv_heads=(2,) * layers,
            head_sizes=(8,) * layers,
            context_length=4096,
            eos_ids=(1,),
            bos_id=None,
            chat_template=None,
        ),
        quantization="int4",
        converter="test",
        layer_bytes=(layer_mib * MIB,) * layers,
        embedding_bytes=10 * MIB,
        head_bytes=10 * MIB,
        files=(),
    )


def put(home: TestHub, root: Path, made: ModelManifest) -> None:
    folder = root / "library" / "imported" / made.model_id
    folder.mkdir(parents=True)
    (folder / "model.json").write_bytes(encode(made))


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[TestHub]:
    made = TestHub(tmp_path)
    put(made, tmp_path, manifest())
    yield made
    await made.hub.stop()


async def test_what_is_served_and_what_drafts_for_it_is_in_use(
    home: TestHub, tmp_path: Path
) -> None:
    speaking = [
        replace(made, architecture=replace(made.architecture, vocab_digest="v"))
        for made in (manifest(), replace(manifest(), model_id="d"))
    ]
    (tmp_path / "library" / "imported" / "m" / "model.json").write_bytes(encode(speaking[0]))
    put(home, tmp_path, speaking[1])
    models = home.hub.models
    assert models.in_use("m") == models.in_use("d") == ()
    models.serve("m", "fast", 0, "d")
    assert models.in_use("m") == models.in_use("d") == ("m",)
    assert models.in_use("e") == ()
    await models.unserve("m")
    assert models.in_use("m") == models.in_use("d") == ()


def want(home: TestHub, stages: int = 0) -> None:
    """As after a restart, without chains that would begin to prepare."""
    home.state.change(wanted=(Wanted("m", "fast", stages, "off"),))


async def test_what_is_wanted_is_planned_over_who_contributes(home: TestHub) -> None:
    anna = home.enrol("anna")
    Line(home, home.me)
    Line(home, anna)
    want(home)
    plan = await home.hub.models.plan_view(("users=2",), "fast")
    (model,) = plan.models
    assert model.users == 2
    assert {s.name for c in model.chains for s in c.stages} == {"anna", "hub"}
    assert "have not been measured" in model.text


async def test_measurements_of_members_count(home: TestHub) -> None:
    anna = home.enrol("anna")
    lines = [Line(home, home.me), Line(home, anna)]
    want(home)
    _, digest = home.hub.models._library.get("m")
    for line, layer in zip(lines, (0.02, 0.001), strict=True):
        pairs = tuple((w, 10 * layer) for w in (1, 2, 4))
        stage = StageProfile(
            digest, LayerRange(0, 10), True, True, "CPU", "r", "fast", pairs, pairs, pairs
        )
        home.hub.received(line.session, ProfileReport(profiles=(stage,)))
    home.hub.received(
        lines[0].session, ProfileReport(hops=(HopMeasurement(anna.identity.device_id, 0.03, 1e6),))
    )
    inputs, _, _ = await home.hub.models._inputs(frozenset())
    assert {(k.rtt, k.bandwidth) for k in inputs.links} == {(0.03, 1e6)}
    plan = await home.hub.models.plan_view(("users=1",), "fast")
    assert [[s.name for s in c.stages] for c in plan.models[0].chains] == [["anna"]]
    assert "not been measured" not in plan.models[0].text


async def test_a_wish_for_stages_is_in_it(home: TestHub) -> None:
    Line(home, home.me)
    Line(home, home.enrol("anna"))
    want(home, stages=2)
    plan = await home.hub.models.plan_view((), "fast")
    assert [len(c.stages) for c in plan.models[0].chains] == [2]


async def test_what_runs_as_planned_is_as_fast_as_its_plan(home: TestHub) -> None:
    """A pipeline that was asked for is planned full, with more users than there are."""
    Line(home, home.me)
    Line(home, home.enrol("anna"))
    want(home, stages=2)
    wanted = Wanted("m", "fast", 2, "off")
    planned, _, candidates = await home.hub.models.plan(wanted, 1, frozenset())
    assert planned.plan.users == 1
    (deals,) = layout_of(planned.plan, candidates).chains
    running = [
        Stage("a", d.plan, d.candidate, i, len(deals), StageStatus("a", "ready"))
        for i, d in enumerate(deals)
    ]
    current = as_it_runs(planned, [running])
    assert current.models[0].tokens_per_second == pytest.approx(planned.plan.tokens_per_second)


async def test_what_if_there_were_another_model_or_pc(home: TestHub, tmp_path: Path) -> None:
    Line(home, home.me)
    put(home, tmp_path, manifest("large", 40, 200))
    found = (await home.hub.models.plan_view(("model=large",), "fast")).models[0]
    assert (found.model_id, found.chains) == ("large", ())
    found = (await home.hub.models.plan_view(("model=large", "+16"), "fast")).models[0]
    assert [s.name for s in found.chains[0].stages] == ["NEW-PC-1"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ((), BadRequest),
        (("nonsense",), BadRequest),
        (("users=many",), BadRequest),
        (("+much",), BadRequest),
        (("+inf",), BadRequest),
        (("-nobody", "model=m"), NotFound),
        (("model=unknown",), NotFound),
    ],
)
async def test_what_makes_no_sense_is_refused(
    home: TestHub, changes: tuple[str, ...], error: type[Exception]
) -> None:
    Line(home, home.me)
    with pytest.raises(error):
        await home.hub.models.plan_view(changes, "fast")


def test_a_manifest_as_the_planner_takes_it() -> None:
    model = model_of(manifest(), "exact", head_extra=7)
    assert (model.layers, model.kv_bytes, model.activation_bytes) == (10, 2 * 2 * 8 * 4, 4)
    assert model.head_extra == 7
