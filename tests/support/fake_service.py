"""A CompletionService that streams deterministic text, and shows what happened to each request.

No model: tokens are words chosen by a hash of the prompt. Everything else is as in the real one:
one Started, Deltas, one Finished, stop strings, seeds, errors before and after the start, and a
request that is closed early is cancelled at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from fleetapp.engine.pipe import Alternative, Delta, Finished, Generate, Started, TokenLogprob
from fleetapp.errors import ContextTooLong, FleetError, NotFound
from fleetapp.hub.service import Event, Health, ServedModel
from fleetapp.types import FinishReason, Timings, Usage

WORDS = ("Paris", "river", "lamp", "seven", "blue", "quiet", "stone", "garden", "日本", "é")


def words_for(request: Generate, count: int) -> list[str]:
    """``count`` tokens that depend on the prompt and, when sampling, on the seed."""
    text = request.prompt if request.prompt is not None else repr(request.messages or "")
    if request.token_ids is not None:
        text = repr(request.token_ids)
    if request.sampling.temperature > 0:
        text += f"|{request.sampling.seed}"
    out = []
    for i in range(count):
        digest = hashlib.sha256(f"{text}|{i}".encode()).digest()
        out.append((" " if i else "") + WORDS[digest[0] % len(WORDS)])
    return out


@dataclass
class FakeService:
    """Serves ``models``; each attribute may be changed between requests."""

    models: tuple[ServedModel, ...] = (
        ServedModel("tiny", 1_700_000_000, 64, True, ("DESK-1", "José 測試", "DESK-3")),
    )
    state: Health = field(default_factory=lambda: Health(True, "Ready.", 3, 1))
    tokens: Callable[[Generate, int], Sequence[str]] = words_for
    default_max: int = 12
    refuse: FleetError | None = None
    """Raised before Started."""
    fail_after: tuple[int, FleetError] | None = None
    """Number of tokens after which the chain breaks, and with what."""
    crash_after: int | None = None
    """Number of tokens after which something unforeseen is raised."""
    start_gate: asyncio.Event | None = None
    """Waited for before Started: the queue."""
    token_gate: Callable[[Generate, int], asyncio.Event | None] = lambda _r, _i: None
    """An event to wait for before token ``i``, or None."""
    pace: float = 0.0
    """Seconds per token; 0 only yields to the loop."""
    seen: list[Generate] = field(default_factory=list)
    closed: bool = False

    def close(self) -> None:
        """The coordinator is about to stop."""
        self.closed = True

    finished: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    running: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def served(self) -> tuple[ServedModel, ...]:
        return self.models

    def health(self) -> Health:
        return self.state

    async def generate(self, model: str, request: Generate) -> AsyncIterator[Event]:
        """See CompletionService."""
        served = next((m for m in self.models if m.model_id == model), None)
        if served is None:
            raise NotFound(f"No model '{model[:40]}' is served.", remedy="Start it first.")
        if self.refuse is not None:
            raise self.refuse
        self.seen.append(request)
        self.running += 1
        ended = False
        try:
            async for event in self._answer(served, request):
                ended = isinstance(event, Finished)
                yield event
        finally:
            self.running -= 1
            (self.finished if ended else self.cancelled).append(request.request_id)
            await self._notify()

    async def wait_for(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        """Until ``condition`` holds, looked at whenever a request starts, ends or is cancelled."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def _answer(self, served: ServedModel, request: Generate) -> AsyncIterator[Event]:
        begin = time.monotonic()
        await self._notify()
        if self.start_gate is not None:
            await self.start_gate.wait()
        prompt_tokens = _prompt_tokens(request)
        if prompt_tokens >= served.context_length:
            raise ContextTooLong(
                f"The prompt has {prompt_tokens} tokens and the model takes "
                f"{served.context_length}."
            )
        queued = time.monotonic() - begin
        yield Started(request.request_id, prompt_tokens)
        room = served.context_length - prompt_tokens
        limit = min(request.sampling.max_tokens or self.default_max, room)
        text, shown, count, first = "", 0, 0, 0.0
        reason: FinishReason = "length"
        tokens = self.tokens(request, limit)
        for i, token in enumerate(tokens):
            gate = self.token_gate(request, i)
            if gate is not None:
                await gate.wait()
            await asyncio.sleep(self.pace)
            if self.fail_after is not None and i == self.fail_after[0]:
                error = self.fail_after[1]
                yield Finished(
                    request.request_id, "error", Usage(prompt_tokens, count), None,
                    error.code, error.message, error.remedy,
                )  # fmt: skip
                return
            if self.crash_after == i:
                raise ZeroDivisionError(repr(request))
            first = first or time.monotonic() - begin
            text += token
            count += 1
            cut, safe = _stop(text, request.sampling.stop)
            piece, shown = text[shown:safe], max(shown, safe)
            reports = ()
            if (wanted := request.sampling.logprobs) is not None:
                top = tuple(Alternative(j, -0.5 - j, f"t{j}".encode()) for j in range(wanted))
                reports = (TokenLogprob(1000 + i, -0.25, token.encode(), top),)
            yield Delta(request.request_id, piece, (1000 + i,), reports)
            if cut:
                reason = "stop"
                break
        else:
            if len(tokens) < limit:
                reason = "stop"
            if shown < len(text):
                yield Delta(request.request_id, text[shown:], ())
        total = time.monotonic() - begin
        speed = count / max(total - first, 1e-6)
        yield Finished(
            request.request_id, reason, Usage(prompt_tokens, count),
            Timings(queued, first, total, speed),
        )  # fmt: skip


def _prompt_tokens(request: Generate) -> int:
    if request.token_ids is not None:
        return len(request.token_ids)
    if request.prompt is not None:
        return len(request.prompt.split())
    return sum(len(m.content.split()) + 3 for m in request.messages or ())


def _stop(text: str, stops: tuple[str, ...]) -> tuple[bool, int]:
    """Whether a stop string is complete, and how much of the text may be shown."""
    found = [text.find(s) for s in stops if s in text]
    if found:
        return True, min(found)
    held = 0
    for s in stops:
        held = max(held, *(n for n in range(len(s)) if text.endswith(s[:n])))
    return False, len(text) - held
