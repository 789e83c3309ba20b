import json

import psutil
import pytest

from fleetapp.bench import common
from fleetapp.bench.commands import bench
from fleetapp.bench.common import Check, Report, at_least, is_true, show, summary


def report() -> Report:
    rows = ({"way": "a", "tok/s": 12.5}, {"way": "b", "tok/s": 3.0, "note": "slow"})
    checks = (at_least("ratio", 0.979999, 0.98), is_true("same", True))
    return Report("demo", common.machine(1), rows, checks)


def test_json_is_one_object_of_the_agreed_shape(capsys) -> None:
    show(report(), as_json=True)
    out = json.loads(capsys.readouterr().out)
    assert set(out) == {"bench", "machine", "rows", "checks"}
    assert set(out["machine"]) == {"cpu", "cores_used", "versions"}
    assert {"fleetapp", "python", "openvino", "openvino-genai"} <= set(out["machine"]["versions"])
    for check in out["checks"]:
        assert set(check) == {"name", "value", "target", "holds"}


def test_the_table_shows_every_row_and_says_what_does_not_hold(capsys) -> None:
    show(report(), as_json=False)
    out = capsys.readouterr().out
    assert "12.5" in out
    assert "slow" in out
    assert "DOES NOT HOLD" in out
    assert "holds" in out


def test_a_check_is_judged_before_it_is_rounded() -> None:
    assert at_least("x", 0.97999999, 0.98) == Check("x", 0.98, 0.98, False)
    assert at_least("x", 0.98, 0.98).holds


def test_a_row_shows_median_and_spread() -> None:
    assert summary([3.0, 1.0, 2.0]) == {"median": 2.0, "lowest": 1.0, "highest": 3.0, "rounds": 3}


def test_the_core_chosen_is_one_this_process_may_use() -> None:
    assert common.idlest_core() in psutil.Process().cpu_affinity()


NAMES = ("parity", "users", "pipeline", "prefill", "prefix", "speculation", "yield")


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_model_and_says_what_a_pc_is(name, capsys) -> None:
    bench.main([name, "--help"], standalone_mode=False)
    out = " ".join(capsys.readouterr().out.lower().split())
    assert "one core" in out
    assert {"--json", "--quick", "--model", "--precision", "--device"} <= set(out.split())


def test_every_bench_is_listed(capsys) -> None:
    bench.main(["--help"], standalone_mode=False)
    out = capsys.readouterr().out
    assert all(name in out for name in (*NAMES, "control"))
