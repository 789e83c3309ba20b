"""A fresh PC with a real agent: from the first start to a streamed answer, by clicks alone."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from tests.support.sample_model import sample_gguf
from ui.desktop import Desktop
from ui.endpoint import process_alive, read_endpoint
from ui.session import AgentSession
from ui.theme import LIGHT, Theme

SLOW = 180_000
"""Milliseconds; a model is converted, cut, checked, compiled and loaded meanwhile."""


@pytest.fixture
def fresh(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desktop]:
    """The desktop app of a PC on which it was never started."""
    Theme(qapp).apply(LIGHT)
    for name, value in {
        "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
        "FLEETAPP_API_PORT": "0",
        "FLEETAPP_CONTROL_PORT": "0",
        "FLEETAPP_KEYRING": "0",
    }.items():
        monkeypatch.setenv(name, value)
    home = tmp_path / "José neu"
    home.mkdir()
    command = [sys.executable, "-m", "fleetapp.cli", "agent", "--state", str(home)]
    desktop = Desktop(AgentSession(home, command), home)
    desktop.session.start()
    yield desktop
    with qtbot.waitSignal(desktop.session.agent_ended, timeout=SLOW, raising=False):
        desktop.session.quit_agent()
    desktop.stop()


def click(qtbot: QtBot, button: QPushButton) -> None:
    """As a person does: it must be there and be enabled."""
    qtbot.waitUntil(lambda: button.isVisible() and button.isEnabled(), timeout=SLOW)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


class Walk:
    """Keeps pictures of the way, numbered; docs/first-run.md shows those of one such walk."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self._qtbot = qtbot
        self._folder = folder
        self._names: list[str] = []

    def picture(self, window: QWidget, name: str) -> None:
        """The window as it is now; the first time only."""
        if name not in self._names:
            self._names.append(name)
            self._qtbot.wait(100)  # the layout follows the texts
            file = self._folder / f"first-run-{len(self._names)}-{name}.png"
            assert window.grab().save(str(file))


@pytest.fixture
def walk(qtbot: QtBot, tmp_path: Path) -> Walk:
    """In the folder that FIRST_RUN_PICTURES names, or with the test's other files."""
    folder = Path(os.environ.get("FIRST_RUN_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return Walk(qtbot, folder)


def test_trying_it_alone_ends_with_a_streamed_answer(
    qtbot: QtBot, fresh: Desktop, walk: Walk, tmp_path: Path
) -> None:
    gguf = tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"
    shutil.copyfile(sample_gguf(), gguf)
    qtbot.waitUntil(lambda: fresh.first_run is not None, timeout=SLOW)
    window = fresh.first_run
    assert window is not None
    qtbot.waitUntil(window.go.isEnabled, timeout=SLOW)
    walk.picture(window, "welcome")
    click(qtbot, window.go)
    qtbot.mouseClick(window.way.buttons["alone"], Qt.MouseButton.LeftButton)
    click(qtbot, window.way.file)
    dialog = window.way.findChild(QFileDialog)
    assert dialog is not None
    dialog.selectFile(str(gguf))
    dialog.accept()
    qtbot.waitUntil(lambda: window.model.choices.file == str(gguf))
    walk.picture(window, "what-for")
    click(qtbot, window.go)
    qtbot.waitUntil(lambda: window.model.hardware is not None, timeout=SLOW)
    hardware = window.model.hardware
    assert hardware is not None
    assert "CPU" in {d.kind for d in hardware.devices}
    walk.picture(window, "this-pc")
    click(qtbot, window.go)
    qtbot.waitUntil(lambda: bool(window.limits.controls), timeout=SLOW)
    assert fresh.session.view.status is not None
    assert not fresh.session.view.status.fleet_id, "nothing is done before the last page"
    assert window.go.text() == "&Agree and set up"
    walk.picture(window, "limits")
    phases = set()

    def seen() -> bool:
        work = window.model.work if fresh.first_run is not None else None
        if work is not None:
            assert work.failed is None, work.failed
            if (step := work.running) is not None and step.detail:
                phases.add((step.name, step.detail.split(" · ")[0]))
                if step.total:
                    walk.picture(window, "setting-up")
        return fresh.chats is not None

    click(qtbot, window.go)
    qtbot.waitUntil(seen, timeout=SLOW)
    assert len(phases) > 2, "progress was shown"
    assert fresh.first_run is None, "its window has gone"

    assert fresh.chats is not None
    chat = fresh.chats.window()
    assert chat.isVisible()
    model = fresh.chats.model
    qtbot.waitUntil(lambda: bool(model.models), timeout=SLOW)
    chat.composer.text.setFocus()
    qtbot.keyClicks(chat.composer.text, "What is the capital of France?")
    lengths = set()

    def answered() -> bool:
        messages = model.messages(chat.current)
        if len(messages) > 1 and (running := model.running(chat.current)) is not None:
            lengths.add(len(running.message.text))
        return len(messages) > 1 and not model.busy

    qtbot.keyClick(chat.composer.text, Qt.Key.Key_Return)
    qtbot.waitUntil(answered, timeout=SLOW)
    answer = model.messages(chat.current)[-1]
    assert (answer.status, answer.role) == ("complete", "assistant")
    assert "Paris" in answer.text
    assert len(lengths) > 3, "it was streamed"
    walk.picture(chat, "answer")

    assert fresh.session.view.status is not None
    assert fresh.session.view.status.contribute
    pid = read_endpoint(fresh.session.client.home).pid
    began = time.monotonic()
    with qtbot.waitSignal(fresh.ended, timeout=SLOW):
        fresh._quit_now()
    assert not process_alive(pid)
    assert time.monotonic() - began < 30
