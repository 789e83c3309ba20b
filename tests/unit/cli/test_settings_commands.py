from pathlib import Path

import pytest

from tests.support.cli import Run


def test_set_get_list_reset(run: Run, home: Path) -> None:
    assert run("settings", "get", "threads")[1] == "0\n"
    code, out, err = run("settings", "set", "threads", "4")
    assert (code, out) == (0, "threads is 4.\n")
    assert "next start" in err
    assert run("settings", "get", "threads")[1] == "4\n"
    assert "user setting" in run("settings")[1]
    assert run("settings", "reset", "threads")[1] == "threads is 0.\n"


@pytest.mark.parametrize(
    "args", [("get", "thread"), ("set", "thread", "1"), ("set", "threads", "x"), ("reset", "x")]
)
def test_nonsense_is_refused(run: Run, args: tuple[str, ...]) -> None:
    code, out, err = run("settings", *args)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")


def test_the_environment_is_said_to_win(run: Run, home: Path, monkeypatch) -> None:
    monkeypatch.setenv("FLEETAPP_CONTRIBUTE", "off")
    code, _, err = run("settings", "set", "contribute", "on")
    assert code == 0
    assert "FLEETAPP_CONTRIBUTE" in err
    assert run("settings", "get", "contribute")[1] == "off\n"
