"""One request on its way: what it asked for, what has been said, when."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fleetapp.engine.detokenize import TextStream
from fleetapp.engine.logprobs import Reporter
from fleetapp.engine.pipe import Delta, Finished, Generate, TokenLogprob
from fleetapp.engine.scheduler import Chosen
from fleetapp.engine.steplog import Account
from fleetapp.engine.text import StopMatcher
from fleetapp.errors import BadRequest, ContextTooLong, FleetError
from fleetapp.types import FinishReason, SamplingParams, Timings, Usage

DEFAULT_MAX_TOKENS = 2048
MAX_HISTORY = 160_000
"""Tokens of prompt and answer that a frame's header has room for where sampling needs them."""
MAX_LOGPROBS = 20
"""As many alternatives as OpenAI reports at most."""


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
        (not 0 <= params.min_p <= 1, "min_p", "from 0 to 1"),
        (not 0 < params.repetition_penalty <= 10, "repetition_penalty", "above 0 and at most 10"),
        (not -2 <= params.presence_penalty <= 2, "presence_penalty", "from -2 to 2"),
        (not -2 <= params.frequency_penalty <= 2, "frequency_penalty", "from -2 to 2"),
        (not 0 <= (params.logprobs or 0) <= MAX_LOGPROBS, "logprobs", f"0 to {MAX_LOGPROBS}"),
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


def check_history(tokens: int) -> None:
    """Refuse a text that is too long to be sent along to the last stage.

    Args:
        tokens: of the prompt and the most the answer may have.

    Raises:
        ContextTooLong: it is.
    """
    if tokens > MAX_HISTORY:
        raise ContextTooLong(
            f"Prompt and answer may have {tokens} tokens; with penalties, a schema or an "
            f"expression {MAX_HISTORY} is the limit."
        )


@dataclass(slots=True)
class Answer:
    """Bookkeeping of one request. Times are of the head's monotonic clock, in seconds."""

    ticket: int
    request: Generate
    decoder: TextStream
    stops: StopMatcher
    arrived: float
    left: float
    """Seconds that it waits for a ring from now on before it is given up."""
    until: float | None = None
    """While there is no ring: when it is given up."""
    prompt_tokens: int = 0
    wanted: int = 0
    """Tokens that it was to have when it was first queued; before that as ``max_tokens``."""
    budget: int = 0
    """Tokens that it may have in this ring."""
    tokens: int = 0
    """Of the answer, those included that were ``recalled``."""
    recalled: int = 0
    """Said by another head."""
    started: bool = False
    admitted: float | None = None
    first: float | None = None
    last: float | None = None
    account: Account = field(default_factory=Account)
    cached_tokens: int = 0
    followed: bool = False
    """The drafters know of it."""
    drafted: int = 0
    accepted: int = 0
    seed: int = 0
    reporter: Reporter | None = None
    """If log probabilities were asked for."""
    unsaid: list[int] = field(default_factory=list)
    """Committed tokens whose text has not been looked at."""
    unsent: list[int] = field(default_factory=list)
    """Committed tokens that no Delta has named."""
    pieces: list[str] = field(default_factory=list)
    """What the first of them have made safe to show, token by token."""
    joint: int = 0
    """So many of ``pieces`` may be shown: their reports go with them."""

    @property
    def request_id(self) -> str:
        """As the agent calls it."""
        return self.request.request_id

    def commit(self, chosen: Chosen, now: float, *, silent: bool) -> None:
        """A token was chosen; ``silent`` ones (end of sequence) have no text."""
        token = chosen.token
        self.tokens += 1
        self.last = now
        if self.first is None:
            self.first = now
        self.unsent.append(token)
        if not silent:
            self.unsaid.append(token)
            if self.reporter is not None:
                self.reporter.take(token, chosen.logprob, chosen.top)

    def say(self) -> Delta | None:
        """The text that has become safe to show since the last call, if any."""
        self._look()
        count = self.joint
        text = "".join(self.pieces[:count])
        if not text:
            return None
        reports = self.reporter.release(count) if self.reporter is not None else ()
        ids = tuple(self.unsent[:count])
        del self.pieces[:count], self.unsent[:count]
        self.joint = 0
        return Delta(self.request_id, text, ids, reports)

    def last_words(self) -> Delta | None:
        """Everything still held back; the end of the answer."""
        self._look()
        rest = self.stops.push(self.decoder.flush()) + self.stops.flush()
        text = "".join(self.pieces) + rest
        ids = tuple(self.unsent)
        self.pieces.clear()
        self.unsent.clear()
        self.joint = 0
        reports: tuple[TokenLogprob, ...] = ()
        if self.reporter is not None:
            reports = self.reporter.finish(rest, cut=self.stops.stopped)
        return Delta(self.request_id, text, ids, reports) if text or ids or reports else None

    def recall(self, token: int, *, silent: bool) -> None:
        """A token that another head has chosen and said."""
        self.tokens += 1
        self.recalled += 1
        if not silent:
            piece = self.stops.push(self.decoder.push(token))
            if self.reporter is not None:
                self.reporter.recall(token, piece, whole=not self.stops.holds)

    def _look(self) -> None:
        """Turn tokens into text. What is shown so far is always that of all tokens named so far:
        each is pushed by itself, and named together with all that it made safe.
        """
        for token in self.unsaid:
            piece = self.stops.push(self.decoder.push(token))
            self.pieces.append(piece)
            if self.reporter is None or self.reporter.look(
                token, piece, whole=not self.stops.holds
            ):
                self.joint = len(self.pieces)
        self.unsaid.clear()

    def finished(
        self, reason: FinishReason, now: float, error: FleetError | None = None
    ) -> Finished:
        """The message that ends the request."""
        return Finished(
            request_id=self.request_id,
            reason=reason,
            usage=Usage(self.prompt_tokens, self.tokens, self.cached_tokens),
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
        own = self.tokens - self.recalled - 1
        spent = account.compute + account.wire + account.host
        return Timings(
            queued=self.admitted - self.arrived,
            first_token=self.first - self.arrived,
            total=now - self.arrived,
            decode_tokens_per_second=own / decode if decode > 0 else 0.0,
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
