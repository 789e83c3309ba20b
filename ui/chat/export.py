"""A conversation as a document for people (Markdown) or for programs (JSON).

Pure but for translation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import msgspec
from PySide6.QtCore import QCoreApplication

from ui.chat import words
from ui.chat.values import Conversation, Message

translate = QCoreApplication.translate

FORMAT = 1
"""Of the JSON; a reader may refuse what it does not know."""


def to_markdown(conversation: Conversation, messages: Sequence[Message]) -> str:
    """Questions and answers under headings; an answer's own Markdown stays as it is."""
    parts = [f"# {conversation.title}"]
    if conversation.options.system:
        system = translate("Chat", "System")
        parts.append(f"## {system}\n\n{conversation.options.system}")
    for message in messages:
        who = words.author(message)
        parts.append(f"## {who} · {_when(message.created)}\n\n{message.text}".rstrip())
        if message.failure is not None:
            parts.append(f"> {message.failure.message} {message.failure.remedy}".rstrip())
        if message.served.devices:
            served = translate("Chat", "Served by {pcs}").format(
                pcs=", ".join(message.served.devices)
            )
            parts.append(f"*{served}*")
    return "\n\n".join(parts) + "\n"


def to_json(conversation: Conversation, messages: Sequence[Message]) -> bytes:
    """Everything that is known, indented; times are UTC (ISO 8601)."""
    options = asdict(conversation.options)
    document = {
        "format": FORMAT,
        "title": conversation.title,
        "created": _iso(conversation.created),
        "updated": _iso(conversation.updated),
        "options": options,
        "messages": [_message(message) for message in messages],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def file_name(conversation: Conversation, ending: str) -> str:
    """A name that every file system takes, recognisable as the title."""
    safe = "".join(c if c.isalnum() or c in " -_" else " " for c in conversation.title)
    safe = unicodedata.normalize("NFC", re.sub(r"\s+", " ", safe)).strip()[:60].strip()
    return f"{safe or 'chat'}.{ending}"


def _message(message: Message) -> dict[str, object]:
    entry: dict[str, object] = {
        "role": message.role,
        "content": message.text,
        "created": _iso(message.created),
    }
    if message.role == "assistant":
        entry |= {"model": message.model, "status": message.status}
        served = {k: v for k, v in asdict(message.served).items() if v not in (None, ())}
        if served:
            entry["served"] = served
        if message.pauses:
            entry["pauses"] = [asdict(pause) for pause in message.pauses]
        if message.failure is not None:
            entry["failure"] = asdict(message.failure)
    return entry


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
