"""One answer as the terminal sees it: pieces of text, then who served it and how fast."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fleetapp.cli.client import Client, told_error
from fleetapp.errors import FleetUnavailable, Malformed, NotFound
from fleetapp.platform.units import counted


@dataclass
class Answer:
    """Fills while ``read_answer`` runs. Seconds."""

    model: str
    text: str = ""
    finish_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    """As the server counted; empty for an answer that was stopped."""
    prompt_tokens: int = 0
    """As told when the answer began; 0 if it was not."""
    pieces: int = 0
    """Pieces of text that came. Mostly one per token."""
    devices: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    first_token: float | None = None
    total: float = 0.0
    began: bool = False
    """Something came, so nothing is waited for any more."""
    place: int = 0
    """In the queue of those who wait for their turn, as last told; 0 if there is no queue."""

    def hear(self, comment: str) -> None:
        """What the server says between the events: a place in the queue, or that it is there."""
        word, _, place = comment.partition(" ")
        if word == "queued" and place.isascii() and place.isdecimal():
            self.place = int(place[:9])

    @property
    def tokens(self) -> tuple[int, int]:
        """(read, written); of a stopped answer what is known, for the server's count is missing."""
        return (
            self.usage.get("prompt_tokens", self.prompt_tokens),
            self.usage.get("completion_tokens", self.pieces),
        )

    @property
    def tokens_per_second(self) -> float | None:
        """The server's own figure, else tokens over the time since the first of them."""
        if told := self.timings.get("decode_tokens_per_second"):
            return told
        tokens = self.usage.get("completion_tokens", 0)
        if self.first_token is None or tokens < 2 or self.total <= self.first_token:
            return None
        return (tokens - 1) / (self.total - self.first_token)

    def summary(self) -> str:
        """The line under an answer: which PCs, how fast, how long until the first token."""
        parts = [" → ".join(self.devices)] if self.devices else []
        if tokens := self.usage.get("completion_tokens"):
            parts.append(counted(tokens, "token"))
        if (speed := self.tokens_per_second) is not None:
            parts.append(f"{speed:.1f} tok/s")
        if self.first_token is not None:
            parts.append(f"first token after {self.first_token:.2f} s")
        if self.finish_reason == "length":
            parts.append("cut at its length limit")
        return " · ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "answer": self.text,
            "model": self.model,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "devices": self.devices,
            "ttft_ms": None if self.first_token is None else round(self.first_token * 1000, 1),
            "tokens_per_second": self.tokens_per_second,
            "timings": self.timings,
        }


def choose_model(client: Client, wanted: str | None) -> str:
    """``wanted``, or the first model that is ready.

    Raises:
        NotFound: the fleet serves nothing at all.
        FleetUnavailable: what it serves is not ready yet.
    """
    if wanted:
        return wanted
    listed = client.request("GET", "/models")
    try:
        models = [(str(m["id"]), *_ready(m)) for m in listed["data"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise Malformed("The server's list of models makes no sense.") from error
    for model, ready, _ in models:
        if ready:
            return model
    if models:
        model, _, why = models[0]
        raise FleetUnavailable(
            f"The model {model} cannot answer yet. {why}".rstrip(),
            remedy="'fleetapp fleet status' shows how far it is; try again then.",
        )
    raise NotFound(
        "The fleet serves no model yet.", remedy="Start one with 'fleetapp serve MODEL'."
    )


def _ready(model: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether it answers now, and why not."""
    fleet = model.get("fleet")
    if not isinstance(fleet, dict):
        return True, ""
    return bool(fleet.get("ready", True)), str(fleet.get("reason", ""))


def why_it_waits(client: Client, answer: Answer) -> str:
    """What an answer that has not begun waits for; empty if it has, or is being computed.

    Args:
        client: another one than that which waits for the answer.
        answer: the one that is waited for.
    """
    if answer.began:
        return ""
    if answer.place:
        return (
            f"Waiting: the PCs that serve {answer.model} are busy; "
            f"this question is number {answer.place} in the queue."
        )
    data = client.request("GET", "/models").get("data") or []
    found = next((m for m in data if isinstance(m, dict) and m.get("id") == answer.model), None)
    ready, why = _ready(found) if found is not None else (True, "")
    return (
        "" if ready or answer.began else f"Waiting for PCs to serve {answer.model}. {why}".strip()
    )


def read_answer(
    client: Client, body: Mapping[str, Any], answer: Answer
) -> Generator[str, None, None]:
    """Ask, fill ``answer`` and yield its text piece by piece, exactly as it was sent.

    Raises:
        FleetError: what the server says, before or within the stream.
        NoHub, AgentNotRunning: the stream ended without being complete.
    """
    begin = time.monotonic()
    request = {**body, "stream": True, "stream_options": {"include_usage": True}}
    complete = False
    with closing(client.events("POST", "/chat/completions", request, answer.hear)) as events:
        for data in events:
            answer.began = True
            if data.strip() == "[DONE]":
                complete = True
                break
            piece = _take(data, answer)
            if piece:
                if answer.first_token is None:
                    answer.first_token = time.monotonic() - begin
                answer.text += piece
                answer.pieces += 1
                yield piece
            answer.total = time.monotonic() - begin
    if not complete and not answer.finish_reason:
        raise client.gone()


def _take(data: str, answer: Answer) -> str:
    try:
        chunk = msgspec.json.decode(data)
        if chunk.get("error"):
            raise told_error(chunk["error"])
        answer.model = str(chunk.get("model") or answer.model)
        answer.usage = {
            k: v for k, v in (chunk.get("usage") or answer.usage).items() if type(v) is int
        }
        fleet = chunk.get("fleet") or {}
        answer.devices = [str(d) for d in fleet.get("devices") or answer.devices]
        if type(read := fleet.get("prompt_tokens")) is int:
            answer.prompt_tokens = read
        answer.timings = {
            str(k): float(v) for k, v in (fleet.get("timings") or answer.timings).items()
        }
        choice = (chunk.get("choices") or [{}])[0]
        answer.finish_reason = str(choice.get("finish_reason") or answer.finish_reason)
        return str((choice.get("delta") or {}).get("content") or "")
    except (
        msgspec.MsgspecError,
        RecursionError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise Malformed("The server sent an event that makes no sense.") from error
