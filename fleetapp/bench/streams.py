"""Answers read from a fleet's API as a client reads them: which tokens came, and when."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from fleetapp.api.sse import EventParser

ANSWER_SECONDS = 150.0
"""After so long an answer hangs."""


@dataclass
class Read:
    """One answer. ``times`` are ``time.monotonic()`` of each event that brought tokens."""

    began: float
    ids: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    text: str = ""
    finish: str = ""
    error: str = ""
    """Code of a typed error."""
    message: str = ""
    hung: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with the first token."""

    @property
    def complete(self) -> bool:
        """It ended as answers end."""
        return bool(self.finish) and not self.error

    def pause_after(self, moment: float) -> float:
        """Seconds between the last token before ``moment`` and the next; 0 if it had ended."""
        before = [t for t in self.times if t <= moment]
        after = [t for t in self.times if t > moment]
        if not after:
            return 0.0
        return after[0] - (before[-1] if before else moment)


async def read(
    session: aiohttp.ClientSession, url: str, key: str, body: dict[str, Any], answer: Read
) -> None:
    """Ask, and fill ``answer``; never raises, a broken connection is an error of the answer."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await _read(session, url, key, body, answer)
    except TimeoutError:
        answer.hung = True
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        answer.error, answer.message = "connection", str(exc)
    finally:
        answer.begun.set()


async def _read(
    session: aiohttp.ClientSession, url: str, key: str, body: dict[str, Any], answer: Read
) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    body = {**body, "stream": True, "return_token_ids": True}
    async with session.post(f"{url}/chat/completions", json=body, headers=headers) as response:
        if response.status >= 400:
            _note_error(answer, msgspec.json.decode(await response.read()))
            return
        parser = EventParser()
        async for data in response.content.iter_any():
            for event in parser.feed(data):
                if event != "[DONE]":
                    _note(answer, msgspec.json.decode(event))


def _note(answer: Read, event: dict[str, Any]) -> None:
    if "error" in event:
        _note_error(answer, event)
        return
    for choice in event.get("choices", ()):
        ids = choice.get("token_ids") or []
        if ids:
            answer.ids += ids
            answer.times.append(time.monotonic())
            answer.begun.set()
        answer.text += choice.get("delta", {}).get("content") or ""
        answer.finish = choice.get("finish_reason") or answer.finish


def _note_error(answer: Read, event: dict[str, Any]) -> None:
    error = event.get("error", {})
    answer.error = str(error.get("code") or "error")
    answer.message = str(error.get("message", ""))
