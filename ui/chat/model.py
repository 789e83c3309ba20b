"""Conversations and the answers that are being written, for any number of windows.

An answer belongs to its conversation and not to what is on the screen: it ends where it belongs
when the person looks elsewhere, asks again, deletes the conversation or closes the window.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from fleetapp.errors import FleetError
from ui.chat import answer as answers
from ui.chat.answer import Answer
from ui.chat.errors import HistoryUnusable
from ui.chat.request import chat_request
from ui.chat.run import Run
from ui.chat.store import ConversationStore
from ui.chat.values import NEW, Conversation, Failure, Message, Options, Status
from ui.client import AgentClient

SAVE_EVERY = 1.0
"""Seconds between two saves of an answer under way: what a crash may take."""
LOOK_MS = 500
"""Between two looks whether a stream stands still."""
TIDY_MS = 3000
"""After the last answer, until the history's journal is put into its file."""
DEFAULTS = "options"
"""Under which the newest choice of options is remembered, for new conversations."""


class _FleetOfModel(msgspec.Struct, frozen=True):
    ready: bool = True
    context_length: int = 0
    devices: tuple[str, ...] = ()


class ModelChoice(msgspec.Struct, frozen=True):
    """One of ``/v1/models``."""

    id: str
    fleet: _FleetOfModel = _FleetOfModel()


class _ModelList(msgspec.Struct, frozen=True):
    data: tuple[ModelChoice, ...]


