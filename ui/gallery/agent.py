"""The part of the agent in the pictures: answers that were recorded, and silence otherwise."""

from __future__ import annotations

import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QByteArray, QIODevice, QObject, QTimer
from PySide6.QtNetwork import QNetworkReply, QNetworkRequest

from fleetapp.errors import FleetError, from_code
from ui import agent_words
from ui.client import AgentClient, Call

MOMENTS = ("certificate_ends", "created", "expires")
"""Fields that count seconds from the moment of the picture."""


def recorded(name: str) -> Any:
    """What the file of this name holds, with times of today."""
    path = files("ui") / "gallery" / "recorded" / f"{name}.json"
    return _of_today(msgspec.json.decode(path.read_bytes()), time.time())


def _of_today(value: Any, now: float) -> Any:
    if isinstance(value, list):
        return [_of_today(one, now) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: now + one if key in MOMENTS and isinstance(one, (int, float)) else _of_today(one, now)
        for key, one in value.items()
    }


class StillClient(AgentClient):
    """Requests that are under way until the scene says how they end, but for known ``answers``."""

    def __init__(self, home: Path, parent: QObject) -> None:
        super().__init__(home, parent)
        self.answers: dict[str, Any] = {}
        """``GET`` or ``POST`` and the path without what follows ``?`` -> value, as JSON has it."""
        self.events: dict[str, Any] = {}
        """Path of a stream -> the one value that comes."""
        self._newest: Call | None = None

    def grant(self, value: object) -> None:
        """The newest request succeeds."""
        assert self._newest is not None
        self._newest.succeeded.emit(value)

    def refuse(self, error: FleetError) -> None:
        """The newest request fails, in the words of an agent."""
        assert self._newest is not None
        said = from_code(
            error.code, agent_words.said(error.message), agent_words.said(error.remedy)
        )
        self._newest.failed.emit(said)

    def open_stream(self, path: str, silence: float) -> QNetworkReply:  # noqa: ARG002 - never ends
        """A stream of one event at most."""
        return _RecordedStream(self.events.get(path), self)

    def _call(
        self,
        path: str,
        body: bytes | None,
        result: type[Any] | None,
        deadline: float,
    ) -> Call:
        call = self._newest = Call(result, deadline, self)
        verb = "GET" if body is None else "POST"
        answer = self.answers.get(f"{verb} {path.partition('?')[0]}")
        if answer is not None and result is not None:
            value = msgspec.convert(answer, result)
            QTimer.singleShot(0, call, lambda: call.succeeded.emit(value))
        return call


class _RecordedStream(QNetworkReply):
    """Server-sent events, as if they came over the network."""

    def __init__(self, event: Any, parent: QObject) -> None:
        super().__init__(parent)
        self._text = b"" if event is None else b"data: " + msgspec.json.encode(event) + b"\n\n"
        self.setAttribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute, 200)
        self.open(QIODevice.OpenModeFlag.ReadOnly)
        QTimer.singleShot(0, self, self.readyRead.emit)

    def abort(self) -> None:
        """Nothing is under way."""

    def readAll(self) -> QByteArray:  # noqa: N802 - Qt's name
        """The event, once."""
        text, self._text = self._text, b""
        return QByteArray(text)
