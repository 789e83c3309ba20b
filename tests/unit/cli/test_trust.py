"""Roles and the audit log on the command line."""

import json

import pytest

from fleetapp.errors import NotFound, StorageError, UserError
from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.usefixtures("running")


@pytest.mark.parametrize("role", ["admin", "member"])
def test_a_role_is_given_to_the_pc_that_is_meant(run: Run, agent: FakeAgent, role: str) -> None:
    code, out, err = run("fleet", "role", "dev2", role)
    assert (code, err) == (0, "")
    assert agent.asked == [("fleet",), ("role", "dev2", role)]
    assert "dev2" in out
    assert role in out


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("nobody", "admin"), NotFound),
        (("dev9", "admin"), UserError),
        (("new34", "admin"), UserError),
        (("dev2", "coordinator"), UserError),
    ],
)
def test_nobody_else_gets_one(
    run: Run, agent: FakeAgent, args: tuple[str, str], error: type[UserError]
) -> None:
    assert run("fleet", "role", *args, "--yes")[0] == error.exit_code
    assert all(asked[0] == "fleet" for asked in agent.asked)


def test_a_name_alone_makes_no_admin_without_a_yes(run: Run, agent: FakeAgent) -> None:
    assert run("fleet", "role", "José 測試", "admin")[0] != 0, "nobody is at the keyboard"
    assert run("fleet", "role", "José 測試", "admin", "--yes")[0] == 0


def test_a_pc_gets_another_name(run: Run, agent: FakeAgent) -> None:
    code, out, _ = run("fleet", "rename", "José 測試", "Front desk")
    assert code == 0
    assert agent.asked == [("fleet",), ("rename", "dev2", "Front desk")]
    assert "Front desk" in out
    assert run("fleet", "name", " Büro Süd ")[:2] == (0, "The fleet is now called Büro Süd.\n")
    assert agent.asked[-1] == ("rename_fleet", " Büro Süd ")
    assert run("fleet", "rename", "new34", "x")[0] == UserError.exit_code, "it is no member yet"


def test_the_newest_entries_are_shown_harmlessly(run: Run, agent: FakeAgent) -> None:
    code, out, _ = run("fleet", "audit", "--last", "3")
    assert code == 0
    assert agent.asked == [("audit", 3)]
    assert "revoked" in out
    assert "\x1b" not in out
    assert json.loads(run("fleet", "audit", "--json")[1])[0]["actor"] == "local"


def test_a_sound_log_says_which_hash_to_note(run: Run, agent: FakeAgent) -> None:
    code, out, err = run("fleet", "audit", "--verify")
    assert (code, "ab" * 32 in out, "Note it" in err) == (0, True, True)
    assert agent.asked == [("verify_audit", "")]


def test_a_log_that_was_changed_ends_with_an_error(run: Run) -> None:
    code, _, err = run("fleet", "audit", "--verify", "--noted", "bad")
    assert code == StorageError.exit_code
    assert "Line 3" in err
    assert json.loads(run("fleet", "audit", "--noted", "bad", "--json")[1])["problems"]
