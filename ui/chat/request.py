"""What is sent to the fleet for one answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ui.chat.values import Message, Options


def chat_request(model: str, options: Options, messages: Sequence[Message]) -> dict[str, Any]:
    """The body of ``POST /v1/chat/completions`` that continues ``messages``.

    An answer of which nothing came is left out. Where that makes two questions neighbours they
    become one, because many chat templates refuse two turns of one side in a row.
    """
    turns: list[dict[str, str]] = []
    for message in messages:
        if not message.text.strip():
            continue
        if turns and turns[-1]["role"] == message.role:
            turns[-1]["content"] += "\n\n" + message.text
        else:
            turns.append({"role": message.role, "content": message.text})
    if options.system.strip():
        turns.insert(0, {"role": "system", "content": options.system})
    body: dict[str, Any] = {
        "model": model,
        "messages": turns,
        "temperature": options.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if options.max_tokens > 0:
        body["max_tokens"] = options.max_tokens
    return body
