"""An agent whose ``/v1`` answers what a test has written down, piece by piece and on command.

Built on the fake of the loopback API, so the desktop app finds it in the same way.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fleetapp.errors import FleetError
from tests.support.fake_local_api import FakeLocalApi, joined_status

DEVICES = ("DESK-1", "José 測試", "DESK-3")
DONE = b"data: [DONE]\n\n"
Reply = Callable[[Any], Iterator[bytes]]


def event(value: object) -> bytes:
    """One event of a stream."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def comment(text: str) -> bytes:
    """A comment line: ``queued 3`` or ``keep-alive``."""
    return f": {text}\n\n".encode()


def opening(devices: Sequence[str] = DEVICES) -> bytes:
    """The first chunk."""
    return event(
        {
            "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            ],
            "fleet": {"devices": list(devices), "prompt_tokens": 21},
        }
    )


def piece(text: str) -> bytes:
    """A chunk of text."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return event({"choices": [choice]})


def closing(devices: Sequence[str] = DEVICES, reason: str = "stop", tokens: int = 42) -> bytes:
    """The last chunks of an answer that ends by itself."""
    timings = {"queued": 0.0, "first_token": 0.21, "total": 1.9, "decode_tokens_per_second": 31.5}
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    usage = {"prompt_tokens": 21, "completion_tokens": tokens, "total_tokens": 21 + tokens}
    return (
        event({"choices": [choice], "fleet": {"devices": list(devices), "timings": timings}})
        + event({"choices": [], "usage": usage})
        + DONE
    )


def failing(error: FleetError) -> bytes:
    """An error after the answer has begun."""
    return event({"error": {"message": error.message, "code": error.code, "remedy": error.remedy}})


def saying(text: str, size: int = 4, pace: float = 0.0) -> Reply:
    """A reply that says ``text`` in pieces of so many characters, so many seconds apart."""

    def reply(_body: Any) -> Iterator[bytes]:
        yield opening()
        for start in range(0, len(text), size):
            if pace:
                time.sleep(pace)
            yield piece(text[start : start + size])
        yield closing()

    return reply


class FakeChatApi(FakeLocalApi):
    """Takes the next of ``replies`` for each question, or the last of them for ever."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, joined_status())
        self.replies: list[Reply] = [saying("Paris.")]
        self.models: list[dict[str, Any]] = [model("tiny"), model("large", ready=False)]
        self.gate = threading.Event()
        """For replies that wait; see ``gated``."""
        self.ended = 0
        """Streams whose last byte was written."""
        self.left = 0
        """Streams that the app closed early."""

    @property
    def questions(self) -> list[Any]:
        """Bodies of the requests so far."""
        return self.bodies("/v1/chat/completions")

    def gated(self, before: str, after: str) -> Reply:
        """Says ``before``, waits for ``gate`` (at most ten seconds), says ``after``."""

        def reply(_body: Any) -> Iterator[bytes]:
            yield opening()
            yield piece(before)
            until = time.monotonic() + 10
            while not self.gate.wait(0.02) and time.monotonic() < until:
                yield comment("keep-alive")
            yield piece(after)
            yield closing()

        return reply

    def answer(self, method: str, path: str, body: Any) -> object:
        if (method, path) == ("GET", "/v1/models"):
            return {"object": "list", "data": self.models}
        return super().answer(method, path, body)

    def stream(self, path: str, body: Any) -> Iterator[bytes] | None:
        if path != "/v1/chat/completions" or path in self.refusals:
            return None
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return self._counted(reply(body))

    def _counted(self, events: Iterator[bytes]) -> Iterator[bytes]:
        complete = False
        try:
            yield from events
            complete = True
        finally:
            if complete:
                self.ended += 1
            else:
                self.left += 1


def model(name: str, *, ready: bool = True) -> dict[str, Any]:
    """One of ``/v1/models``."""
    fleet = {"ready": ready, "context_length": 4096, "devices": list(DEVICES)}
    return {"id": name, "object": "model", "created": 0, "owned_by": "fleet", "fleet": fleet}
