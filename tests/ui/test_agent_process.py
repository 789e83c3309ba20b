"""The desktop app starts the agent, watches it, gives up in time, and ends it on Quit."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from ui.desktop import Desktop
from ui.endpoint import process_alive, read_endpoint
from ui.keeper import AgentKeeper
from ui.session import AgentSession

ROOT = Path(__file__).resolve().parents[2]
SLOW = 20_000
"""Milliseconds a Python process may take to come up on a busy machine."""

Start = Callable[..., Desktop]


def fake_command(home: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.fake_local_api", "--home", str(home), *options]


@pytest.fixture
def start(
    qtbot: QtBot, qapp: QApplication, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Starts the desktop app with a fake agent of its own; ends both."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    running: list[Desktop] = []

    def begin(*options: str, delays: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Desktop:
        desktop = Desktop(AgentSession(home, fake_command(home, *options), delays=delays), home)
        qtbot.addWidget(desktop.window)
        desktop.session.start()
        running.append(desktop)
        return desktop

    yield begin
    for desktop in running:
        desktop.session.keeper.abandon()
        desktop.stop()
        if (home / "agent.json").exists():
            pid = read_endpoint(home).pid
            os.kill(pid, signal.SIGTERM)


def connected(desktop: Desktop) -> bool:
    return desktop.session.view.link == "connected"


def test_an_agent_is_started_if_there_is_none(qtbot: QtBot, start: Start, home: Path) -> None:
    desktop = start()
    assert desktop.session.view.link == "starting"
    qtbot.waitUntil(lambda: connected(desktop), timeout=SLOW)
    assert read_endpoint(home).pid != os.getpid()


def test_a_killed_agent_is_started_again(qtbot: QtBot, start: Start, home: Path) -> None:
    desktop = start()
    qtbot.waitUntil(lambda: connected(desktop), timeout=SLOW)
    first = read_endpoint(home).pid
    os.kill(first, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    qtbot.waitUntil(lambda: desktop.session.view.link == "starting", timeout=SLOW)
    qtbot.waitUntil(lambda: connected(desktop), timeout=SLOW)
    assert read_endpoint(home).pid != first


def test_an_agent_that_cannot_start_is_given_up_with_its_last_words(
    qtbot: QtBot, start: Start, home: Path
) -> None:
    desktop = start("--fail", "The disk is full. Free some space.")
    qtbot.waitUntil(lambda: desktop.session.view.link == "stopped", timeout=SLOW)
    assert "The disk is full. Free some space" in desktop.tray.icon.toolTip()
    assert desktop.actions.start_agent.isVisible()
    texts = [label.text() for label in desktop.window.findChildren(QLabel)]
    assert "Agent not running" in texts


def test_a_person_can_ask_for_another_try(qtbot: QtBot, start: Start) -> None:
    desktop = start("--fail", "No.")
    qtbot.waitUntil(lambda: desktop.session.view.link == "stopped", timeout=SLOW)
    with qtbot.waitSignal(desktop.session.keeper.starting):
        desktop.actions.start_agent.trigger()
    qtbot.waitUntil(lambda: desktop.session.view.link == "stopped", timeout=SLOW)


def test_a_program_that_is_not_there_is_said(qtbot: QtBot, home: Path) -> None:
    keeper = AgentKeeper(home, [str(home / "nothing")], delays=(0.0,))
    with qtbot.waitSignal(keeper.gave_up) as gave_up:
        keeper.agent_missing()
    assert "nothing" in gave_up.args[0]


def test_attempts_come_back_only_after_the_agent_has_proved_itself(
    qtbot: QtBot, home: Path
) -> None:
    now = [0.0]
    keeper = AgentKeeper(home, [str(home / "nothing")], delays=(0.0,), clock=lambda: now[0])
    ends: list[str] = []
    keeper.gave_up.connect(ends.append)

    def lose_it_after(seconds: float) -> None:
        keeper.agent_seen()
        now[0] += seconds
        keeper.agent_missing()

    lose_it_after(5.0)  # the one attempt
    qtbot.waitUntil(lambda: len(ends) == 1)
    lose_it_after(5.0)  # none left: said again, at once
    assert len(ends) == 2
    lose_it_after(100.0)
    assert len(ends) == 2, "it has one attempt again"
    qtbot.waitUntil(lambda: len(ends) == 3)


def test_quit_ends_the_agent_too(qtbot: QtBot, start: Start, home: Path) -> None:
    desktop = start()
    qtbot.waitUntil(lambda: connected(desktop), timeout=SLOW)
    pid = read_endpoint(home).pid
    with qtbot.waitSignal(desktop.ended, timeout=SLOW):
        desktop.actions.quit.trigger()
    assert not process_alive(pid)


def test_quit_during_the_start_leaves_no_agent_behind(qtbot: QtBot, start: Start) -> None:
    desktop = start()
    keeper = desktop.session.keeper
    qtbot.waitUntil(lambda: keeper.started_pid > 0)
    pid = keeper.started_pid
    with qtbot.waitSignal(desktop.ended, timeout=SLOW):
        desktop.actions.quit.trigger()
    qtbot.waitUntil(lambda: not process_alive(pid), timeout=SLOW)


def test_the_end_of_the_app_does_not_end_the_agent(qtbot: QtBot, start: Start, home: Path) -> None:
    desktop = start()
    qtbot.waitUntil(lambda: connected(desktop), timeout=SLOW)
    desktop.stop()
    assert process_alive(read_endpoint(home).pid)
