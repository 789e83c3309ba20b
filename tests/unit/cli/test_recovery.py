"""The recovery file on the command line: never over another file, never a secret on the screen."""

import stat
import sys
from pathlib import Path

import click
import msgspec
import pytest

from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.usefixtures("running")
SECRET = "korrekt Pferd 電池"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "passphrase"
    file.write_text(f"{SECRET}\r\nsecond line", "utf-8", newline="")
    return file


def test_the_file_is_written_once_and_for_its_owner(
    run: Run, agent: FakeAgent, tmp_path: Path, secret: Path
) -> None:
    file = tmp_path / "recovery 測試.txt"
    code, out, err = run("fleet", "recovery", "export", str(file), "--passphrase-file", str(secret))
    assert (code, err) == (0, "")
    assert agent.asked == [("status",), ("export", SECRET)]
    assert file.read_text("ascii").startswith("fleetapp recovery file")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET not in out
    agent.asked.clear()
    file.write_text("mine")
    code, _, err = run("fleet", "recovery", "export", str(file), "--passphrase-file", str(secret))
    assert (code, "exists already" in err, agent.asked) == (2, True, [])
    assert file.read_text() == "mine"


@pytest.mark.parametrize("what", [("recovery", "export", "new file"), ("move-coordinator", "dev2")])
def test_a_plain_member_is_told_before_anything_is_asked(
    run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch, what: tuple[str, ...]
) -> None:
    monkeypatch.setattr(click, "prompt", lambda *_, **__: pytest.fail("asked"))
    agent.state = msgspec.structs.replace(agent.state, role="member")
    code, _, err = run("fleet", *what)
    assert code != 0
    assert "not the coordinator" in err
    assert agent.asked == [("status",)]


def test_a_passphrase_is_asked_for_twice_and_hidden(
    run: Run, agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, object]] = []

    def prompt(_: str, **how: object) -> str:
        seen.append(how)
        return SECRET

    monkeypatch.setattr(click, "prompt", prompt)
    assert run("fleet", "recovery", "export", str(tmp_path / "file"))[0] == 0
    assert seen[0]["hide_input"] is True
    assert seen[0]["confirmation_prompt"]


def test_a_file_is_used_after_a_yes(
    run: Run, agent: FakeAgent, tmp_path: Path, secret: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(
        "fleetapp recovery file 1\n\n"
        "-----BEGIN FLEETAPP RECOVERY-----\n" + "A" * 76 + "\n-----END FLEETAPP RECOVERY-----\n"
    )
    options = (str(file), "--passphrase-file", str(secret))
    assert run("fleet", "recovery", "use", *options)[0] != 0, "nobody is at the keyboard"
    assert agent.asked == []
    assert run("fleet", "recovery", "use", *options, "--yes", "--revoke-old")[0] == 0
    assert agent.asked == [("use", file.read_text(), SECRET, True)]


@pytest.mark.parametrize("name", ["none", "."])
def test_what_is_no_file_is_said(run: Run, agent: FakeAgent, tmp_path: Path, name: str) -> None:
    code, _, err = run("fleet", "recovery", "use", str(tmp_path / name), "--yes")
    assert code == 2
    assert str(tmp_path) in err
    assert agent.asked == []


def test_the_office_is_moved_to_the_pc_that_is_meant(run: Run, agent: FakeAgent) -> None:
    assert run("fleet", "move-coordinator", "José 測試")[0] != 0
    code, out, _ = run("fleet", "move-coordinator", "dev2")
    assert (code, "dev2" in out) == (0, True)
    assert agent.asked[-1] == ("move", "dev2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a shopping list", "not a recovery file"),
        ("fleetapp recovery file 1\n", "not a recovery file"),
        ("fleetapp recovery file 9\n", "has format 9"),
    ],
)
def test_a_file_is_looked_at_before_anything_is_asked(
    run: Run,
    agent: FakeAgent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    said: str,
) -> None:
    for asks in ("confirm", "prompt"):
        monkeypatch.setattr(click, asks, lambda *_, **__: pytest.fail("asked"))
    (tmp_path / "file").write_text(text)
    code, _, err = run("fleet", "recovery", "use", str(tmp_path / "file"))
    assert (code, said in err, agent.asked) == (2, True, [])
