"""One answer under way: its stream, and what has come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from fleetapp.errors import FleetError, Malformed
from ui.chat import answer as answers
from ui.chat.answer import Answer
from ui.chat.transport import AnswerStream
from ui.chat.values import Message
from ui.client import AgentClient
from ui.coalesce import Coalescer


class Run(QObject):
    """Sends the request at once. Call ``close`` when nobody wants to hear of it any more."""

    advanced = Signal(object)
    """Itself: ``answer`` is another one."""
    to_show = Signal(int)
    """The conversation; as ``advanced``, but at most 30 times a second."""

    def __init__(
        self,
        client: AgentClient,
        body: dict[str, Any],
        message: Message,
        parent: QObject,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(parent)
        self._clock = clock
        self.answer = answers.begin(message, clock())
        self.saved = clock()
        """When the text was written down last."""
        self._stream = AnswerStream(client, body, self)
        self._stream.received.connect(self._received)
        self._stream.commented.connect(self._commented)
        self._stream.ended.connect(self._ended)
        self._news = Coalescer(self)
        self._news.passed.connect(self._show)

    def close(self) -> None:
        """Cancel the request if it is still under way; no signal comes after this."""
        self.blockSignals(True)
        self._stream.abort()
        self.deleteLater()

    def _received(self, data: bytes) -> None:
        try:
            self._advance(answers.event(self.answer, bytes(data), self._clock()))
        except Malformed as error:
            self._advance(answers.fail(self.answer, answers.failure_of(error)))

    def _commented(self, text: str) -> None:
        self._advance(answers.comment(self.answer, text))

    def _ended(self, error: FleetError | None) -> None:
        if error is None:
            self._advance(answers.end(self.answer))
        else:
            self._advance(answers.fail(self.answer, answers.failure_of(error)))

    def _advance(self, answer: Answer) -> None:
        self.answer = answer
        self.advanced.emit(self)
        self._news.submit(answer.message.conversation)

    def _show(self, conversation: int) -> None:
        self.to_show.emit(conversation)
