"""Answers end where they belong, whatever the person does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fleetapp.errors import ChainBroken, NoCapacity
from tests.support.fake_chat_api import (
    DEVICES,
    FakeChatApi,
    closing,
    comment,
    failing,
    model,
    opening,
    piece,
    saying,
)
from ui.chat import transport
from ui.chat.model import ChatModel
from ui.chat.schema import JOURNAL_PAGES
from ui.chat.store import ConversationStore
from ui.chat.values import NEW, Message, Options
from ui.client import AgentClient


@pytest.fixture
def chat(qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi) -> Iterator[ChatModel]:
    chat = ChatModel(AgentClient(home, qapp), ConversationStore(home))
    chat.refresh_models()
    qtbot.waitUntil(lambda: bool(chat.models))
    yield chat
    chat.shutdown()


def idle(qtbot: QtBot, chat: ChatModel) -> None:
    qtbot.waitUntil(lambda: not chat.busy, timeout=8000)


def last(chat: ChatModel, conversation: int) -> Message:
    return chat.messages(conversation)[-1]


def texts(chat: ChatModel, conversation: int) -> list[str]:
    return [message.text for message in chat.messages(conversation)]


def has_text(qtbot: QtBot, chat: ChatModel, conversation: int, text: str) -> None:
    qtbot.waitUntil(lambda: last(chat, conversation).text == text)


def test_a_question_and_its_answer(qtbot: QtBot, chat: ChatModel, api: FakeChatApi) -> None:
    api.replies = [saying("Paris 日本 👩\u200d👧.", size=1)]
    conversation = chat.ask(NEW, "Capital?")
    idle(qtbot, chat)
    answer = last(chat, conversation)
    assert (answer.text, answer.status, answer.model) == (
        "Paris 日本 👩\u200d👧.",
        "complete",
        "tiny",
    )
    assert answer.served.devices == DEVICES
    assert answer.served.tokens_per_second == 31.5
    assert answer.served.completion_tokens == 42
    assert api.questions[0]["model"] == "tiny"
    assert api.questions[0]["messages"] == [{"role": "user", "content": "Capital?"}]
    chat.ask(conversation, "And of Spain?")
    idle(qtbot, chat)
    assert [m["content"] for m in api.questions[1]["messages"]] == [
        "Capital?",
        "Paris 日本 👩\u200d👧.",
        "And of Spain?",
    ]


def test_an_answer_ends_in_its_own_conversation(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("one ", "ends"), saying("two"), saying("two")]
    first = chat.ask(NEW, "first")
    has_text(qtbot, chat, first, "one ")
    second = chat.ask(NEW, "second")
    qtbot.waitUntil(lambda: chat.running(second) is None)
    assert chat.running(first) is not None
    api.gate.set()
    idle(qtbot, chat)
    assert texts(chat, first) == ["first", "one ends"]
    assert texts(chat, second) == ["second", "two"]


def test_regenerating_twice_quickly_leaves_one_answer(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("old ", "x"), api.gated("older ", "y"), saying("new")]
    conversation = chat.ask(NEW, "q")
    has_text(qtbot, chat, conversation, "old ")
    chat.regenerate(conversation)
    chat.regenerate(conversation)
    qtbot.waitUntil(lambda: len(api.questions) >= 2)
    api.gate.set()
    idle(qtbot, chat)
    # which of the quick ones reached the agent is its affair: one question, one answer, not mixed
    question, answer = texts(chat, conversation)
    assert question == "q"
    assert answer in ("older y", "new")
    assert last(chat, conversation).status == "complete"
    assert all(len(asked["messages"]) == 1 for asked in api.questions)


def test_stopping_cancels_the_request_and_keeps_the_text(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("half", "never")]
    conversation = chat.ask(NEW, "q")
    has_text(qtbot, chat, conversation, "half")
    with qtbot.waitSignal(chat.thread_changed):
        chat.stop(conversation)
    assert last(chat, conversation).status == "stopped"
    # the agent sees it at its next write
    qtbot.waitUntil(lambda: api.left == 1, timeout=8000)
    assert texts(chat, conversation) == ["q", "half"]


def test_deleting_a_conversation_that_is_being_answered(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("half", "never")]
    conversation = chat.ask(NEW, "q")
    has_text(qtbot, chat, conversation, "half")
    chat.delete(conversation)
    assert not chat.busy
    api.gate.set()
    qtbot.waitUntil(lambda: api.left + api.ended == 1)
    assert chat.messages(conversation) == []
    assert chat.store.conversations() == []


def test_quitting_in_the_middle_keeps_what_has_come(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi, home: Path
) -> None:
    api.replies = [api.gated("half", "never")]
    conversation = chat.ask(NEW, "q")
    has_text(qtbot, chat, conversation, "half")
    chat.shutdown()
    again = ConversationStore(home)
    message = again.messages(conversation)[-1]
    assert (message.text, message.status) == ("half", "interrupted")
    again.close()
    chat.store = ConversationStore(home)


def test_text_is_saved_while_it_comes(
    qtbot: QtBot, qapp: QApplication, home: Path, api: FakeChatApi
) -> None:
    seconds = count()  # a second passes between any two looks at the clock
    chat = ChatModel(
        AgentClient(home, qapp), ConversationStore(home), clock=lambda: float(next(seconds))
    )
    chat.refresh_models()
    qtbot.waitUntil(lambda: bool(chat.models))

    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        yield piece("saved")
        api.gate.wait(10)
        yield piece(" and this not yet")

    api.replies = [reply]
    conversation = chat.ask(NEW, "q")
    qtbot.waitUntil(lambda: chat.store.messages(conversation)[-1].text == "saved")
    chat.shutdown()


@pytest.mark.parametrize("early", [True, False])
def test_a_failure_is_part_of_the_thread_and_can_be_retried(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi, early: bool
) -> None:
    if early:
        api.refusals["/v1/chat/completions"] = NoCapacity("The queue is full.", remedy="Wait.")
    else:

        def reply(_body: Any) -> Iterator[bytes]:
            yield opening()
            yield piece("half")
            yield failing(ChainBroken("DESK-3 left.", remedy="Try again."))

        api.replies = [reply]
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    answer = last(chat, conversation)
    assert answer.status == "failed"
    assert answer.failure is not None
    assert (answer.text, answer.failure.code, answer.failure.remedy) == (
        ("", "no_capacity", "Wait.") if early else ("half", "chain_broken", "Try again.")
    )
    api.refusals.clear()
    api.replies = [saying("works")]
    chat.regenerate(conversation)
    idle(qtbot, chat)
    assert texts(chat, conversation) == ["q", "works"]
    assert last(chat, conversation).failure is None


def test_an_agent_that_is_not_there(qtbot: QtBot, chat: ChatModel, api: FakeChatApi) -> None:
    api.stop()
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    failure = last(chat, conversation).failure
    assert failure is not None
    assert failure.code == "agent_not_running"


def test_an_agent_that_dies_in_the_middle(qtbot: QtBot, chat: ChatModel, api: FakeChatApi) -> None:
    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        yield piece("half")

    api.replies = [reply]  # and the connection closes
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    assert last(chat, conversation).text == "half"
    assert last(chat, conversation).status == "failed"


def test_an_agent_that_falls_silent(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SILENCE", 0.4)

    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        for _ in range(4):  # comments keep it alive
            time.sleep(0.2)
            yield comment("keep-alive")
        yield piece("half")
        api.gate.wait(10)

    api.replies = [reply]
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    message = last(chat, conversation)
    assert message.text == "half"
    assert message.failure is not None
    assert message.failure.code == "peer_timeout"


def test_nonsense_in_the_stream(qtbot: QtBot, chat: ChatModel, api: FakeChatApi) -> None:
    api.replies = [lambda _body: iter([opening(), piece("x"), b"data: {nonsense\n\n", closing()])]
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    failure = last(chat, conversation).failure
    assert failure is not None
    assert failure.code == "malformed"


def test_the_place_in_the_queue(qtbot: QtBot, chat: ChatModel, api: FakeChatApi) -> None:
    def reply(_body: Any) -> Iterator[bytes]:
        yield comment("queued 3")
        yield comment("keep-alive")
        api.gate.wait(10)
        yield opening()
        yield piece("x")
        yield closing()

    api.replies = [reply]
    conversation = chat.ask(NEW, "q")
    qtbot.waitUntil(lambda: getattr(chat.running(conversation), "place", None) == 3)
    api.gate.set()
    idle(qtbot, chat)
    assert last(chat, conversation).status == "complete"


def test_a_pause_is_said_while_it_lasts_and_noted_afterwards(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("one ", "two")]
    conversation = chat.ask(NEW, "q")
    has_text(qtbot, chat, conversation, "one ")
    begun = time.monotonic()
    qtbot.waitUntil(lambda: chat.paused_for(conversation) > 0, timeout=4000)
    assert time.monotonic() - begun >= 1.2
    api.gate.set()
    idle(qtbot, chat)
    (pause,) = last(chat, conversation).pauses
    assert pause.at == 4
    assert 1.5 <= pause.seconds < 8


def test_editing_a_question_replaces_what_followed(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    conversation = NEW
    for question in ("a", "b", "c"):
        conversation = chat.ask(conversation, question)
        idle(qtbot, chat)
    messages = chat.messages(conversation)
    assert chat.removed_by_edit(messages[2]) == 3
    chat.edit(messages[2], "B")
    idle(qtbot, chat)
    assert texts(chat, conversation) == ["a", "Paris.", "B", "Paris."]
    assert [m["content"] for m in api.questions[-1]["messages"]] == ["a", "Paris.", "B"]


def test_options_are_sent_and_kept_for_the_next_chat(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    conversation = chat.ask(NEW, "q")
    idle(qtbot, chat)
    chat.set_options(conversation, Options("large", "Be brief.", 0.7, 64))
    chat.ask(conversation, "again")
    idle(qtbot, chat)
    asked = api.questions[-1]
    assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("large", 0.7, 64)
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    # a system prompt belongs to its chat, the rest is what this person likes
    assert chat.options(NEW) == Options("large", "", 0.7, 64)


def test_without_a_model_the_question_stays_and_can_be_retried(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.models = []
    with qtbot.waitSignal(chat.models_changed):
        chat.refresh_models()
    conversation = chat.ask(NEW, "q")
    failure = last(chat, conversation).failure
    assert failure is not None
    assert failure.message == "The fleet serves no model yet."
    api.models = [model("late")]
    # a look that was under way may still have seen none
    qtbot.waitUntil(lambda: chat.refresh_models() or bool(chat.models))
    chat.regenerate(conversation)
    idle(qtbot, chat)
    assert texts(chat, conversation) == ["q", "Paris."]


def test_updates_come_at_most_thirty_times_a_second(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [saying("word " * 300, size=5, pace=0.002)]
    seen: list[int] = []
    chat.answer_changed.connect(seen.append)
    begun = time.monotonic()
    chat.ask(NEW, "q")
    idle(qtbot, chat)
    assert 2 <= len(seen) <= 30 * (time.monotonic() - begun) + 2


def test_deleting_everything_while_answers_come(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi
) -> None:
    api.replies = [api.gated("half", "never")]
    for question in ("a", "b"):
        has_text(qtbot, chat, chat.ask(NEW, question), "half")
    chat.delete_all()
    assert not chat.busy
    assert chat.store.conversations() == []


def test_the_disk_is_waited_for_only_when_no_answer_comes(
    qtbot: QtBot, chat: ChatModel, api: FakeChatApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat._tidy_later.setInterval(50)
    asked: list[str] = []
    run = chat.store._run

    def watched(sql: str, *values: Any) -> Any:
        asked.append(sql)
        return run(sql, *values)

    monkeypatch.setattr(chat.store, "_run", watched)
    assert chat.store._db.execute("PRAGMA wal_autocheckpoint").fetchone() == (JOURNAL_PAGES,)
    api.replies = [saying("quick"), api.gated("slow ", "answer")]
    chat.ask(NEW, "q")
    idle(qtbot, chat)
    conversation = chat.ask(NEW, "at once again")
    has_text(qtbot, chat, conversation, "slow ")
    qtbot.wait(150)
    assert not [sql for sql in asked if "checkpoint" in sql]
    api.gate.set()
    idle(qtbot, chat)
    qtbot.waitUntil(lambda: len([sql for sql in asked if "checkpoint" in sql]) == 1)
