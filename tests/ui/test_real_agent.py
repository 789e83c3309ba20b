"""The desktop app with real agents: two PCs, one founds a fleet, the other joins, both quit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from ui.desktop import Desktop
from ui.endpoint import process_alive, read_endpoint
from ui.fleet_dialogs import CreateDialog, JoinDialog
from ui.session import AgentSession

SLOW = 60_000
"""Milliseconds; an agent and a fleet's keys take a few seconds on a busy machine."""


@pytest.fixture
def desktops(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Desktop]]:
    for name, value in {
        "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
        "FLEETAPP_API_PORT": "0",
        "FLEETAPP_CONTROL_PORT": "0",
    }.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        made = []
        for name in ("José one", "José two"):
            home = tmp_path / name
            home.mkdir()
            command = [sys.executable, "-m", "fleetapp.cli", "agent", "--state", str(home)]
            desktop = Desktop(AgentSession(home, command), home)
            stack.callback(_end, qtbot, desktop)
            desktop.session.start()
            made.append(desktop)
        yield made


def _end(qtbot: QtBot, desktop: Desktop) -> None:
    with qtbot.waitSignal(desktop.session.agent_ended, timeout=SLOW, raising=False):
        desktop.session.quit_agent()
    desktop.stop()


def test_a_fleet_is_founded_and_joined_from_the_desktop(
    qtbot: QtBot, desktops: list[Desktop]
) -> None:
    first, second = desktops
    for desktop in desktops:
        qtbot.waitUntil(lambda d=desktop: d.session.view.icon == "not_joined", timeout=SLOW)
    pids = [read_endpoint(desktop.session.client.home).pid for desktop in desktops]

    first.actions.create.trigger()
    create = first.dialog
    assert isinstance(create, CreateDialog)
    create.name.setText("Büro Süd")
    create.submit()
    qtbot.waitUntil(lambda: hasattr(create, "code"), timeout=SLOW)
    code = create.code.field.text()
    create.reject()

    second.actions.join.trigger()
    join = second.dialog
    assert isinstance(join, JoinDialog)
    join.code.setText(code[:-1] + ("A" if code[-1] != "A" else "B"))
    join.submit()
    qtbot.waitUntil(lambda: not join.notice.isHidden(), timeout=SLOW)
    join.code.setText(code)
    join.submit()
    qtbot.waitUntil(join.code.isReadOnly, timeout=SLOW)
    join.reject()
    qtbot.waitUntil(lambda: second.session.view.icon == "ready", timeout=SLOW)
    status = second.session.view.status
    assert status is not None
    assert status.fleet_name == "Büro Süd"

    second.actions.contribute.trigger()
    qtbot.waitUntil(second.actions.contribute.isChecked, timeout=SLOW)

    for desktop in (second, first):
        with qtbot.waitSignal(desktop.ended, timeout=SLOW):
            desktop.actions.quit.trigger()
    assert not any(process_alive(pid) for pid in pids)
