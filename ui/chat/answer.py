"""One answer as it comes: a pure reducer over the events of its stream.

Nothing here knows windows, time or disk; the clock is given, so every order of events can be
tested. Of Qt only the translation is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import msgspec
from PySide6.QtCore import QCoreApplication

from fleetapp.errors import FleetError, Malformed
from ui import agent_words
from ui.chat.values import Failure, Message, Pause, Status

translate = QCoreApplication.translate

PAUSE = 1.5
"""Seconds without text after which a stream counts as paused; a slow PC is faster than that."""

Phase = Literal["sent", "queued", "reading", "answering", "done"]
"""Nothing heard; waiting for its turn; the prompt is being read; text comes; over."""


class _Timings(msgspec.Struct):
    queued: float | None = None
    first_token: float | None = None
    total: float | None = None
    decode_tokens_per_second: float | None = None


class _Fleet(msgspec.Struct):
    devices: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    timings: _Timings | None = None


class _DeltaText(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _DeltaText = msgspec.field(default_factory=_DeltaText)
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Error(msgspec.Struct):
    message: str
    code: str | None = None
    remedy: str | None = None


class _Chunk(msgspec.Struct):
    choices: tuple[_Choice, ...] = ()
    fleet: _Fleet | None = None
    usage: _Usage | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


@dataclass(frozen=True)
class Answer:
    """What is known of an answer at one moment."""

    message: Message
    phase: Phase = "sent"
    place: int | None = None
    """In the queue, from 1."""
    asked: float = 0.0
    heard: float | None = None
    """When the last text came; the clock of ``asked``."""
    begun_by: tuple[str, ...] = ()
    complete: bool = False
    """``[DONE]`` has come."""

    @property
    def over(self) -> bool:
        return self.phase == "done"


def begin(message: Message, now: float) -> Answer:
    """The question has just been sent."""
    return Answer(message, asked=now)


def comment(answer: Answer, text: str) -> Answer:
    """A comment line of the stream: ``queued 3`` or ``keep-alive``."""
    word, _, number = text.strip().partition(" ")
    if word == "queued" and number.isdecimal() and answer.phase in ("sent", "queued"):
        return replace(answer, phase="queued", place=max(1, int(number)))
    return answer


def event(answer: Answer, data: bytes, now: float) -> Answer:
    """The data of one event.

    Raises:
        Malformed: it is not a chunk of a chat completion.
    """
    if answer.over:
        return answer
    if data.strip() == b"[DONE]":
        return replace(answer, complete=True)
    try:
        chunk = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        odd = translate("Chat", "The fleet's answer makes no sense: {why}.")
        raise Malformed(odd.format(why=error)) from error
    if chunk.error is not None:
        failed = Failure(
            chunk.error.code or "internal",
            agent_words.said(chunk.error.message),
            agent_words.said(chunk.error.remedy or ""),
        )
        return fail(answer, failed)
    if chunk.fleet is not None:
        answer = _take_fleet(answer, chunk.fleet)
    if chunk.usage is not None:
        served = replace(
            answer.message.served,
            prompt_tokens=chunk.usage.prompt_tokens,
            completion_tokens=chunk.usage.completion_tokens,
        )
        answer = _with(answer, served=served)
    for choice in chunk.choices:
        answer = _take_text(answer, choice.delta.content or "", now)
        if choice.finish_reason is not None:
            status: Status = "length" if choice.finish_reason == "length" else "complete"
            answer = _with(answer, status=status)
    return answer


def end(answer: Answer) -> Answer:
    """The stream has ended by itself."""
    if answer.over:
        return answer
    if answer.message.status == "writing" or not answer.complete:
        broken = Failure(
            "peer_closed",
            translate("Chat", "The connection to the agent ended before the answer was complete."),
            translate("Chat", "Try again."),
        )
        return fail(answer, broken)
    return replace(answer, phase="done", place=None)


def fail(answer: Answer, failure: Failure) -> Answer:
    """It ends with an error; the text so far stays."""
    if answer.over:
        return answer
    answer = _with(answer, status="failed", failure=failure)
    return replace(answer, phase="done", place=None)


def stop(answer: Answer, status: Status = "stopped") -> Answer:
    """The person has stopped it, or the app ends."""
    if answer.over:
        return answer
    if answer.message.status == "writing":
        answer = _with(answer, status=status)
    return replace(answer, phase="done", place=None)


def paused_for(answer: Answer, now: float) -> float:
    """Seconds that an answer which had begun has stood still; 0 while it flows."""
    if answer.phase != "answering" or answer.heard is None or answer.message.status != "writing":
        return 0.0
    silent = now - answer.heard
    return silent if silent > PAUSE else 0.0


def failure_of(error: FleetError) -> Failure:
    """As it is kept with the message."""
    return Failure(error.code, error.message, error.remedy)


def _take_text(answer: Answer, text: str, now: float) -> Answer:
    if not text:
        return answer
    message = answer.message
    pauses = message.pauses
    if answer.heard is None:
        served = replace(message.served, first_token=now - answer.asked)
        message = replace(message, served=served)
    elif (silent := paused_for(answer, now)) > 0:
        pauses = (*pauses, Pause(len(message.text), round(silent, 1)))
    message = replace(message, text=message.text + text, pauses=pauses)
    return replace(answer, message=message, phase="answering", place=None, heard=now)


def _take_fleet(answer: Answer, fleet: _Fleet) -> Answer:
    served = answer.message.served
    pauses = answer.message.pauses
    if fleet.devices:
        if answer.begun_by and fleet.devices != answer.begun_by and pauses:
            # who else could have gone on? said of the last pause only, for that is all we know
            pauses = (*pauses[:-1], replace(pauses[-1], replaced=True))
        served = replace(served, devices=fleet.devices)
    if fleet.prompt_tokens is not None:
        served = replace(served, prompt_tokens=fleet.prompt_tokens)
    if (timings := fleet.timings) is not None:
        served = replace(
            served,
            queued=timings.queued,
            first_token=timings.first_token or served.first_token,
            total=timings.total,
            tokens_per_second=timings.decode_tokens_per_second or None,
        )
    answer = _with(answer, served=served, pauses=pauses)
    if answer.phase in ("sent", "queued"):
        answer = replace(answer, phase="reading", place=None)
    return replace(answer, begun_by=answer.begun_by or fleet.devices)


def _with(answer: Answer, **changes: object) -> Answer:
    return replace(answer, message=replace(answer.message, **changes))  # type: ignore[arg-type]
