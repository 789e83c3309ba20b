"""The desktop app against the real routes of the agent; it keeps the other tests' fake honest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from pytestqt.qtbot import QtBot

from fleetapp.api.local import add_local_routes
from fleetapp.errors import BadJoinCode, FleetError, NotFound
from fleetapp.types import JoinCodeView
from tests.support.api_server import serving_in_thread
from tests.support.fake_agent import CODE, FakeAgent
from ui.client import Call
from ui.session import AgentSession, CreatedFleet

TOKEN = "loopback-token"


@pytest.fixture
def asked(home: Path) -> Iterator[list[tuple[object, ...]]]:
    """What reaches the agent behind the real routes."""
    agents: list[FakeAgent] = []

    def make() -> web.Application:
        app = web.Application()
        agents.append(FakeAgent())
        add_local_routes(app, agents[0], TOKEN)
        return app

    with serving_in_thread(make) as url:
        described = {"pid": os.getpid(), "port": int(url.rpartition(":")[2]), "version": "0.1.0"}
        (home / "agent.json").write_text(json.dumps(described), encoding="utf-8")
        (home / "api-token").write_text(TOKEN, encoding="ascii")
        yield agents[0].asked


@pytest.fixture
def session(qtbot: QtBot, home: Path, asked: object) -> Iterator[AgentSession]:
    session = AgentSession(home, ["no-such-program"])
    session.keeper.abandon()
    session.start()
    qtbot.waitUntil(lambda: session.view.link == "connected")
    yield session
    session.stop()


def outcome(qtbot: QtBot, call: Call) -> object:
    ends: list[object] = []
    call.then(ends.append, ends.append)
    qtbot.waitUntil(lambda: bool(ends))
    return ends[0]


def test_a_wish_changes_the_status_that_is_streamed(
    qtbot: QtBot, session: AgentSession, asked: list[tuple[object, ...]]
) -> None:
    assert outcome(qtbot, session.set_contribute(True)) is None
    assert ("contribute", True) in asked
    qtbot.waitUntil(lambda: session.view.status is not None and session.view.status.contribute)


def test_codes_are_made_and_taken(
    qtbot: QtBot, session: AgentSession, asked: list[tuple[object, ...]]
) -> None:
    created = outcome(qtbot, session.create_fleet("Büro"))
    assert isinstance(created, CreatedFleet)
    assert created.code == CODE
    made = outcome(qtbot, session.make_code(24, 20, approve=False))
    assert isinstance(made, JoinCodeView)
    assert made.code == CODE
    assert outcome(qtbot, session.join_fleet(CODE, "127.0.0.1:8485")) is None
    assert isinstance(outcome(qtbot, session.join_fleet("hello")), BadJoinCode)
    assert [what for what in asked if what[0] not in ("status", "events")] == [
        ("create", "Büro"),
        ("make_code", 24.0, 20, False),
        ("join", CODE, "127.0.0.1:8485"),
        ("join", "hello", ""),
    ]


def test_what_is_not_there_is_typed(qtbot: QtBot, session: AgentSession) -> None:
    error = outcome(qtbot, session.client.get("/local/v1/nothing", None))
    assert isinstance(error, FleetError)
    assert isinstance(error, NotFound)
