"""One answer's stream from the agent: bytes in, events out, an end for certain."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from fleetapp.errors import AgentNotRunning, FleetError, Malformed, PeerTimeout
from ui.client import AgentClient, is_success, reply_error
from ui.stream import SseParser

SILENCE = 45.0
"""Seconds without a byte; the agent sends at least a comment every 10."""


_SILENT = {
    QNetworkReply.NetworkError.OperationCanceledError,
    QNetworkReply.NetworkError.TimeoutError,
}
"""What Qt calls a response that stood still, depending on how much of it had come."""


class AnswerStream(QObject):
    """Ends with exactly one ``ended``, unless it is aborted first; then nothing follows."""

    received = Signal(bytes)
    """The data of one event."""
    commented = Signal(str)
    ended = Signal(object)
    """None if the response was complete, else a FleetError."""

    def __init__(self, client: AgentClient, body: dict[str, Any], parent: QObject) -> None:
        super().__init__(parent)
        self._parser = SseParser()
        self._reply: QNetworkReply | None = None
        self._over = False
        self._problem: FleetError | None = None
        try:
            reply = client.post_stream("/v1/chat/completions", body, SILENCE)
        except AgentNotRunning as error:
            # said on the next turn of the loop, when somebody listens
            self._problem = error
            QTimer.singleShot(0, self, self._refuse)
            return
        self._reply = reply
        reply.readyRead.connect(self._read)
        reply.finished.connect(self._finished)

    def abort(self) -> None:
        """Close the connection, which cancels the request; no signal comes after this."""
        self._over = True
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.abort()
            reply.deleteLater()

    def _read(self) -> None:
        reply = self._reply
        # the body of a refusal is read as one when it is complete
        if reply is None or not is_success(reply):
            return
        try:
            events = self._parser.feed(bytes(reply.readAll().data()))
        except Malformed as error:
            self._end(error)
            return
        for comment in self._parser.comments:
            self.commented.emit(comment)
        for event in events:
            if self._over:
                return
            self.received.emit(event)

    def _finished(self) -> None:
        reply = self._reply
        if reply is None:
            return
        if is_success(reply):
            self._read()
        if reply.error() in _SILENT:
            silent = self.tr("The agent has said nothing for %n seconds.", "", round(SILENCE))
            self._end(PeerTimeout(silent, remedy=self.tr("Try again.")))
        else:
            self._end(reply_error(reply))

    def _refuse(self) -> None:
        self._end(self._problem)

    def _end(self, error: FleetError | None) -> None:
        if self._over:
            return
        self._over = True
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.abort()
            reply.deleteLater()
        self.ended.emit(error)
