"""The chat window in its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from fleetapp.errors import ChainBroken
from ui import agent_words, theme
from ui.chat.answer import Answer, Phase
from ui.chat.model import ChatModel, ModelChoice
from ui.chat.store import FILE, ConversationStore
from ui.chat.values import NEW, Failure, Message, Options, Pause, Served
from ui.chat.window import ChatWindow
from ui.gallery.stage import Scene, Stage
from ui.gallery.states import MODEL, MOMENT
from ui.gallery.texts import HOSTILE, texts

PCS = ("DESK-01", "DESK-12", "LAB-03")
SERVED = Served(PCS, 64, 187, 0.02, 0.61, 9.1, 21.9)
ASIDE = "chats.damaged-20260303T114300.sqlite3"
SMALL = "qwen3-0.6b-int8"


class RecordedChat(ChatModel):
    """A chat whose fleet says nothing but what was recorded."""

    def __init__(self, stage: Stage, served: tuple[str, ...] = (MODEL, SMALL)) -> None:
        self.now = MOMENT
        super().__init__(stage.client, ConversationStore(stage.home, lambda: self.now), stage)
        fleet = {"ready": True, "context_length": 32768, "devices": PCS}
        found = [{"id": name, "fleet": fleet} for name in served]
        self.models = msgspec.convert(found, tuple[ModelChoice, ...])
        self._under_way: dict[int, Answer] = {}
        self._pause = 0.0

    def record(self, question: str, answer: str, **changes: object) -> Message:
        """A conversation of one question; returns the answer."""
        options = Options(model=MODEL)
        return self.record_in(self.store.create(question, options).id, question, answer, **changes)

    def record_in(
        self, conversation: int, question: str, answer: str, **changes: object
    ) -> Message:
        """One more question and its answer."""
        self.store.add(conversation, "user", question)
        message = self.store.add(conversation, "assistant", answer, model=MODEL)
        message = replace(message, **({"served": SERVED} | changes))  # type: ignore[arg-type]
        self.store.save(message)
        return message

    def record_under_way(self, message: Message, phase: Phase, pause: float = 0.0) -> None:
        """This answer is not complete yet."""
        self._under_way[message.conversation] = Answer(message, phase, place=3)
        self._pause = pause

    def running(self, conversation: int) -> Answer | None:
        return self._under_way.get(conversation)

    def paused_for(self, conversation: int) -> float:
        return self._pause if conversation in self._under_way else 0.0

    def refresh_models(self) -> None:
        """What there is stays."""


def scenes() -> list[Scene]:
    """In the order of the contact sheet."""
    return [
        Scene("chat-empty", _empty),
        Scene("chat-no-model", _no_model),
        Scene("chat-sent", _under_way("sent")),
        Scene("chat-queued", _under_way("queued")),
        Scene("chat-reading", _under_way("reading")),
        Scene("chat-writing", _under_way("answering")),
        Scene("chat-paused", _under_way("answering", 4.0)),
        Scene("chat-answer", _answer),
        Scene("chat-failure", _failure),
        Scene("chat-recovery", _recovery),
        Scene("chat-stopped", _stopped),
        Scene("chat-search", _search("Lisbon Lissabon")),
        Scene("chat-search-nothing", _search("xyzzy")),
        Scene("chat-find", _find),
        Scene("chat-options", _options),
        Scene("chat-edit", _edit),
        Scene("chat-rename", _rename),
        Scene("chat-hostile", _hostile),
        Scene("chat-narrow", _narrow),
        Scene("chat-damaged", _damaged),
        Scene("chat-menu", _menu),
        Scene("dialog-link", _link("https://docs.example.org/rooms/list?day=tue#porto")),
        Scene("dialog-link-refused", _link("javascript:alert(document.cookie)")),
        Scene("dialog-delete", _delete),
        Scene("dialog-delete-all", _delete_all),
    ]


def _others(chat: RecordedChat) -> None:
    """What was talked about on the days before."""
    for days, title in enumerate(texts().titles):
        chat.now = MOMENT - 86_400 * (len(texts().titles) - days)
        chat.record(title, "…")
    chat.now = MOMENT


def _window(stage: Stage, chat: RecordedChat, conversation: int = NEW) -> ChatWindow:
    window = ChatWindow(chat)
    window.resize(120 * theme.GRID, 80 * theme.GRID)
    window.show_conversation(conversation)
    window.show()

    stage.at_the_end(window.hide)
    stage.keep(window, chat.store.close)
    stage.settle()
    return window


def _chat(stage: Stage) -> tuple[RecordedChat, Message]:
    """The usual conversation; returns its answer."""
    chat = RecordedChat(stage)
    _others(chat)
    return chat, chat.record(texts().question, texts().answer)


def _empty(stage: Stage) -> QWidget:
    chat = RecordedChat(stage)
    _others(chat)
    return _window(stage, chat)


def _no_model(stage: Stage) -> QWidget:
    return _window(stage, RecordedChat(stage, ()))


def _under_way(phase: Phase, pause: float = 0.0) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        chat, first = _chat(stage)
        text = texts().second_answer if phase == "answering" else ""
        newest = chat.record_in(
            first.conversation, texts().second, text, status="writing", served=Served()
        )
        chat.record_under_way(newest, phase, pause)
        return _window(stage, chat, first.conversation)

    return show


def _answer(stage: Stage) -> ChatWindow:
    chat, message = _chat(stage)
    return _window(stage, chat, message.conversation)


def _failure(stage: Stage) -> QWidget:
    chat, first = _chat(stage)
    lost = ChainBroken("DESK-12 left the fleet while it held a stage.")
    failed = Failure(lost.code, agent_words.said(lost.message), agent_words.said(lost.remedy))
    chat.record_in(
        first.conversation,
        texts().second,
        texts().second_answer,
        status="failed",
        failure=failed,
        served=Served(PCS, 64, 12, 0.02, 0.58),
    )
    return _window(stage, chat, first.conversation)


def _recovery(stage: Stage) -> QWidget:
    chat, first = _chat(stage)
    chat.record_in(
        first.conversation,
        texts().second,
        texts().second_answer + ".",
        pauses=(Pause(14, 2.1), Pause(20, 3.4, replaced=True)),
        served=Served(("DESK-01", "DESK-07", "LAB-03"), 64, 41, 0.02, 0.58, 6.0, 18.3),
    )
    return _window(stage, chat, first.conversation)


def _stopped(stage: Stage) -> QWidget:
    chat, first = _chat(stage)
    chat.record_in(first.conversation, texts().second, texts().second_answer, status="stopped")
    return _window(stage, chat, first.conversation)


def _search(words: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        window = _answer(stage)
        wanted = next((w for w in words.split() if w in texts().answer), words)
        window.sidebar.start_search()
        window.sidebar.search.setText(wanted)
        window.sidebar.refresh()
        return window

    return show


def _find(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.find_bar.start(window.model.messages(window.current))
    window.find_bar.field.setText(texts().words)
    return window


def _options(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.options_button.click()
    window.options.system.setPlainText(texts().system)
    window.options.temperature.setValue(0.7)
    return window


def _edit(stage: Stage) -> QWidget:
    chat, first = _chat(stage)
    chat.record_in(first.conversation, texts().second, texts().second_answer + ".")
    window = _window(stage, chat, first.conversation)
    window.edit(chat.messages(first.conversation)[0])
    return window


def _rename(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.sidebar.rename_current()
    return window


def _hostile(stage: Stage) -> QWidget:
    chat = RecordedChat(stage)
    message = chat.record("<b>?</b>", HOSTILE)
    return _window(stage, chat, message.conversation)


def _narrow(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.composer.set_text(texts().draft)
    window.resize(window.minimumSizeHint().width(), 60 * theme.GRID)
    return window


def _damaged(stage: Stage) -> QWidget:
    (stage.home / FILE).write_bytes(b"This is no database." * 400)
    chat = RecordedChat(stage)
    set_aside = chat.store.set_aside
    if set_aside is not None:  # its real place is another one in every run
        chat.store.set_aside = set_aside.relative_to(stage.home).with_name(ASIDE)
    return _window(stage, chat)


def _menu(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.menu.popup(QPoint(0, 0))
    stage.at_the_end(window.menu.hide)
    return window.menu


def _link(address: str) -> Callable[[Stage], QWidget]:
    def show(stage: Stage) -> QWidget:
        window = _answer(stage)
        window.look_at_link(address)
        assert window.dialog is not None
        return window.dialog

    return show


def _question(window: ChatWindow) -> QWidget:
    assert window.question is not None
    return window.question


def _delete(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.ask_to_delete()
    return _question(window)


def _delete_all(stage: Stage) -> QWidget:
    window = _answer(stage)
    window.ask_to_delete_all()
    return _question(window)
