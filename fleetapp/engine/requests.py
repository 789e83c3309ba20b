"""The requests of a head: taken in, queued, said token by token, ended exactly once.

They outlive a ring. While there is none they are held, each until a deadline of its own, and then
go on where they were: what they have is computed again and nothing is said twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from fleetapp.engine import pipe
from fleetapp.engine.answer import (
    DEFAULT_MAX_TOKENS,
    Answer,
    answer_budget,
    check_history,
    check_sampling,
    refusal,
)
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.logprobs import Reporter
from fleetapp.engine.pipe_io import Outlet
from fleetapp.engine.prompts import Prepared, TextHost
from fleetapp.engine.scheduler import Completion, Opened, Scheduler
from fleetapp.engine.sequences import Sequence
from fleetapp.engine.steplog import Ended, StepSums
from fleetapp.engine.text import StopMatcher
from fleetapp.errors import (
    ChainBroken,
    ContextTooLong,
    FleetError,
    FleetUnavailable,
    NoCapacity,
    StaleFrame,
)
from fleetapp.types import FinishReason, SamplingParams

log = logging.getLogger("fleetapp.engine.head")

MAX_REQUESTS: Final = 512


class Admitted(NamedTuple):
    """What ``Open`` tells of a request besides its slot."""

    sampling: SamplingParams
    """With a seed, which stays the same when a request is admitted again."""
    history: tuple[int, ...]
    answered: int


class Requests:
    """All requests that have not ended.

    Args:
        text: makes stream decoders.
        submit: hands a request to the tokenizer's thread under a ticket.
        out: writes to the agent.
        eos: every id that ends an answer.
        context: positions that the model can have at most, whatever the ring.
        hold_seconds: how long a request is without a ring before it is given up. Only a token of
            its answer makes that time begin anew, so that one which breaks every ring ends, too.
        speculator: hears of every request that is going to run, and of its end.
        clock: monotonic seconds.
        entropy: draws a seed for requests that bring none.
    """

    def __init__(
        self,
        text: TextHost,
        submit: Callable[[int, pipe.Generate], None],
        out: Outlet,
        *,
        eos: frozenset[int],
        context: int,
        hold_seconds: float,
        speculator: Speculator,
        clock: Callable[[], float],
        entropy: Callable[[], int],
    ) -> None:
        self._text = text
        self._submit = submit
        self._out = out
        self._eos = eos
        self._most = self._context = context
        self._hold_seconds = hold_seconds
        self._speculator = speculator
        self._clock = clock
        self._entropy = entropy
        self._tickets = 0
        self.ended = Ended()
        self._answers: dict[str, Answer] = {}
        self._talkative: dict[str, Answer] = {}
        self._scheduler: Scheduler | None = None
        self._held: dict[str, Sequence] = {}
        """Of requests that wait for a ring, as soon as their prompts are tokenised."""
        self._shut: FleetError | None = None
        """Why new requests are refused."""
        self._lost: FleetError | None = None
        """Why there is no ring, as far as it is known."""

    def __len__(self) -> int:
        return len(self._answers)

    def serve(self, scheduler: Scheduler, context: int) -> None:
        """The chain is live: requests that were held go on, in their old order.

        Args:
            scheduler: of the new ring.
            context: positions that each may have. One that has more already ends.
        """
        self._scheduler, self._context = scheduler, context
        self._shut = self._lost = None
        now = self._clock()
        held, self._held = self._held, {}
        for answer in list(self._answers.values()):
            if answer.until is not None:
                answer.left, answer.until = max(0.0, answer.until - now), None
            if (seq := held.get(answer.request_id)) is not None:
                self._queue(answer, seq)

    def hold(self, error: FleetError | None = None) -> None:
        """There is no ring now; requests wait for the next ``serve``, those to come as well.

        Args:
            error: why, if something went wrong; the first such error since there was a ring is
                what requests hear that wait in vain.
        """
        self._shut = None
        self._lost = self._lost or error
        if self._scheduler is not None:
            self._held = {seq.request_id: seq for seq in self._scheduler.leave()}
            self._scheduler = None
        now = self._clock()
        for answer in self._answers.values():
            answer.followed = False
            if answer.until is None:
                answer.until = now + answer.left

    def shut(self, error: FleetError) -> None:
        """End everything with this error and refuse what comes until ``hold`` or ``serve``."""
        self._shut = error
        for answer in list(self._answers.values()):
            self._end(answer, "error", error)
        self._scheduler = None

    def due(self) -> float | None:
        """When ``expire`` has something to do, by the clock; None while nobody is held."""
        return min((a.until for a in self._answers.values() if a.until is not None), default=None)

    def expire(self) -> None:
        """Give up those that have waited for a ring long enough."""
        now = self._clock()
        for answer in list(self._answers.values()):
            if answer.until is not None and answer.until <= now:
                self._end(answer, "error", self._in_vain())

    def _in_vain(self) -> FleetError:
        waited = f"within {self._hold_seconds:g} s"
        if self._lost is None:
            return FleetUnavailable(
                f"No chain for this model stood {waited}.", remedy="Try again in a minute."
            )
        return ChainBroken(
            f"{self._lost.message} The chain was not whole again {waited}.",
            remedy="See with 'fleetapp fleet' which PCs are there, and ask again.",
        )

    def generate(self, request: pipe.Generate) -> None:
        """Take a request in, or refuse it at once."""
        if request.request_id in self._answers:
            log.error("a second request %s was ignored", request.request_id)
            return
        try:
            if self._shut is not None:
                raise self._shut
            if len(self._answers) >= MAX_REQUESTS:
                raise NoCapacity(
                    f"{len(self._answers)} requests are running or waiting already.",
                    remedy="Try again later.",
                )
            check_sampling(request.sampling)
            stops = StopMatcher(request.sampling.stop)
        except FleetError as exc:
            self._out(refusal(request.request_id, exc))
            return
        self._tickets += 1
        now = self._clock()
        answer = Answer(self._tickets, request, self._text.stream(), stops, now, self._hold_seconds)
        if self._scheduler is None:
            answer.until = now + answer.left
        self._answers[request.request_id] = answer
        self._submit(answer.ticket, request)

    def prepared(self, event: Prepared) -> None:
        """A prompt was tokenised: check that it fits, before any computing, and queue it."""
        request_id = event.request_id
        answer = self._answers.get(request_id)
        if answer is None or answer.ticket != event.ticket:
            return  # ended meanwhile
        sampling, said = answer.request.sampling, answer.request.said
        prompt = answer.prompt_tokens = len(event.ids)
        try:
            if event.error is not None:
                raise event.error
            if sampling.logprobs is not None:
                answer.reporter = Reporter(self._text.vocabulary())
            answer.wanted = sampling.max_tokens
            answer_budget(prompt, answer.wanted, self._most)
        except FleetError as exc:
            self._end(answer, "error", exc)
            return
        if (reason := self._recall(answer)) is not None:
            self._said_all(answer, reason)
            return
        ids = [*event.ids, *said]
        seq = Sequence(request_id, ids, prompt, 0, batch=sampling.priority == "batch")
        self._queue(answer, seq)

    def _recall(self, answer: Answer) -> FinishReason | None:
        """Take in what another head has said of an answer; why it ends there, if it does."""
        most = answer.wanted or DEFAULT_MAX_TOKENS
        for token in answer.request.said:
            ends = self._ends(answer, token)
            answer.recall(token, silent=ends)
            if ends or answer.stops.stopped:
                return "stop"
            if answer.tokens >= most:
                return "length"
        return None

    def _said_all(self, answer: Answer, reason: FinishReason) -> None:
        """The other head came to the end and could only not say so any more."""
        self._start(answer)
        answer.last_words()  # that head has sent them together with the last token
        self._end(answer, reason)

    def _queue(self, answer: Answer, seq: Sequence) -> None:
        """Have it computed by the present ring, or hold it until there is one."""
        if self._scheduler is None:
            self._held[seq.request_id] = seq
            return
        try:
            answer.budget = answer_budget(seq.prompt, answer.wanted, self._context)
            if answer.tokens >= answer.budget:
                if answer.recalled == answer.budget:
                    self._said_all(answer, "length")
                    return
                raise ContextTooLong(
                    f"Prompt and answer have {len(seq.ids)} tokens so far; the chain as it is now "
                    f"can carry {self._context}."
                )
            if answer.request.sampling.needs_history:
                check_history(seq.prompt + answer.budget)
            seq.max_tokens = answer.budget
            self._scheduler.take(seq)
        except FleetError as exc:
            self._end(answer, "error", exc)
            return
        # A later ring may carry less, and one after it more again: this is what it is to have.
        answer.wanted = answer.wanted or answer.budget
        self._start(answer)

    def _start(self, answer: Answer) -> None:
        if not answer.started:
            answer.started = True
            self._out(pipe.Started(answer.request_id, answer.prompt_tokens))

    def cancel(self, request_id: str) -> None:
        """End a request wherever it is; one that has ended is not an error."""
        answer = self._answers.get(request_id)
        if answer is not None:
            self._end(answer, "cancelled")

    def fail(self, request_id: str, error: FleetError) -> None:
        """End one request with an error; the others go on."""
        answer = self._answers.get(request_id)
        if answer is not None:
            self._end(answer, "error", error)

    def admitted(self, opened: Opened) -> Admitted:
        """A request got its slot, for the first time or again; what the last stage must know."""
        answer = self._answers[opened.request_id]
        sampling = answer.request.sampling
        tokens = self._scheduler.tokens(opened.request_id) if self._scheduler is not None else None
        if answer.admitted is None:
            answer.admitted = self._clock()
            answer.cached_tokens = opened.prefix.length if opened.prefix else 0
            answer.seed = self._entropy() if sampling.seed is None else sampling.seed
        if not answer.followed and tokens is not None:
            answer.followed = True
            self._speculator.opened(opened.request_id, tokens)
        # The last stage needs nothing of how an answer ends.
        sampling = msgspec.structs.replace(
            sampling, seed=answer.seed, stop=(), stop_ids=(), max_tokens=answer.budget
        )
        if tokens is None or not sampling.needs_history:
            return Admitted(sampling, (), 0)
        return Admitted(sampling, tuple(tokens), len(tokens) - answer.prompt_tokens)

    def spent(self, record: pipe.StepRecord) -> None:
        """A step took its time; call it before ``completed``."""
        cost = StepSums.of(record)
        for request_id in record.requests:
            answer = self._answers.get(request_id)
            if answer is not None:
                answer.account.add(record, cost)

    def completed(self, completion: Completion) -> None:
        """Take the tokens of one frame; requests that reached their end do so now."""
        now = self._clock()
        for verified in completion.verified:
            if (answer := self._answers.get(verified.request_id)) is not None:
                answer.drafted += verified.drafted
                answer.accepted += verified.accepted
        for chosen in completion.chosen:
            answer = self._answers.get(chosen.request_id)
            if answer is None:
                continue  # giving back another's slot found the chain broken
            ends = self._ends(answer, chosen.token)
            answer.commit(chosen, now, silent=ends)
            answer.left = self._hold_seconds
            if ends:
                self._end(answer, "stop")
            elif answer.tokens >= answer.budget:
                self._end(answer, "length")
            elif answer.request.sampling.stop:
                self._say_or_stop(answer)
            else:
                self._talkative[chosen.request_id] = answer
        for request_id in completion.lost:
            self.fail(request_id, StaleFrame("The last stage sent no token for this request."))

    def say(self) -> None:
        """Send the text of tokens taken since the last call."""
        talkative, self._talkative = self._talkative, {}
        deltas = [
            delta
            for request_id, answer in talkative.items()
            if self._answers.get(request_id) is answer and (delta := answer.say()) is not None
        ]
        if deltas:
            self._out(*deltas)

    def _ends(self, answer: Answer, token: int) -> bool:
        sampling = answer.request.sampling
        return token in sampling.stop_ids or (token in self._eos and not sampling.ignore_eos)

    def _say_or_stop(self, answer: Answer) -> None:
        """For answers that a stop string may end: it is looked for at every token."""
        if (delta := answer.say()) is not None:
            self._out(delta)
        if answer.stops.stopped:
            self._end(answer, "stop")

    def _end(self, answer: Answer, reason: FinishReason, error: FleetError | None = None) -> None:
        """Exactly once per request: forget it, give its slot back, say the rest and Finished."""
        del self._answers[answer.request_id]
        self._held.pop(answer.request_id, None)
        self._talkative.pop(answer.request_id, None)
        self._speculator.closed(answer.request_id)
        if self._scheduler is not None:
            self._scheduler.finish(answer.request_id, keep=reason != "error")
        if (delta := answer.last_words()) is not None:
            self._out(delta)
        if answer.stops.stopped and reason == "length":
            reason = "stop"
        self._count(answer, reason)
        self._out(answer.finished(reason, self._clock(), error))

    def _count(self, answer: Answer, reason: FinishReason) -> None:
        ended = self.ended
        ended.requests += 1
        ended.failed += reason == "error"
        ended.cancelled += reason == "cancelled"
        ended.prompt_tokens += answer.prompt_tokens
        ended.answer_tokens += answer.tokens - answer.recalled
        ended.cached_tokens += answer.cached_tokens
