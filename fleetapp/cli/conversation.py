"""A conversation as values: what was said, what is sent next, how it is saved."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetapp.cli.answers import Answer


@dataclass
class Turn:
    """One question with its answer."""

    question: str
    answer: Answer
    stopped: bool = False
    """The person ended the answer early."""


@dataclass
class Conversation:
    """The thread of a chat, and what the next request looks like.

    A question that failed is not part of the thread: the next request would then carry two user
    messages in a row, which strict chat templates refuse. It waits in ``failed`` for a retry.
    """

    model: str
    system: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    failed: str = ""

    def request(self, question: str) -> dict[str, Any]:
        """The body that asks ``question`` with everything before it."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        for turn in self.turns:
            messages.append({"role": "user", "content": turn.question})
            messages.append({"role": "assistant", "content": turn.answer.text})
        messages.append({"role": "user", "content": question})
        return {"model": self.model, "messages": messages, **self.options}

    def answered(self, question: str, answer: Answer, *, stopped: bool = False) -> None:
        """Keep a turn; one without any text is forgotten, for nothing was said."""
        self.failed = ""
        if answer.text.strip():
            self.turns.append(Turn(question, answer, stopped))

    def take_back(self) -> str:
        """The question to ask again: the failed one, else the last, whose answer is dropped.

        Returns the empty string if there is none.
        """
        if self.failed:
            question, self.failed = self.failed, ""
            return question
        return self.turns.pop().question if self.turns else ""

    def clear(self) -> None:
        """Begin anew with the same model, system prompt and options."""
        self.turns.clear()
        self.failed = ""

    def statistics(self) -> list[tuple[str, str]]:
        """Totals for ``/stats``."""
        answers = [t.answer for t in self.turns]
        sent, got = (sum(a.tokens[i] for a in answers) for i in (0, 1))
        about = "" if all(a.usage for a in answers) else "about "
        speeds = [s for a in answers if (s := a.tokens_per_second) is not None]
        firsts = [a.first_token for a in answers if a.first_token is not None]
        rows = [
            ("Model", self.model),
            ("Turns", str(len(answers))),
            ("Tokens", f"{sent} read, {about}{got} written"),
        ]
        if speeds:
            rows.append(("Speed", f"{sum(speeds) / len(speeds):.1f} tok/s on average"))
        if firsts:
            rows.append(("First token", f"after {sum(firsts) / len(firsts):.2f} s on average"))
        devices = list(dict.fromkeys(d for a in answers for d in a.devices))
        if devices:
            rows.append(("PCs", ", ".join(devices)))
        return rows

    def as_json(self) -> dict[str, Any]:
        """The whole thread."""
        return {
            "model": self.model,
            "system": self.system,
            "saved": int(time.time()),
            "turns": [
                {"question": t.question, "stopped": t.stopped, **t.answer.as_json()}
                for t in self.turns
            ],
        }

    def as_markdown(self) -> str:
        """The whole thread to read."""
        parts = [f"# Chat with {self.model}\n"]
        if self.system:
            parts.append(f"> {self.system}\n".replace("\n", "\n> ").removesuffix("> "))
        for turn in self.turns:
            parts += [
                f"## You\n\n{turn.question}\n",
                f"## {turn.answer.model}\n\n{turn.answer.text}\n",
            ]
            if summary := turn.answer.summary():
                parts.append(f"*{summary}*\n")
        return "\n".join(parts)

    def save(self, path: Path) -> None:
        """Write as JSON if the name ends so, else as Markdown; never over another file.

        Raises:
            OSError: it cannot be written, or exists already.
        """
        text = (
            json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"
            if path.suffix.lower() == ".json"
            else self.as_markdown()
        )
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


COMMANDS: Sequence[tuple[str, str]] = (
    ("/help", "this list"),
    ("/new", "begin a new conversation"),
    ("/system TEXT", "what the model is told first; without TEXT, nothing any more"),
    ("/model [NAME]", "show the models, or go on with another one"),
    ("/temp [NUMBER]", "show or set the temperature; 0 always takes the likeliest token"),
    ("/retry", "ask the last question again"),
    ("/save FILE", "write the conversation to FILE (.md or .json)"),
    ("/stats", "tokens, speed and the PCs that served"),
    ("/exit", "leave (also Ctrl+D)"),
)
