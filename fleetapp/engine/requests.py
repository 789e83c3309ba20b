"""The requests of a head: taken in, queued, said token by token, ended exactly once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from fleetapp.engine import pipe
from fleetapp.engine.answer import Answer, answer_budget, check_history, check_sampling, refusal
from fleetapp.engine.drafting.speculator import Speculator
from fleetapp.engine.logprobs import Reporter
from fleetapp.engine.pipe_io import Outlet
from fleetapp.engine.prompts import Prepared, TextHost
from fleetapp.engine.scheduler import Completion, Opened, Scheduler
from fleetapp.engine.steplog import Ended, StepSums
from fleetapp.engine.text import StopMatcher
from fleetapp.errors import ChainBroken, FleetError, FleetUnavailable, NoCapacity, StaleFrame
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
        speculator: Speculator,
        clock: Callable[[], float],
        entropy: Callable[[], int],
    ) -> None:
        self._text = text
        self._submit = submit
        self._out = out
        self._eos = eos
        self._speculator = speculator
        self._clock = clock
        self._entropy = entropy
        self._tickets = 0
        self.ended = Ended()
        self._answers: dict[str, Answer] = {}
        self._talkative: dict[str, Answer] = {}
        self._scheduler: Scheduler | None = None
        self._context = 0
        self._shut: FleetError = FleetUnavailable(
            "This model is not ready yet.", remedy="Try again in a few seconds."
        )

    def __len__(self) -> int:
        return len(self._answers)

    def serve(self, scheduler: Scheduler, context: int) -> None:
        """The chain is live: from now on requests are taken, ``context`` positions each."""
        self._scheduler, self._context = scheduler, context

    def shut(self, error: FleetError) -> None:
        """End everything with this error and refuse what comes until ``serve``."""
        self._shut = error
        for answer in list(self._answers.values()):
            self._end(answer, "error", error)
        self._scheduler = None

    def generate(self, request: pipe.Generate) -> None:
        """Take a request in, or refuse it at once."""
        if request.request_id in self._answers:
            log.error("a second request %s was ignored", request.request_id)
            return
        try:
            if self._scheduler is None:
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
        answer = Answer(self._tickets, request, self._text.stream(), stops, self._clock())
        self._answers[request.request_id] = answer
        self._submit(answer.ticket, request)

    def prepared(self, event: Prepared) -> None:
        """A prompt was tokenised: check that it fits, before any computing, and queue it."""
        request_id = event.request_id
        answer = self._answers.get(request_id)
        if answer is None or answer.ticket != event.ticket or self._scheduler is None:
            return  # ended meanwhile
        try:
            if event.error is not None:
                raise event.error
            answer.prompt_tokens = len(event.ids)
            if answer.request.sampling.needs_history:
                answer.prompt = event.ids
            if answer.request.sampling.logprobs is not None:
                answer.reporter = Reporter(self._text.vocabulary())
            asked = answer.request.sampling.max_tokens
            answer.budget = answer_budget(len(event.ids), asked, self._context)
            if answer.request.sampling.needs_history:
                check_history(len(event.ids) + answer.budget)
            priority = answer.request.sampling.priority
            self._scheduler.add(request_id, event.ids, answer.budget, priority)
        except FleetError as exc:
            self._end(answer, "error", exc)
            return
        self._out(pipe.Started(request_id, answer.prompt_tokens))

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
        if answer.admitted is None:
            answer.admitted = self._clock()
            answer.cached_tokens = opened.prefix.length if opened.prefix else 0
            answer.seed = self._entropy() if sampling.seed is None else sampling.seed
        if not answer.followed and self._scheduler is not None:
            tokens = self._scheduler.tokens(opened.request_id)
            if tokens is not None:
                answer.followed = True
                self._speculator.opened(opened.request_id, tokens)
        # The last stage needs nothing of how an answer ends.
        sampling = msgspec.structs.replace(
            sampling, seed=answer.seed, stop=(), stop_ids=(), max_tokens=answer.budget
        )
        return Admitted(sampling, (*answer.prompt, *answer.said), len(answer.said))

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
            sampling = answer.request.sampling
            ends = chosen.token in sampling.stop_ids or (
                chosen.token in self._eos and not sampling.ignore_eos
            )
            answer.commit(chosen, now, silent=ends)
            if ends:
                self._end(answer, "stop")
            elif answer.tokens >= answer.budget:
                self._end(answer, "length")
            elif sampling.stop:
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

    def _say_or_stop(self, answer: Answer) -> None:
        """For answers that a stop string may end: it is looked for at every token."""
        if (delta := answer.say()) is not None:
            self._out(delta)
        if answer.stops.stopped:
            self._end(answer, "stop")

    def _end(self, answer: Answer, reason: FinishReason, error: FleetError | None = None) -> None:
        """Exactly once per request: forget it, give its slot back, say the rest and Finished."""
        del self._answers[answer.request_id]
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
        ended.answer_tokens += answer.tokens
        ended.cached_tokens += answer.cached_tokens


def broken_by(error: FleetError) -> ChainBroken:
    """What requests hear when the chain broke for this reason."""
    return ChainBroken(error.message)
