from pathlib import Path

import pytest

from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent


def test_set_get_list_reset(run: Run, home: Path) -> None:
    assert run("settings", "get", "threads")[1] == "0\n"
    assert run("settings", "set", "threads", "4") == (0, "threads is 4.\n", "")
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


def test_a_negative_number_is_a_value_and_refused_as_one(run: Run, home: Path) -> None:
    code, out, err = run("settings", "set", "idle_minutes", "-1")
    assert (code, out) == (2, "")
    assert err.startswith("Error: The setting idle_minutes must be a whole number from 0 to 1440.")


def test_a_models_folder_that_is_a_file_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    code, out, err = run("settings", "set", "models_dir", str(file))
    assert (code, out) == (2, "")
    assert f"cannot be {file}: {file} is a file." in err


def test_the_environment_is_said_to_win(run: Run, home: Path, monkeypatch) -> None:
    monkeypatch.setenv("FLEETAPP_CONTRIBUTE", "off")
    code, _, err = run("settings", "set", "contribute", "on")
    assert code == 0
    assert "FLEETAPP_CONTRIBUTE" in err
    assert run("settings", "get", "contribute")[1] == "off\n"


def test_a_running_agent_is_told_and_says_when_it_acts(
    run: Run, home: Path, running: str, agent: FakeAgent
) -> None:
    assert run("settings", "set", "contribute", "on") == (0, "contribute is on.\n", "")
    assert run("settings", "set", "threads", "4")[2].startswith("It holds for shards")
    assert "next start" in run("settings", "set", "local_port", "0")[2]
    assert run("settings", "reset", "threads")[:2] == (0, "threads is 0.\n")
    assert agent.asked == [
        ("set", "contribute", "on", "en"),
        ("set", "threads", "4", "en"),
        ("set", "local_port", "0", "en"),
        ("reset", "threads", "en"),
    ]
    code, out, err = run("settings", "set", "threads", "many")
    assert (code, out) == (2, "")
    assert err.startswith("Error: The setting threads must be a whole number")
    assert not (home / "settings.json").exists(), "the agent keeps them, nobody else"
