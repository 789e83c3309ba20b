"""The settings window with a real agent: a change is seen by others, and a restart takes over."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths
from fleetapp.settings import SettingsStore
from ui.endpoint import read_endpoint
from ui.session import AgentSession
from ui.settings.controls import SwitchControl
from ui.settings.own import AUTOSTART
from ui.settings.window import SettingsWindow

SLOW = 60_000
"""Milliseconds; an agent takes a few seconds to start on a busy machine."""


@pytest.fixture
def session(
    qtbot: QtBot, qapp: QApplication, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AgentSession]:
    monkeypatch.setenv("FLEETAPP_MDNS_INTERFACES", "127.0.0.1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    command = [sys.executable, "-m", "fleetapp.cli", "agent", "--state", str(home)]
    session = AgentSession(home, command)
    session.start()
    qtbot.waitUntil(lambda: session.view.link == "connected", timeout=SLOW)
    yield session
    with qtbot.waitSignal(session.agent_ended, timeout=SLOW, raising=False):
        session.quit_agent()
    session.stop()


def test_changes_reach_the_agent_and_its_restart_takes_over_the_rest(
    qtbot: QtBot, session: AgentSession, home: Path
) -> None:
    window = SettingsWindow(session, home)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: "contribute" in window.rows, timeout=SLOW)

    window.show_section("contributing")
    switch = window.rows["contribute"].control
    assert isinstance(switch, SwitchControl)
    qtbot.keyClick(switch.box, Qt.Key.Key_Space)
    qtbot.waitUntil(
        lambda: session.view.status is not None and session.view.status.contribute, timeout=SLOW
    )
    window.show_section("app")
    start = window.rows[AUTOSTART].control
    assert isinstance(start, SwitchControl)
    qtbot.keyClick(start.box, Qt.Key.Key_Space)
    entry = home / "config" / "autostart" / "fleetapp.desktop"
    qtbot.waitUntil(entry.exists, timeout=SLOW)
    qtbot.waitUntil(lambda: window.model.row(AUTOSTART).view.value is True, timeout=SLOW)

    before = read_endpoint(home).pid
    window.model.set("devices", "CPU")
    qtbot.waitUntil(window.restart_bar.isVisible, timeout=SLOW)
    window.restart.click()
    assert window.question is not None
    now = next(b for b in window.question.buttons() if "Restart now" in b.text())
    now.click()
    qtbot.waitUntil(lambda: session.view.link != "connected", timeout=SLOW)
    qtbot.waitUntil(lambda: session.view.link == "connected", timeout=SLOW)
    assert read_endpoint(home).pid != before
    qtbot.waitUntil(lambda: not window.model.pending, timeout=SLOW)
    qtbot.waitUntil(lambda: not window.restart_bar.isVisible())
    assert not window.notice.isVisible()
    kept = SettingsStore(Paths(home), FakePlatform(), {}).load()
    assert (kept.contribute, kept.devices) == (True, "CPU")
