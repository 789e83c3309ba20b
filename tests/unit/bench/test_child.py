import time

import msgspec
import pytest

from fleetapp.bench import child
from fleetapp.errors import RunnerFailed


class Job(msgspec.Struct):
    do: str


class Said(msgspec.Struct):
    word: str


MODULE = "tests.support.bench_child"


def said(do: str, deadline: float = 30) -> list[str]:
    return [line.word for line in child.lines(MODULE, Job(do), Said, deadline=deadline)]


def test_lines_come_as_they_are_said() -> None:
    assert said("talk") == ["one", "two"]


def test_a_crash_is_an_error_with_its_last_words() -> None:
    with pytest.raises(RunnerFailed, match="no luck today"):
        said("crash")


def test_something_else_than_lines_is_an_error() -> None:
    with pytest.raises(RunnerFailed):
        said("babble")


def test_a_process_that_hangs_is_killed_at_the_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(RunnerFailed, match=r"within 1 s"):
        said("hang", deadline=1)
    assert time.monotonic() - began < 10


def test_a_process_that_floods_its_error_output_does_not_block() -> None:
    assert said("flood") == ["done"]


def test_stopping_to_listen_ends_the_process() -> None:
    speaker = child.lines(MODULE, Job("hang after one"), Said, deadline=60)
    assert next(speaker).word == "one"
    began = time.monotonic()
    speaker.close()
    assert time.monotonic() - began < 10


def test_a_conversation_takes_turns_until_it_is_closed() -> None:
    with child.Conversation(MODULE, Job("echo"), Said, deadline=30) as talk:
        assert talk.first.word == "ready"
        assert [talk.ask(Job(word)).word for word in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(("do", "deadline"), [("crash", 30.0), ("hang", 1.0), ("babble", 30.0)])
def test_a_conversation_that_goes_wrong_is_an_error(do: str, deadline: float) -> None:
    with (
        pytest.raises(RunnerFailed),
        child.Conversation(MODULE, Job(do), Said, deadline=deadline) as talk,
    ):
        talk.ask(Job("more"))
