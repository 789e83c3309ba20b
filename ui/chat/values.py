"""What a conversation is, as frozen values; shared by store, model and windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "assistant"]

Status = Literal["writing", "complete", "length", "stopped", "failed", "interrupted"]
"""Of an answer: under way; ended by itself; cut at the length asked for; stopped by the person;
ended by an error; cut off because the desktop app ended. A question is always complete."""

NEW = 0
"""Id of the conversation that the next question begins; only its draft is stored."""


@dataclass(frozen=True)
class Options:
    """What a person can choose for a conversation."""

    model: str = ""
    """Empty: the first model that is ready."""
    system: str = ""
    temperature: float = 0.0
    """0 to 2."""
    max_tokens: int = 0
    """0: as long as fits."""


@dataclass(frozen=True)
class Conversation:
    """One line of the list."""

    id: int
    title: str
    created: float
    updated: float
    """Seconds since 1970."""
    options: Options = Options()
    excerpt: str = ""
    """Where a search found its words; empty outside a search."""


@dataclass(frozen=True)
class Failure:
    """Why an answer failed, in the words of whoever said so."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class Pause:
    """A stream stood still and went on."""

    at: int
    """Characters of the answer that had come before."""
    seconds: float
    replaced: bool = False
    """Other PCs ended the answer than had begun it."""


@dataclass(frozen=True)
class Served:
    """Who answered and how fast; only what the fleet said or what was measured here."""

    devices: tuple[str, ...] = ()
    """In stage order."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    queued: float | None = None
    """Seconds."""
    first_token: float | None = None
    """Seconds from the request to the first piece of text."""
    total: float | None = None
    """Seconds."""
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class Message:
    """A question or an answer."""

    id: int
    conversation: int
    role: Role
    text: str
    created: float
    status: Status = "complete"
    model: str = ""
    """Which model answered."""
    failure: Failure | None = None
    served: Served = Served()
    pauses: tuple[Pause, ...] = ()
