"""One PC is meant, and a person has seen its device id, before anything is decided."""

import asyncio

import click
import msgspec
import pytest

from fleetapp.errors import BadRequest, NotFound, UserError
from fleetapp.hub.keys import ApiKeyView
from fleetapp.types import LocalStatus
from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent

pytestmark = pytest.mark.usefixtures("running")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked at the terminal; every question is answered with yes."""
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr(click, "confirm", confirm)
    return asked


@pytest.mark.parametrize(
    ("args", "device"),
    [
        (("approve", "new34"), "new34"),
        (("approve", "NEW34"), "new34"),
        (("decline", "new35"), "new35"),
        (("revoke", "José 測試"), "dev2"),
        (("revoke", "josé 測試"), "dev2"),
        (("revoke", "dev2"), "dev2"),
        (("reinstate", "DESK-9"), "dev9"),
        (("reinstate", "d"), "dev9"),
    ],
)
def test_a_pc_by_its_id_the_beginning_of_it_or_its_name(
    run: Run, agent: FakeAgent, answers: list[str], args: tuple[str, str], device: str
) -> None:
    code, out, err = run("fleet", *args)
    assert (code, err) == (0, "")
    assert [a for a in agent.asked if a != ("keys",)] == [("fleet",), (args[0], device)]
    assert device in out, "the id is shown, to compare it"


def test_who_gave_the_whole_id_has_compared_it(run: Run, answers: list[str]) -> None:
    assert run("fleet", "approve", "new34")[0] == 0
    assert run("fleet", "revoke", "dev2")[0] == 0
    assert answers == []
    assert run("fleet", "revoke", "José 測試")[0] == 0
    assert run("fleet", "revoke", "José 測試", "--yes")[0] == 0
    assert len(answers) == 1
    assert "dev2" in answers[0]


def test_no_answer_is_no(run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def abort(*_: object, **__: object) -> bool:
        raise click.Abort

    monkeypatch.setattr(click, "confirm", abort)
    assert run("fleet", "revoke", "José 測試")[0] == 130
    assert agent.asked == [("fleet",)]


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (("approve", "DESK-9"), BadRequest, ("new34", "new35")),
        (("approve", "new3"), BadRequest, ("new34", "new35")),
        (("revoke", "nobody"), NotFound, ("nobody",)),
        (("revoke", ""), NotFound, ()),
        (("approve", "José 測試"), UserError, ("dev2", "offline")),
        (("reinstate", "dev2"), UserError, ("dev2", "offline")),
        (("revoke", "dev9"), UserError, ("dev9", "revoked")),
        (("revoke", "new34"), UserError, ("new34", "pending")),
    ],
)
def test_what_is_not_clear_is_not_done(
    run: Run,
    agent: FakeAgent,
    args: tuple[str, str],
    error: type[UserError],
    words: tuple[str, ...],
) -> None:
    code, out, err = run("fleet", *args, "--yes")
    assert (code, out) == (error.exit_code, "")
    assert all(word in err for word in words)
    assert len(err.splitlines()) == 2, "what happened, and what to do"
    assert agent.asked == [("fleet",)]


def test_who_waits_is_said_with_the_command_that_lets_it_in(run: Run) -> None:
    out = run("fleet", "status")[1]
    assert "! DESK-9 waits to be approved: 'fleetapp fleet approve new34'" in out
    assert "2 PCs" in out, "who waits and who was shut out are not of the fleet"


def test_who_joins_is_told_its_id_while_it_waits(
    run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = asyncio.Event()
    waiting = msgspec.structs.replace(agent.state, reason="Waiting; the id is dev1.")

    async def status() -> LocalStatus:
        seen.set()
        return waiting

    async def join(_code: str, _hub: str) -> LocalStatus:
        async with asyncio.timeout(10):
            await seen.wait()
        return agent.state

    monkeypatch.setattr(agent, "status", status)
    monkeypatch.setattr(agent, "join", join)
    code, out, err = run("fleet", "join", "FLEET-X")
    assert code == 0
    assert err.splitlines() == ["Looking for the coordinator…", "Waiting; the id is dev1."]
    assert "in the fleet" in out


@pytest.mark.parametrize("word", ["evict", "revoke"])
@pytest.mark.usefixtures("running")
def test_keys_that_outlive_the_pc_they_were_made_on_are_named(
    run: Run, agent: FakeAgent, word: str
) -> None:
    agent._keys = {
        k.id: k
        for k in (
            ApiKeyView("k1", "editor\x1b[2J", 1.7e9, made_by="dev2", made_on="José 測試"),
            ApiKeyView("k2", "mine", 1.7e9, made_by="dev1", made_on="DESK-1"),
            ApiKeyView("k3", "old", 1.7e9),
        )
    }
    code, out, err = run("fleet", word, "dev2", "--yes")
    assert code == 0, err
    assert out.splitlines()[-1] == (
        "1 API key made there still works: editor␛[2J (k1). "
        "Revoke it with 'fleetapp keys revoke k1'."
    )
    agent._keys["k4"] = ApiKeyView("k4", "bot", 1.7e9, made_by="dev2", made_on="José 測試")
    assert run("fleet", word, "dev2", "--yes")[1].splitlines()[-1] == (
        "2 API keys made there still work: editor␛[2J (k1), bot (k4). "
        "Revoke each with 'fleetapp keys revoke ID'."
    )
    assert "API key" not in run("fleet", "drain", "dev2")[1]
    listed = run("keys")[1]
    assert "Made on" in listed
    for where in ("José 測試", "DESK-1", "not noted"):
        assert where in listed
    agent._keys = {}
    assert "API key" not in run("fleet", word, "dev2", "--yes")[1]


@pytest.mark.parametrize("word", ["evict", "revoke"])
def test_the_coordinator_is_not_even_asked_about(
    run: Run, agent: FakeAgent, answers: list[str], word: str
) -> None:
    code, _, err = run("fleet", word, "DESK-1")
    assert code == 2
    assert "The coordinator cannot be" in err
    assert "move-coordinator" in err
    assert (answers, agent.asked) == ([], [("fleet",)])
