"""The desktop app and the agent's loopback API: status in, errors typed, nothing waits for ever."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.errors import (
    AgentNotRunning,
    Cancelled,
    ExpiredJoinCode,
    FleetError,
    Malformed,
    PeerTimeout,
    Unauthorized,
)
from fleetapp.types import LocalStatus
from tests.support.fake_local_api import FakeLocalApi, joined_status
from ui.client import AgentClient, Call
from ui.coalesce import Coalescer
from ui.endpoint import read_endpoint
from ui.stream import MAX_EVENT, SseParser, StatusStream
from ui.view import AgentView


def outcome(qtbot: QtBot, call: Call) -> object:
    """What a call ends with: its value, or its error."""
    ends: list[object] = []
    call.then(ends.append, ends.append)
    qtbot.waitUntil(lambda: bool(ends))
    return ends[0]


@contextmanager
def silent_server(home: Path) -> Iterator[socket.socket]:
    """Something that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        described = {"pid": os.getpid(), "port": server.getsockname()[1]}
        (home / "agent.json").write_text(json.dumps(described), encoding="utf-8")
        (home / "api-token").write_text("x", encoding="ascii")
        yield server


def test_status_is_typed(qtbot: QtBot, agent: FakeLocalApi) -> None:
    client = AgentClient(agent.home)
    assert outcome(qtbot, client.get("/local/v1/status", LocalStatus)) == agent.status


def test_a_refusal_is_the_agents_own_error(qtbot: QtBot, agent: FakeLocalApi) -> None:
    client = AgentClient(agent.home)
    error = outcome(qtbot, client.post("/local/v1/fleet/join", {"code": "FLEET-EXPIRED"}, None))
    assert isinstance(error, ExpiredJoinCode)
    assert error.message == "This join code has expired."
    assert error.remedy == "Ask the admin for a new one."


def test_an_answer_of_another_shape_is_malformed(qtbot: QtBot, agent: FakeLocalApi) -> None:
    client = AgentClient(agent.home)
    error = outcome(qtbot, client.post("/local/v1/contribute", {"on": True}, LocalStatus))
    assert isinstance(error, Malformed)


def test_no_agent_is_said_at_once(qtbot: QtBot, home: Path, qapp: QApplication) -> None:
    client = AgentClient(home)
    error = outcome(qtbot, client.get("/local/v1/status", LocalStatus))
    assert isinstance(error, AgentNotRunning)


def test_a_silent_agent_is_given_up_at_the_deadline(qtbot: QtBot, home: Path) -> None:
    with silent_server(home):
        client = AgentClient(home)
        call = client.get("/local/v1/status", LocalStatus, deadline=0.2)
        assert isinstance(outcome(qtbot, call), PeerTimeout)


def test_cancelling_tells_the_caller(qtbot: QtBot, home: Path) -> None:
    with silent_server(home):
        client = AgentClient(home)
        call = client.get("/local/v1/status", LocalStatus)
        with qtbot.waitSignal(call.failed) as failed:
            call.cancel()
        assert isinstance(failed.args[0], Cancelled)


def test_the_token_is_not_sent_to_whoever_took_a_dead_agents_port(home: Path) -> None:
    with silent_server(home) as server:
        dead = {"pid": 2**22 + 1, "port": server.getsockname()[1]}
        (home / "agent.json").write_text(json.dumps(dead), encoding="utf-8")
        with pytest.raises(AgentNotRunning):
            read_endpoint(home)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": "x", "port": 1}'])
def test_a_broken_agent_file_is_no_agent(home: Path, text: str) -> None:
    (home / "agent.json").write_text(text, encoding="utf-8")
    (home / "api-token").write_text("x", encoding="ascii")
    with pytest.raises(AgentNotRunning):
        read_endpoint(home)


def test_the_stream_shows_each_change(qtbot: QtBot, agent: FakeLocalApi) -> None:
    stream = StatusStream(AgentClient(agent.home))
    seen: list[LocalStatus] = []
    stream.received.connect(seen.append)
    stream.connect_now()
    qtbot.waitUntil(lambda: len(seen) == 1)
    agent.set_status(joined_status(reason="Größer als ASCII · ✓"))
    qtbot.waitUntil(lambda: len(seen) == 2)
    assert seen[1].reason == "Größer als ASCII · ✓"
    stream.stop()


def test_the_stream_comes_back_with_a_restarted_agent(qtbot: QtBot, agent: FakeLocalApi) -> None:
    stream = StatusStream(AgentClient(agent.home))
    seen: list[LocalStatus] = []
    lost: list[FleetError] = []
    stream.received.connect(seen.append)
    stream.lost.connect(lost.append)
    stream.connect_now()
    qtbot.waitUntil(lambda: bool(seen))
    agent.stop()
    qtbot.waitUntil(lambda: len(lost) >= 2)
    assert all(isinstance(error, AgentNotRunning) for error in lost)
    again = FakeLocalApi(agent.home, joined_status()).start()
    qtbot.waitUntil(lambda: seen[-1].state == "ready")
    stream.stop()
    again.stop()


def test_a_wrong_token_is_said_and_not_taken_for_a_dead_agent(
    qtbot: QtBot, agent: FakeLocalApi
) -> None:
    (agent.home / "api-token").write_text("wrong", encoding="ascii")
    stream = StatusStream(AgentClient(agent.home))
    with qtbot.waitSignal(stream.lost) as lost:
        stream.connect_now()
    assert isinstance(lost.args[0], Unauthorized)
    stream.stop()


def test_a_status_that_cannot_be_read_asks_for_a_restart(qtbot: QtBot, agent: FakeLocalApi) -> None:
    agent.set_status(AgentView())  # type: ignore[arg-type]
    stream = StatusStream(AgentClient(agent.home))
    with qtbot.waitSignal(stream.lost) as lost:
        stream.connect_now()
    assert isinstance(lost.args[0], Malformed)
    assert "same version" in lost.args[0].remedy
    stream.stop()


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=8),
    st.integers(1, 7),
)
def test_events_are_found_however_the_bytes_are_cut(texts: list[str], step: int) -> None:
    wire = b": hello\n\n" + b"".join(
        b"event: status\r\ndata: " + text.encode() + b"\r\n\r\n: ping\n\n" for text in texts
    )
    parser = SseParser()
    found = [
        event for at in range(0, len(wire), step) for event in parser.feed(wire[at : at + step])
    ]
    assert [event.decode() for event in found] == texts


def test_an_event_without_end_is_refused() -> None:
    parser = SseParser()
    parser.feed(b"x" * MAX_EVENT)
    with pytest.raises(Malformed):
        parser.feed(b"x")


def test_updates_are_passed_on_thirty_times_a_second_at_most(qtbot: QtBot) -> None:
    coalescer = Coalescer(interval_ms=100)
    passed: list[object] = []
    coalescer.passed.connect(passed.append)
    for number in range(1000):
        coalescer.submit(number)
    assert passed == [0]
    qtbot.waitUntil(lambda: len(passed) == 2)
    assert passed == [0, 999]
