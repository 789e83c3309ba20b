"""Fixtures of the desktop app: a fake agent, and the app connected to it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.support.fake_chat_api import FakeChatApi
from tests.support.fake_local_api import FakeLocalApi
from ui.chat.chats import Chats
from ui.chat.window import ChatWindow
from ui.client import AgentClient
from ui.desktop import Desktop
from ui.session import AgentSession


@pytest.fixture(scope="session", autouse=True)
def modules_are_no_garbage() -> None:
    """What is loaded by now stays, and need not be looked through after every test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def garbage_is_collected_here() -> Iterator[None]:
    """In the thread of Qt and after the test, never in that of a server the test runs.

    The collector runs in whatever thread it is due in, and a Qt object that ends in a foreign one
    may take the process with it. The desktop app itself has one thread that runs Python.
    """
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder whose path is as awkward as a user's can be."""
    folder = tmp_path / "José app"
    folder.mkdir()
    settled(folder)
    return folder


def settled(folder: Path) -> None:
    """The first run of this state folder is over."""
    settings = QSettings(str(folder / "ui.ini"), QSettings.Format.IniFormat)
    settings.setValue("firstrun/state", "done")
    settings.sync()


@pytest.fixture
def agent(home: Path) -> Iterator[FakeLocalApi]:
    fake = FakeLocalApi(home).start()
    yield fake
    fake.held.set()
    fake.stop()


@pytest.fixture
def api(home: Path) -> Iterator[FakeChatApi]:
    """An agent whose fleet answers questions."""
    fake = FakeChatApi(home)
    fake.start()
    yield fake
    fake.gate.set()
    fake.stop()


@pytest.fixture
def chats(qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi) -> Iterator[Chats]:
    """The chat with one window on the screen, connected to ``api``."""
    client = AgentClient(home, qapp)
    chats = Chats(client, home, QSettings(str(home / "ui.ini"), QSettings.Format.IniFormat))
    window = chats.window()
    window.resize(1000, 720)
    window.show()
    qtbot.waitUntil(lambda: bool(chats.model.models))
    yield chats
    chats.stop()


@pytest.fixture
def window(chats: Chats) -> ChatWindow:
    return chats.window()


@pytest.fixture
def desktop(qtbot: QtBot, qapp: QApplication, home: Path, agent: FakeLocalApi) -> Iterator[Desktop]:
    """Connected to ``agent``; would start nothing if it went away."""
    app = Desktop(AgentSession(home, ["no-such-program"]), home)
    app.session.keeper.abandon()
    qtbot.addWidget(app.window)
    app.session.start()
    qtbot.waitUntil(lambda: app.session.view.link == "connected")
    yield app
    if app.dialog is not None:
        app.dialog.reject()
    if app.question is not None:
        app.question.close()
    app.stop()
