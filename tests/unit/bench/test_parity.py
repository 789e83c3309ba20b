import json

import pytest

from fleetapp.bench import parity
from fleetapp.bench.commands import bench
from fleetapp.bench.parity import Effort
from fleetapp.bench.prompts import PROMPTS
from fleetapp.engine.parity_child import (
    LLM_PIPELINE,
    ONE_STAGE,
    THREE_STAGES,
    Difference,
    Result,
    Speeds,
    merged,
    ratio,
)
from fleetapp.errors import NotFound
from tests.support.sample_model import MODEL
from tests.support.stages import library


def test_ratios_are_taken_round_by_round() -> None:
    result = Result(
        (Speeds(LLM_PIPELINE, (100.0, 50.0, 10.0)), Speeds(ONE_STAGE, (99.0, 55.0, 9.0))), 0, ()
    )
    assert ratio(result, ONE_STAGE) == 0.99


def test_what_several_processes_measured_is_one_result() -> None:
    first = Result((Speeds(LLM_PIPELINE, (1.0,)), Speeds(ONE_STAGE, (2.0,))), 2, ())
    different = Difference(ONE_STAGE, "x", 3)
    second = Result((Speeds(ONE_STAGE, (4.0,)), Speeds(LLM_PIPELINE, (2.0,))), 1, (different,))
    both = merged([first, second])
    assert {s.case: s.tokens_per_second for s in both.speeds} == {
        LLM_PIPELINE: (1.0, 2.0),
        ONE_STAGE: (2.0, 4.0),
    }
    assert ratio(both, ONE_STAGE) == 2.0
    assert (both.compared, both.differences) == (3, (different,))


@pytest.mark.model
@pytest.mark.slow
def test_parity_measures_every_check_in_its_own_run() -> None:
    said: list[str] = []
    effort = Effort(
        processes=1, rounds=1, exact_rounds=0, warmups=1, prompts=(PROMPTS["code"],), tokens=16
    )
    report = parity.run(library(), MODEL, effort=effort, progress=said.append)
    assert [c.name for c in report.checks] == [
        "one_stage_ratio",
        "three_stage_ratio",
        "tokens_equal",
    ]
    assert report.checks[2].holds
    assert report.machine.cores_used == 1
    assert [r["way"] for r in report.rows] == [LLM_PIPELINE, ONE_STAGE, THREE_STAGES]
    assert any("round 1 of 1" in s for s in said)


@pytest.mark.model
def test_a_model_that_is_not_here_is_named() -> None:
    with pytest.raises(NotFound, match="nothing-like-it"):
        parity.run(library(), "nothing-like-it")


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(900)
def test_parity_holds_on_this_machine(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path))
    monkeypatch.setenv("FLEETAPP_MODELS_DIR", str(library().root))
    bench.main(["parity", "--json"], standalone_mode=False)
    checks = {c["name"]: c for c in json.loads(capfd.readouterr().out)["checks"]}
    assert checks["tokens_equal"]["holds"]
    assert checks["one_stage_ratio"]["holds"], checks
    assert checks["three_stage_ratio"]["holds"], checks
