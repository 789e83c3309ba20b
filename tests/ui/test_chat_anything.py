"""A person, or two windows of one, doing anything in any order."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEventLoop, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.errors import ChainBroken
from tests.support.fake_chat_api import FakeChatApi, closing, failing, opening, piece
from ui.chat.chats import Chats
from ui.chat.store import ConversationStore
from ui.chat.values import NEW
from ui.chat.window import ChatWindow
from ui.theme import DARK, LIGHT, Theme

BITS = (
    "words ", "**bold** ", "\n\n", "```python\n", "x = 1\n", "```\n", "| a | b |\n|---|---|\n",
    "| 1 | 2 |\n", "- item\n", "1. one\n", "[link](https://example.org) ", "![p](x) ", "<b>",
    "日本 👩\u200d👧 ",
)  # fmt: skip


def anything(chance: random.Random) -> Callable[[Any], Iterator[bytes]]:
    """Answers of every kind and ending."""

    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        for _ in range(chance.randint(1, 120)):
            time.sleep(chance.choice((0, 0, 0.005)))
            yield piece("".join(chance.choices(BITS, k=chance.randint(1, 8))))
        if chance.random() < 0.2:
            yield failing(ChainBroken("DESK-3 left."))
        elif chance.random() < 0.9:
            yield closing()

    return reply


def deed(chance: random.Random, chats: Chats, window: ChatWindow, theme: Theme) -> None:
    """One thing a person does."""
    model = chats.model
    known = [c.id for c in model.store.conversations()]
    some = chance.choice(known) if known else NEW
    questions = [m for m in model.messages(window.current) if m.role == "user"]
    bar = window.thread_view.verticalScrollBar()

    def ask() -> None:
        window.composer.set_text("question " * chance.randint(1, 300))
        window.composer.submit()

    def regenerate_twice() -> None:
        if some != NEW:
            model.regenerate(some)
            model.regenerate(some)

    def edit() -> None:
        if questions:
            window.edit(chance.choice(questions))
            chance.choice((window.composer.submit, window.escape))()

    def find() -> None:
        window.find_bar.start(model.messages(window.current))
        window.find_bar.field.setText(chance.choice(("x", "words", "zz")))
        window.find_bar.step(1)

    def another() -> None:
        if len(chats.windows) < 3:
            chats.new_window().show()

    def delete() -> None:
        if some != NEW and chance.random() < 0.3:
            model.delete(some)

    chance.choice(
        (
            ask, ask, ask, ask, regenerate_twice, edit, find, another, delete,
            window.escape, window.escape, window.start_new, window.options_button.toggle,
            gc.collect,
            lambda: window.show_conversation(some),
            lambda: window.resize(chance.randint(500, 1400), chance.randint(300, 900)),
            lambda: bar.setValue(chance.randint(0, max(1, bar.maximum()))),
            lambda: theme.apply(chance.choice((LIGHT, DARK))),
            lambda: window.sidebar.search.setText(chance.choice(("", "words", "zz"))),
            lambda: QTest.keyClick(window.focusWidget() or window, Qt.Key.Key_Tab),
            lambda: window.look_at_link(chance.choice(("https://example.org", "javascript:x"))),
            window.close if chance.random() < 0.3 else window.escape,
        )
    )()  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "seconds"),
    [(1, 2.0), *(pytest.param(seed, 30.0, marks=pytest.mark.slow) for seed in (2, 3, 4))],
)
def test_anything_in_any_order(
    qtbot: QtBot, qapp: QApplication, chats: Chats, api: FakeChatApi, seed: int, seconds: float
) -> None:
    chance = random.Random(seed)
    theme = Theme(qapp)
    api.replies = [anything(random.Random(-seed))]
    until = time.monotonic() + seconds
    deeds = 0
    while time.monotonic() < until or deeds < 40:
        if not chats.windows:
            chats.new_window().show()
        deed(chance, chats, chance.choice(chats.windows), theme)
        deeds += 1
        for _ in range(chance.randint(1, 6)):
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 10)
    theme.apply(LIGHT)
    home = chats.model.store.path.parent
    chats.stop()
    store = ConversationStore(home)
    assert (store.problem, store.set_aside) == (None, None)
    for conversation in store.conversations():
        messages = store.messages(conversation.id)
        roles = [m.role for m in messages]
        # every question has one answer, and no answer is without its question
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert all(m.status != "writing" for m in messages)
    chats.model.store = store
