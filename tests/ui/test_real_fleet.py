"""The admin's window with real agents: approving, draining, renaming, revoking by clicking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QInputDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from tests.support.agents import AgentProcess
from ui.fleet.rows import COLUMNS
from ui.fleet.window import FleetWindow
from ui.session import AgentSession

SLOW = 60_000
"""Milliseconds; an agent and a fleet's keys take a few seconds on a busy machine."""
INDEX = {column.key: i for i, column in enumerate(COLUMNS)}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[AgentProcess, AgentProcess]]:
    with ExitStack() as stack:
        made = []
        for name in ("José one", "José two"):
            (tmp_path / name).mkdir()
            made.append(stack.enter_context(AgentProcess(tmp_path / name, name)))
        yield made[0], made[1]


def session_of(stack: ExitStack, qtbot: QtBot, agent: AgentProcess) -> AgentSession:
    session = AgentSession(agent.home, ["no-such-program"])
    session.keeper.abandon()
    session.start()
    stack.callback(session.stop)
    qtbot.waitUntil(lambda: session.view.link == "connected", timeout=SLOW)
    return session


def yes(question: QWidget | None) -> None:
    """Press the button that does it."""
    assert isinstance(question, QMessageBox)
    role = QMessageBox.ButtonRole.DestructiveRole
    next(b for b in question.buttons() if question.buttonRole(b) == role).click()


def test_a_fleet_is_administered_by_clicking(
    qtbot: QtBot, qapp: QApplication, agents: tuple[AgentProcess, AgentProcess]
) -> None:
    first, second = agents
    first.create("Büro Süd")
    with ExitStack() as stack:
        mine = session_of(stack, qtbot, first)
        theirs = session_of(stack, qtbot, second)
        window = FleetWindow(mine)
        qtbot.addWidget(window)
        stack.callback(window.hide)
        window.show()
        nodes = window.nodes

        def says(device: str, key: str) -> str:
            return str(nodes.rows.index(nodes.rows.row_of(device), INDEX[key]).data())

        qtbot.waitUntil(lambda: window.title.text() == "Fleet “Büro Süd”", timeout=SLOW)
        qtbot.waitUntil(lambda: window.pulse.nodes.number.text() == "1/1", timeout=SLOW)
        assert nodes.empty.isVisible(), "alone: the next step is said"

        # a code that wants an approval
        window.tabs.setCurrentWidget(window.codes)
        window.codes.approve.setChecked(True)
        window.codes.button.click()
        qtbot.waitUntil(window.codes.made.isVisible, timeout=SLOW)
        code = window.codes.secret.field.text()
        theirs.join_fleet(code, first.hub_address)
        qtbot.waitUntil(lambda: len(window.attention.lines) == 1, timeout=SLOW)
        line = window.attention.lines[0]
        status = theirs.view.status
        assert status is not None
        device = status.device_id
        assert "José two asks to join" in line.text.text()
        assert device in line.detail.text(), "the same id as on its own screen"
        line.approve.click()
        yes(nodes.question)
        window.tabs.setCurrentWidget(nodes)
        qtbot.waitUntil(
            lambda: theirs.view.status is not None and bool(theirs.view.status.fleet_id),
            timeout=SLOW,
        )
        qtbot.waitUntil(lambda: says(device, "state").startswith("Not working"), timeout=SLOW)
        assert says(device, "state") == "Not working · its user has not agreed"
        # 29 whole days and some hours are left of 30
        qtbot.waitUntil(lambda: says(device, "certificate") == "29 days", timeout=SLOW)
        assert says(device, "memory").count("GiB") == 2

        assert nodes.choose(device)
        nodes._buttons["drain"].click()
        qtbot.waitUntil(lambda: says(device, "state") == "Drained by an admin", timeout=SLOW)
        nodes.actions_of["rename"].trigger()
        dialog = nodes.question
        assert isinstance(dialog, QInputDialog)
        dialog.setTextValue("Front desk 日本")
        dialog.accept()
        qtbot.waitUntil(lambda: says(device, "name") == "Front desk 日本", timeout=SLOW)

        nodes.actions_of["revoke"].trigger()
        yes(nodes.question)
        qtbot.waitUntil(lambda: says(device, "state") == "Shut out", timeout=SLOW)
        qtbot.waitUntil(
            lambda: theirs.view.status is not None and theirs.view.status.state == "connecting",
            timeout=SLOW,
        )
        assert theirs.view.status is not None
        # which of the two depends on whether the farewell was read before the line was cut
        said = ("was removed from the fleet", "does not count this PC as a member")
        assert any(part in theirs.view.status.reason for part in said)

        window.tabs.setCurrentWidget(window.audit)
        qtbot.waitUntil(lambda: window.audit.table.entries.rowCount() > 5, timeout=SLOW)
        said = [entry.cells[3] for entry in window.audit.table.entries.entries]
        assert said[:3] == ["revoked", "renamed", "drained"]
        window.audit.check.click()
        qtbot.waitUntil(window.audit.verdict.isVisible, timeout=SLOW)
        assert not window.audit.verdict.property("error")
