"""What the agent says as it changes: server-sent events, with reconnecting."""

from __future__ import annotations

from typing import Any

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal
from PySide6.QtNetwork import QNetworkReply

from fleetapp.errors import AgentNotRunning, FleetError, Malformed
from fleetapp.types import LocalStatus
from ui.client import AgentClient, is_success, reply_error, told_error

translate = QCoreApplication.translate

SILENCE = 40.0
"""Seconds; the agent sends at least a comment every 15."""
BACKOFF = (0.25, 0.5, 1.0, 2.0, 4.0)
MAX_EVENT = 4 * 1024 * 1024
"""Bytes; more than any status of one PC."""


class SseParser:
    """Bytes in, the ``data`` of complete events out. Other fields are skipped."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self.comments: list[str] = []
        """Comment lines of the newest chunk."""
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that ``chunk`` completes.

        Raises:
            Malformed: a line or an event of more than ``limit`` bytes.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) + sum(map(len, self._data)) > self._limit:
            raise Malformed(
                translate("Errors", "The agent sent an event that is larger than allowed.")
            )
        events = []
        self.comments = []
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not field and not value and self._data:
                events.append(b"\n".join(self._data))
                self._data = []
            elif not field and value:
                self.comments.append(value.decode("utf-8", "replace").strip())
        return events


class EventStream(QObject):
    """Keeps one stream of values open until it is stopped.

    Args:
        client: where.
        path: of the stream.
        kind: what each event is.
        limit: bytes that an event may have.
    """

    received = Signal(object)
    """A value of the kind."""
    lost = Signal(object)
    """A FleetError: after every attempt that failed and every stream that ended."""

    def __init__(
        self,
        client: AgentClient,
        path: str,
        kind: type[Any],
        parent: QObject | None = None,
        limit: int = MAX_EVENT,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._path = path
        self._decoder = msgspec.json.Decoder(kind)
        self._limit = limit
        self._reply: QNetworkReply | None = None
        self._parser = SseParser(limit)
        self._failures = 0
        self._problem: FleetError | None = None
        self._again = QTimer(self, singleShot=True)
        self._again.timeout.connect(self.connect_now)

    def connect_now(self) -> None:
        """Open the stream unless it is open; failures so far are forgotten only by a success."""
        self._again.stop()
        if self._reply is not None:
            return
        try:
            reply = self._client.open_stream(self._path, SILENCE)
        except AgentNotRunning as error:
            self._lose(error)
            return
        self._parser = SseParser(self._limit)
        self._problem = None
        self._reply = reply
        reply.readyRead.connect(self._read)
        reply.finished.connect(self._finished)

    def stop(self) -> None:
        """Close it for good."""
        self._again.stop()
        if (reply := self._reply) is not None:
            self._reply = None
            reply.abort()
            reply.deleteLater()

    def _read(self) -> None:
        reply = self._reply
        # the body of a refusal is read as one when it is complete
        if reply is None or not is_success(reply):
            return
        try:
            for event in self._parser.feed(bytes(reply.readAll().data())):
                if event.startswith(b'{"error"') and (told := told_error(event)) is not None:
                    self._problem = told
                    continue
                value = self._decoder.decode(event)
                self._failures = 0
                self.received.emit(value)
        except msgspec.DecodeError as error:
            self._problem = Malformed(
                self.tr("This desktop app does not understand the agent: {why}.").format(why=error),
                remedy=self.tr("Quit and start it again, so that both have the same version."),
            )
            reply.abort()
        except Malformed as error:
            self._problem = error
            reply.abort()

    def _finished(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        error = self._problem or reply_error(reply)
        reply.deleteLater()
        self._lose(error or AgentNotRunning(self.tr("The agent on this PC has ended.")))

    def _lose(self, error: FleetError) -> None:
        delay = BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1
        self._again.start(round(delay * 1000))
        self.lost.emit(error)


class StatusStream(EventStream):
    """The status of this PC, for as long as the desktop app lives."""

    def __init__(self, client: AgentClient, parent: QObject | None = None) -> None:
        super().__init__(client, "/local/v1/events", LocalStatus, parent)
