"""What leaves this PC: the request to the fleet, and files the person asks for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ui.chat.export import file_name, to_json, to_markdown
from ui.chat.request import chat_request
from ui.chat.values import Conversation, Failure, Message, Options, Role, Served


def message(role: Role, text: str, **more: object) -> Message:
    return replace(Message(1, 1, role, text, 1_700_000_000.0), **more)  # type: ignore[arg-type]


def test_a_request_has_the_history_and_only_the_options_that_were_chosen() -> None:
    history = [message("user", "a"), message("assistant", "b"), message("user", "c")]
    body = chat_request("tiny", Options(), history)
    assert body["messages"] == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert body["model"] == "tiny"
    assert body["stream"] is True
    assert "max_tokens" not in body
    chosen = chat_request("tiny", Options("", "Be brief.", 0.7, 100), history)
    assert chosen["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (chosen["temperature"], chosen["max_tokens"]) == (0.7, 100)


def test_an_answer_of_which_nothing_came_leaves_no_two_questions_in_a_row() -> None:
    history = [
        message("user", "a"),
        message("assistant", "", status="failed"),
        message("user", "b"),
    ]
    assert chat_request("tiny", Options(), history)["messages"] == [
        {"role": "user", "content": "a\n\nb"}
    ]


CONVERSATION = Conversation(
    1, "Capitals", 1_700_000_000.0, 1_700_000_100.0, Options("tiny", "Brief.")
)
MESSAGES = [
    message("user", "France?"),
    message("assistant", "**Paris**", model="tiny", served=Served(("A", "日本"), 5, 2)),
    message("assistant", "", status="failed", failure=Failure("no_hub", "No hub.", "Wait.")),
]


def test_markdown_for_people() -> None:
    text = to_markdown(CONVERSATION, MESSAGES)
    assert text.startswith("# Capitals\n\n## System\n\nBrief.\n\n## You · ")
    assert "\n\n**Paris**\n\n*Served by A, 日本*\n\n" in text
    assert "> No hub. Wait.\n" in text


def test_json_for_programs() -> None:
    document = json.loads(to_json(CONVERSATION, MESSAGES))
    assert (document["format"], document["title"]) == (1, "Capitals")
    assert document["created"] == "2023-11-14T22:13:20+00:00"
    assert document["options"]["system"] == "Brief."
    question, answer, failed = document["messages"]
    assert (question["role"], question["content"]) == ("user", "France?")
    assert answer["served"] == {
        "devices": ["A", "日本"],
        "prompt_tokens": 5,
        "completion_tokens": 2,
    }
    assert failed["failure"]["code"] == "no_hub"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("What is 1/2?", "What is 1 2.md"),
        ("../../etc/passwd", "etc passwd.md"),
        ("日本 é", "日本 é.md"),
        ('a\\b:c*d?"<>|', "a b c d.md"),
        ("…", "chat.md"),
    ],
)
def test_a_file_name_that_every_system_takes(title: str, name: str) -> None:
    assert file_name(replace(CONVERSATION, title=title), "md") == name