class ChatModel(QObject):
    """Everything a chat window shows and does, without a widget."""

    conversations_changed = Signal()
    thread_changed = Signal(int)
    """Messages of this conversation were added or removed, or it is gone."""
    answer_changed = Signal(int)
    """The answer under way in this conversation has more to show; at most 30 times a second."""
    models_changed = Signal()
    history_failed = Signal(object)
    """A HistoryUnusable: from now on nothing is kept."""

    def __init__(
        self,
        client: AgentClient,
        store: ConversationStore,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self.store = store
        self.models: tuple[ModelChoice, ...] = ()
        self.models_problem: FleetError | None = None
        self._client = client
        self._clock = clock
        self._runs: dict[int, Run] = {}
        self._asking_models = False
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._look_for_pauses)
        self._tidy_later = QTimer(self, singleShot=True, interval=TIDY_MS)
        self._tidy_later.timeout.connect(self._tidy)
        store.lost_file = self._lost_file

    # what there is

    def messages(self, conversation: int) -> list[Message]:
        """As far as they have come."""
        stored = self.store.messages(conversation)
        run = self._runs.get(conversation)
        if run is None:
            return stored
        newest = run.answer.message
        return [newest if message.id == newest.id else message for message in stored]

    def running(self, conversation: int) -> Answer | None:
        """The answer under way in a conversation."""
        run = self._runs.get(conversation)
        return None if run is None else run.answer

    def paused_for(self, conversation: int) -> float:
        """Seconds that its answer has stood still, 0 while it flows."""
        answer = self.running(conversation)
        return 0.0 if answer is None else answers.paused_for(answer, self._clock())

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    def options(self, conversation: int) -> Options:
        """Those of a conversation; for a new one the newest choice, but without a system prompt."""
        known = self.store.conversation(conversation)
        if known is not None:
            return known.options
        try:
            return msgspec.json.decode(self.store.recall(DEFAULTS), type=Options)
        except msgspec.DecodeError:
            return Options()

    def set_options(self, conversation: int, options: Options) -> None:
        """Used from the next question on."""
        self.store.set_options(conversation, options)
        kept = options if conversation == NEW else replace(options, system="")
        self.store.remember(DEFAULTS, msgspec.json.encode(kept).decode())

    # what a person does

    def ask(self, conversation: int, text: str) -> int:
        """Send a question; returns the conversation, which is a new one for NEW.

        An answer that is still under way in it is stopped first.
        """
        options = self.options(conversation)
        if self.store.conversation(conversation) is None:
            conversation = self.store.create(text, options).id
            self.store.remember(DEFAULTS, msgspec.json.encode(replace(options, system="")).decode())
        self._finish(conversation, "stopped")
        self.store.add(conversation, "user", text)
        self._answer(conversation)
        return conversation

    def regenerate(self, conversation: int) -> None:
        """Replace the last answer, also one that failed, by a new one."""
        self._finish(conversation, "stopped")
        messages = self.store.messages(conversation)
        if not messages:
            return
        if messages[-1].role == "assistant":
            self.store.remove_from(messages[-1])
        self._answer(conversation)

    def removed_by_edit(self, message: Message) -> int:
        """How many messages after ``message`` go when it is sent again."""
        return sum(m.id > message.id for m in self.store.messages(message.conversation))

    def edit(self, message: Message, text: str) -> None:
        """Replace a question and everything after it by a new one."""
        self._finish(message.conversation, "stopped")
        if self.store.conversation(message.conversation) is None:
            return
        self.store.remove_from(message)
        self.ask(message.conversation, text)

    def stop(self, conversation: int) -> None:
        """End the answer under way; what has come of it stays."""
        if self._finish(conversation, "stopped"):
            self.thread_changed.emit(conversation)

    def rename(self, conversation: int, title: str) -> None:
        self.store.rename(conversation, title)
        self.conversations_changed.emit()

    def delete(self, conversation: int) -> None:
        """For good; an answer under way is cancelled."""
        self._finish(conversation, "stopped")
        self.store.delete(conversation)
        self.conversations_changed.emit()
        self.thread_changed.emit(conversation)

    def delete_all(self) -> None:
        """The whole history."""
        gone = [c.id for c in self.store.conversations()]
        for conversation in gone:
            self._finish(conversation, "stopped")
        self.store.delete_all()
        self.conversations_changed.emit()
        for conversation in gone:
            self.thread_changed.emit(conversation)

    def search(self, words: str) -> list[Conversation]:
        """See ConversationStore."""
        return self.store.search(words)

    def refresh_models(self) -> None:
        """Ask which models are served; ``models_changed`` follows if that is news."""
        if not self._asking_models:
            self._asking_models = True
            self._client.get("/v1/models", _ModelList).then(self._models_came, self._no_models)

    def shutdown(self) -> None:
        """The app ends: answers under way are kept as far as they have come."""
        for conversation in list(self._runs):
            self._finish(conversation, "interrupted")
        self._tidy_later.stop()
        self.store.close()

    # the life of an answer

    def _answer(self, conversation: int) -> None:
        options = self.options(conversation)
        model = self.choose(options.model)
        history = self.store.messages(conversation)
        message = self.store.add(conversation, "assistant", "", status="writing", model=model)
        if not model:
            self._cannot_ask(message)
        else:
            body = chat_request(model, options, history)
            run = Run(self._client, body, message, self, self._clock)
            self._runs[conversation] = run
            run.advanced.connect(self._advanced)
            run.to_show.connect(self.answer_changed)
            self._look.start()
        self.conversations_changed.emit()
        self.thread_changed.emit(conversation)

    def choose(self, wanted: str) -> str:
        """The model that is asked: the one wanted, else the first that is ready."""
        ready = [m.id for m in self.models if m.fleet.ready] or [m.id for m in self.models]
        return wanted or (ready[0] if ready else "")

    def _cannot_ask(self, message: Message) -> None:
        translate = QCoreApplication.translate
        why = self.models_problem
        failure = (
            answers.failure_of(why)
            if why is not None
            else Failure(
                "no_capacity",
                translate("Chat", "The fleet serves no model yet."),
                translate("Chat", "An administrator starts one; then try again."),
            )
        )
        self.store.save(replace(message, status="failed", failure=failure))
        self.refresh_models()

    def _advanced(self, run: Run) -> None:
        answer = run.answer
        conversation = answer.message.conversation
        if self._runs.get(conversation) is not run:
            return  # a late event of an answer that has been replaced
        if answer.over:
            self._drop(conversation)
            self.store.save(answer.message)
            self.thread_changed.emit(conversation)
            return
        now = self._clock()
        if now - run.saved >= SAVE_EVERY:
            run.saved = now
            self.store.save(answer.message)

    def _finish(self, conversation: int, status: Status) -> bool:
        """End the answer under way, if there is one, and keep what has come."""
        run = self._runs.get(conversation)
        if run is None:
            return False
        # text that has come and was not followed by its last events is complete all the same
        answer = answers.stop(run.answer, status)
        self._drop(conversation)
        self.store.save(answer.message)
        return True

    def _drop(self, conversation: int) -> None:
        self._runs.pop(conversation).close()
        if not self._runs:
            self._look.stop()
            self._tidy_later.start()

    def _tidy(self) -> None:
        if not self._runs:
            self.store.tidy()

    def _look_for_pauses(self) -> None:
        for conversation in list(self._runs):
            if self.paused_for(conversation) > 0:
                self.answer_changed.emit(conversation)

    def _models_came(self, found: _ModelList) -> None:
        self._asking_models = False
        if found.data != self.models or self.models_problem is not None:
            self.models, self.models_problem = found.data, None
            self.models_changed.emit()

    def _no_models(self, error: FleetError) -> None:
        self._asking_models = False
        if str(error) != str(self.models_problem) or self.models:
            self.models, self.models_problem = (), error
            self.models_changed.emit()

    def _lost_file(self, problem: HistoryUnusable) -> None:
        self.history_failed.emit(problem)
