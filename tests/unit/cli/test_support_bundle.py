import json
import zipfile
from pathlib import Path

import pytest

from fleetapp.cli import support_bundle
from fleetapp.types import Finding
from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent


@pytest.fixture(autouse=True)
def _no_long_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor has tests of its own; devices are asked in a process that takes seconds."""
    finding = Finding("Agent", "warn", "It does not run.", key="agent")
    monkeypatch.setattr(support_bundle, "examine", lambda _: iter([finding]))


def test_without_an_agent_it_is_written_here(run: Run, home: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    code, out, err = run("support-bundle", str(target))
    assert code == 0
    assert out.startswith(str(target))
    assert "Look through it" in err
    with zipfile.ZipFile(target) as archive:
        assert json.loads(archive.read("doctor.json"))[0]["detail"] == "It does not run."


def test_a_running_agent_writes_it(
    run: Run, running: str, agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("support-bundle", "b.zip", "--json")
    assert code == 0
    assert json.loads(out)["path"] == str(tmp_path / "b.zip")
    assert agent.asked == [("bundle", str(tmp_path / "b.zip"))]


def test_without_a_name_it_gets_one_with_the_time(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("support-bundle")[0] == 0
    assert [f.name[:17] for f in tmp_path.glob("*.zip")] == ["fleetapp-support-"]


def test_a_place_that_is_not_there_is_said(run: Run, home: Path, tmp_path: Path) -> None:
    code, out, err = run("support-bundle", str(tmp_path / "no" / "b.zip"))
    assert (code, out) == (5, "")
    assert "does not exist" in err


def test_no_file_is_written_over(run: Run, home: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.odt"
    thesis.write_text("years of work")
    code, _, err = run("support-bundle", str(thesis))
    assert code == 2
    assert "exists already" in err
    assert thesis.read_text() == "years of work"
