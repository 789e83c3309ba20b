"""One request on its way: what it asked for, what has been said, when."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fleetapp.engine.pipe import Delta, Finished, Generate
from fleetapp.engine.steplog import Account
from fleetapp.engine.text import StopMatcher, StreamDecoder
from fleetapp.errors import BadRequest, ContextTooLong, FleetError
from fleetapp.types import FinishReason, SamplingParams, Timings, Usage

DEFAULT_MAX_TOKENS = 2048


def check_sampling(params: SamplingParams) -> None:
    """Refuse settings that no sampler could follow.

    Raises:
        BadRequest: names the field.
    """
    problems = (
        (
            not (math.isfinite(params.temperature) and params.temperature >= 0),
            "temperature",
            "a number from 0 on",
        ),
        (not 0 < params.top_p <= 1, "top_p", "above 0 and at most 1"),
        (params.top_k < 0, "top_k", "0 or more"),
        (params.max_tokens < 0, "max_tokens", "at least 1"),
    )
    for wrong, name, want in problems:
        if wrong:
            raise BadRequest(
                f"{name} is {getattr(params, name)}, it must be {want}.",
                remedy=f"Change or leave out {name}.",
                param=name,
            )


def answer_budget(prompt: int, max_tokens: int, context: int) -> int:
    """Tokens that the answer may have.

    Args:
        prompt: its length in tokens.
        max_tokens: as asked for; 0 means the default.
        context: positions that prompt and answer share.

    Raises:
        ContextTooLong: there is no room for even one.
    """
    room = context - prompt
    if room < 1:
        raise ContextTooLong(
            f"The prompt has {prompt} tokens; with at least one token of answer that is over the "
            f"limit of {context}."
        )
    return min(max_tokens or DEFAULT_MAX_TOKENS, room)


@dataclass(slots=True)
class Answer:
    """Bookkeeping of one request. Times are of the head's monotonic clock, in seconds."""

    ticket: int
    request: Generate
    decoder: StreamDecoder
    stops: StopMatcher
    arrived: float
    prompt_tokens: int = 0
    budget: int = 0
    tokens: int = 0
    admitted: float | None = None
    first: float | None = None
    last: float | None = None
    account: Account = field(default_factory=Account)
    cached_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    unsaid: list[int] = field(default_factory=list)
    """Committed tokens whose text has not been looked at."""
    unsent: list[int] = field(default_factory=list)
    """Committed tokens that no Delta has named."""

    @property
    def request_id(self) -> str:
        """As the agent calls it."""
        return self.request.request_id

    def commit(self, token: int, now: float, *, silent: bool) -> None:
        """A token was chosen; ``silent`` ones (end of sequence) have no text."""
        self.tokens += 1
        self.last = now
        if self.first is None:
            self.first = now
        self.unsent.append(token)
        if not silent:
            self.unsaid.append(token)

    def say(self) -> Delta | None:
        """The text that has become safe to show since the last call, if any."""
        text = "".join([self.stops.push(self.decoder.push(t)) for t in self.unsaid])
        self.unsaid.clear()
        return self._delta(text) if text else None

    def last_words(self) -> Delta | None:
        """Everything still held back; the end of the answer."""
        parts = [self.stops.push(self.decoder.push(t)) for t in self.unsaid]
        self.unsaid.clear()
        parts.append(self.stops.push(self.decoder.flush()))
        parts.append(self.stops.flush())
        text = "".join(parts)
        return self._delta(text) if text or self.unsent else None

    def _delta(self, text: str) -> Delta:
        ids, self.unsent = tuple(self.unsent), []
        return Delta(self.request_id, text, ids)

    def finished(
        self, reason: FinishReason, now: float, error: FleetError | None = None
    ) -> Finished:
        """The message that ends the request."""
        return Finished(
            request_id=self.request_id,
            reason=reason,
            usage=Usage(self.prompt_tokens, self.tokens),
            timings=self._timings(now),
            code=error.code if error else "",
            message=error.message if error else "",
            remedy=error.remedy if error else "",
        )

    def _timings(self, now: float) -> Timings | None:
        if self.first is None or self.last is None or self.admitted is None:
            return None
        decode, account = self.last - self.first, self.account
        prefill = self.first - self.admitted
        spent = account.compute + account.wire + account.host
        return Timings(
            queued=self.admitted - self.arrived,
            first_token=self.first - self.arrived,
            total=now - self.arrived,
            decode_tokens_per_second=(self.tokens - 1) / decode if decode > 0 else 0.0,
            prefill=prefill,
            decode=decode,
            compute=account.compute,
            wire=account.wire,
            wait=max(0.0, prefill + decode - spent),
            host=account.host,
            steps=account.steps,
            width=account.width / account.steps if account.steps else 0.0,
            cached_tokens=self.cached_tokens,
            drafted=self.drafted,
            accepted=self.accepted,
        )


def refusal(request_id: str, error: FleetError) -> Finished:
    """The end of a request that was never begun."""
    return Finished(
        request_id=request_id,
        reason="error",
        usage=Usage(0, 0),
        code=error.code,
        message=error.message,
        remedy=error.remedy,
    )
