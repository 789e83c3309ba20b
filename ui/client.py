"""Requests to the agent's loopback API, without ever blocking the Qt thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QByteArray, QCoreApplication, QObject, QTimer, QUrl, Signal
from PySide6.QtNetwork import (
    QNetworkAccessManager,
    QNetworkProxy,
    QNetworkReply,
    QNetworkRequest,
)

from fleetapp.errors import (
    AgentNotRunning,
    Cancelled,
    FleetError,
    Malformed,
    PeerTimeout,
    from_code,
)
from ui import agent_words
from ui.endpoint import Endpoint, not_running, read_endpoint

translate = QCoreApplication.translate

DEADLINE = 10.0
"""Seconds a request may take unless its caller knows better."""

_NOT_THERE = {
    QNetworkReply.NetworkError.ConnectionRefusedError,
    QNetworkReply.NetworkError.RemoteHostClosedError,
    QNetworkReply.NetworkError.HostNotFoundError,
}


class Call(QObject):
    """One request; ends with exactly one of its two signals, within its deadline."""

    succeeded = Signal(object)
    failed = Signal(object)
    """A FleetError."""

    def __init__(self, result: type[Any] | None, deadline: float, parent: QObject) -> None:
        super().__init__(parent)
        self._result = result
        self._seconds = deadline
        self._reply: QNetworkReply | None = None
        self._verdict: FleetError | None = None
        self._ended = False
        self._deadline = QTimer(self, singleShot=True)
        self._deadline.timeout.connect(self._too_late)

    def then(self, done: Callable[[Any], object], failed: Callable[[FleetError], object]) -> Call:
        """Connect both ends; returns itself."""
        self.succeeded.connect(done)
        self.failed.connect(failed)
        return self

    def cancel(self) -> None:
        """End now with Cancelled; nothing happens if it has ended."""
        self._abort(Cancelled(self.tr("The request was cancelled.")))

    def begin(self, reply: QNetworkReply) -> None:
        """Follow ``reply`` to its end."""
        self._reply = reply
        reply.finished.connect(self._finished)
        self._deadline.start(round(self._seconds * 1000))

    def refuse(self, error: FleetError) -> None:
        """End with ``error`` on the next turn of the loop, after the caller has connected."""
        QTimer.singleShot(0, self, lambda: self._end(error))

    def _too_late(self) -> None:
        late = self.tr(
            "The agent did not answer within %n seconds.", "", max(1, round(self._seconds))
        )
        self._abort(PeerTimeout(late))

    def _abort(self, why: FleetError) -> None:
        self._verdict = self._verdict or why
        if self._reply is not None:
            self._reply.abort()  # calls _finished

    def _finished(self) -> None:
        reply = self._reply
        if reply is None:
            return
        self._deadline.stop()
        if self._verdict is not None:
            self._end(self._verdict)
        elif (error := reply_error(reply)) is not None:
            self._end(error)
        else:
            body = bytes(reply.readAll().data())
            try:
                value = (
                    None if self._result is None else msgspec.json.decode(body, type=self._result)
                )
            except msgspec.DecodeError as problem:
                odd = self.tr("The agent's answer makes no sense: {problem}.")
                self._end(Malformed(odd.format(problem=problem)))
            else:
                self._end(None, value)
        reply.deleteLater()

    def _end(self, error: FleetError | None, value: object = None) -> None:
        if self._ended:
            return
        self._ended = True
        if error is None:
            self.succeeded.emit(value)
        else:
            self.failed.emit(error)
        self.deleteLater()


def _status_of(reply: QNetworkReply) -> int:
    """Zero before the head of the response has come."""
    return int(reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute) or 0)


def is_success(reply: QNetworkReply) -> bool:
    """Whether the agent has begun to answer with what was asked for."""
    return 200 <= _status_of(reply) < 300


def reply_error(reply: QNetworkReply) -> FleetError | None:
    """What a finished reply failed with, in the words of whoever refused."""
    if _status_of(reply) >= 400:
        return _from_body(_status_of(reply), bytes(reply.readAll().data()))
    if reply.error() == QNetworkReply.NetworkError.NoError:
        return None
    if reply.error() in _NOT_THERE:
        return not_running()
    why = translate("Errors", "The agent on this PC cannot be reached: {why}.")
    return AgentNotRunning(why.format(why=reply.errorString()))


class _ErrorDetail(msgspec.Struct):
    message: str
    code: str = ""
    remedy: str = ""


class _ErrorBody(msgspec.Struct):
    error: _ErrorDetail


def told_error(body: bytes) -> FleetError | None:
    """The error that a body, or the last event of a stream, tells of; None if it is none."""
    try:
        detail = msgspec.json.decode(body, type=_ErrorBody).error
    except msgspec.DecodeError:
        return None
    return from_code(detail.code, agent_words.said(detail.message), agent_words.said(detail.remedy))


def _from_body(status: int, body: bytes) -> FleetError:
    odd = translate("Errors", "The agent refused with status {status} and gave no reason.")
    return told_error(body) or FleetError(odd.format(status=status))


class AgentClient(QObject):
    """The loopback API of the agent whose state folder is ``home``."""

    def __init__(self, home: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.home = home
        self._network = QNetworkAccessManager(self)
        # a company's proxy has no business with this PC's own loopback address
        self._network.setProxy(QNetworkProxy(QNetworkProxy.ProxyType.NoProxy))

    def get(self, path: str, result: type[Any] | None, deadline: float = DEADLINE) -> Call:
        """``GET path``; the call succeeds with a ``result``, or with None if that is None."""
        return self._call(path, None, result, deadline)

    def post(
        self, path: str, body: object, result: type[Any] | None, deadline: float = DEADLINE
    ) -> Call:
        """``POST path`` with ``body`` as JSON."""
        return self._call(path, msgspec.json.encode(body), result, deadline)

    def delete(self, path: str, deadline: float = DEADLINE) -> Call:
        """``DELETE path``; the call succeeds with None."""
        call = Call(None, deadline, self)
        try:
            request = self._request(read_endpoint(self.home), path)
        except AgentNotRunning as error:
            call.refuse(error)
            return call
        call.begin(self._network.deleteResource(request))
        return call

    def open_stream(self, path: str, silence: float) -> QNetworkReply:
        """A response that goes on; it ends by itself after ``silence`` seconds without a byte.

        Raises:
            AgentNotRunning: no agent to ask.
        """
        request = self._request(read_endpoint(self.home), path)
        request.setRawHeader(b"Accept", b"text/event-stream")
        request.setTransferTimeout(round(silence * 1000))
        return self._network.get(request)

    def post_stream(self, path: str, body: object, silence: float) -> QNetworkReply:
        """The same for a response that ``body`` as JSON asks for.

        Raises:
            AgentNotRunning: no agent to ask.
        """
        request = self._request(read_endpoint(self.home), path)
        request.setRawHeader(b"Accept", b"text/event-stream")
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        request.setTransferTimeout(round(silence * 1000))
        return self._network.post(request, QByteArray(msgspec.json.encode(body)))

    def _call(
        self, path: str, body: bytes | None, result: type[Any] | None, deadline: float
    ) -> Call:
        call = Call(result, deadline, self)
        try:
            request = self._request(read_endpoint(self.home), path)
        except AgentNotRunning as error:
            call.refuse(error)
            return call
        if body is None:
            call.begin(self._network.get(request))
        else:
            request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
            call.begin(self._network.post(request, QByteArray(body)))
        return call

    def _request(self, endpoint: Endpoint, path: str) -> QNetworkRequest:
        request = QNetworkRequest(QUrl(f"http://127.0.0.1:{endpoint.port}{path}"))
        request.setRawHeader(b"Authorization", f"Bearer {endpoint.token}".encode())
        request.setAttribute(
            QNetworkRequest.Attribute.RedirectPolicyAttribute,
            QNetworkRequest.RedirectPolicy.ManualRedirectPolicy,
        )
        return request
