"""One answer, whatever order its events come in."""

from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import Malformed
from ui.chat import answer as answers
from ui.chat.answer import Answer
from ui.chat.values import Failure, Message, Pause


def begun(now: float = 10.0) -> Answer:
    return answers.begin(Message(2, 1, "assistant", "", 0.0, "writing", "tiny"), now)


def chunk(text: str | None = None, reason: str | None = None, **more: object) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return json.dumps({"id": "x", "choices": [choice], **more}).encode()


def opening(*devices: str) -> bytes:
    return chunk("", fleet={"devices": devices, "prompt_tokens": 7})


def closing(*devices: str, reason: str = "stop") -> bytes:
    timings = {"queued": 0.5, "first_token": 0.2, "total": 2.0, "decode_tokens_per_second": 30.0}
    return chunk(None, reason, fleet={"devices": devices, "timings": timings})


def fed(*events: tuple[float, bytes]) -> Answer:
    return reduce(lambda answer, e: answers.event(answer, e[1], e[0]), events, begun())


def test_the_whole_way() -> None:
    answer = begun()
    assert answer.phase == "sent"
    answer = answers.comment(answer, "queued 3")
    assert (answer.phase, answer.place) == ("queued", 3)
    answer = answers.comment(answer, "keep-alive")
    assert answer.place == 3
    answer = answers.comment(answer, "queued 1")
    assert answer.place == 1
    answer = answers.event(answer, opening("A", "B"), 11)
    assert (answer.phase, answer.place) == ("reading", None)
    answer = answers.event(answer, chunk("Pa"), 11.2)
    assert answer.message.served.first_token == pytest.approx(1.2)
    answer = answers.event(answer, chunk("ris"), 11.3)
    assert (answer.phase, answer.message.text) == ("answering", "Paris")
    answer = answers.event(answer, closing("A", "B"), 11.4)
    usage = json.dumps(
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    ).encode()
    answer = answers.event(answer, usage, 11.4)
    answer = answers.end(answers.event(answer, b"[DONE]", 11.4))
    assert answer.over
    message = answer.message
    assert (message.status, message.failure, message.pauses) == ("complete", None, ())
    served = message.served
    assert served.devices == ("A", "B")
    assert (served.first_token, served.tokens_per_second, served.total) == (0.2, 30.0, 2.0)
    assert (served.prompt_tokens, served.completion_tokens) == (7, 2)


def test_a_pause_is_noted_when_it_is_over_and_says_no_more_than_is_known() -> None:
    answer = fed((11, opening("A", "B")), (12, chunk("one")))
    assert answers.paused_for(answer, 13.4) == 0
    assert answers.paused_for(answer, 14.1) == pytest.approx(2.1)
    answer = answers.event(answer, chunk(" two"), 14.1)
    assert answer.message.pauses == (Pause(3, 2.1, replaced=False),)
    assert answers.paused_for(answer, 15) == 0
    same = answers.event(answer, closing("A", "B"), 15)
    assert not same.message.pauses[0].replaced
    other = answers.event(answer, closing("A", "C"), 15)
    assert other.message.pauses[0].replaced


def test_reading_a_long_prompt_is_no_pause() -> None:
    answer = fed((11, opening("A")))
    assert answers.paused_for(answer, 600) == 0
    assert answers.event(answer, chunk("x"), 600).message.pauses == ()


def test_an_error_in_the_stream_keeps_the_text() -> None:
    error = {"error": {"message": "DESK-3 left.", "code": "chain_broken", "remedy": "Try again."}}
    answer = fed((11, chunk("half")), (12, json.dumps(error).encode()))
    assert answer.over
    assert answer.message.text == "half"
    assert answer.message.failure == Failure("chain_broken", "DESK-3 left.", "Try again.")
    # what comes after the end changes nothing
    assert answers.event(answer, chunk("more"), 13) == answer
    assert answers.end(answer) == answers.stop(answer) == answer


@pytest.mark.parametrize("events", [[], [chunk("half")], [chunk("all"), closing("A")]])
def test_a_stream_that_breaks_off_is_a_failure(events: list[bytes]) -> None:
    answer = answers.end(fed(*((11, e) for e in events)))
    assert answer.message.status == "failed"
    assert answer.message.failure is not None


@pytest.mark.parametrize(("reason", "status"), [("stop", "complete"), ("length", "length")])
def test_why_it_ended(reason: str, status: str) -> None:
    answer = answers.end(fed((11, chunk("x")), (12, closing("A", reason=reason)), (12, b"[DONE]")))
    assert answer.message.status == status


def test_stopping_keeps_what_has_come() -> None:
    stopped = answers.stop(fed((11, chunk("half"))))
    assert (stopped.message.text, stopped.message.status) == ("half", "stopped")
    # one that had ended when the person pressed the key is complete
    ended = answers.stop(fed((11, chunk("all")), (12, closing("A"))))
    assert ended.message.status == "complete"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"choices": 3}', b'"x"', b"\xff\xfe"])
def test_nonsense_is_an_error(data: bytes) -> None:
    with pytest.raises(Malformed):
        answers.event(begun(), data, 11)


@pytest.mark.parametrize("text", ["", "queued", "queued x", "queued -1", "queued ²", "something"])
def test_comments_that_say_nothing_change_nothing(text: str) -> None:
    assert answers.comment(begun(), text) == begun()


@given(st.lists(st.tuples(st.sampled_from(["", "a", "é ", "日"]), st.floats(0.01, 5)), max_size=9))
def test_the_text_is_what_was_sent_and_every_pause_is_noted(
    pieces: list[tuple[str, float]],
) -> None:
    answer, now, long, heard = begun(), 10.0, 0, False
    for text, wait in pieces:
        silence = now + wait - (answer.heard or 0.0)
        now += wait
        long += bool(text) and heard and silence > answers.PAUSE
        heard = heard or bool(text)
        answer = answers.event(answer, chunk(text), now)
    assert answer.message.text == "".join(text for text, _ in pieces)
    assert len(answer.message.pauses) == long
