"""Speculation as the head sees it: drafts for the next frame, and what came of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from fleetapp.engine.drafting.base import Drafter, Offer
from fleetapp.engine.drafting.controller import MOST, Choice, Controller, Spent
from fleetapp.engine.drafting.lookup import Lookup
from fleetapp.engine.drafting.model import DraftModel
from fleetapp.engine.executor.base import Executor
from fleetapp.engine.pipe import StepRecord
from fleetapp.engine.scheduler import Batch, Completion, Frame
from fleetapp.errors import FleetError

log = logging.getLogger("fleetapp.engine.drafting")


def speculator_of(*, lookup: bool, draft: Executor | None, fixed: int = 0) -> Speculator:
    """What a head is to guess with; with neither, speculation is off.

    Args:
        lookup: guess from each request's own text.
        draft: guess with this model.
        fixed: number of drafts, 0 lets the controller choose.
    """
    drafters: list[Drafter] = []
    if lookup:
        drafters.append(Lookup())
    if draft is not None:
        drafters.append(DraftModel(draft))
    return Speculator(drafters, Controller(fixed=fixed))


class Speculator:
    """Drafters and their controller. Whatever fails here costs speed, never an answer.

    Args:
        drafters: asked in this order; none at all switches speculation off.
        controller: decides.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        drafters: Sequence[Drafter] = (),
        controller: Controller | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.controller = controller or Controller()
        self._drafters = list(drafters)
        self._clock = clock
        self._grades: dict[str, str] = {}
        self._gain = 0.0
        self._due: dict[int, float] = {}

    @property
    def on(self) -> bool:
        """There is somebody to ask."""
        return bool(self._drafters)

    def opened(self, key: str, prompt: Sequence[int]) -> None:
        """A request is going to run."""
        if self._drafters:
            self.controller.open(key)
        for drafter in self._drafters:
            drafter.open(key, prompt)

    def closed(self, key: str) -> None:
        """It ended."""
        self.controller.close(key)
        self._grades.pop(key, None)
        for drafter in self._drafters:
            drafter.close(key)

    def relinked(self) -> None:
        """The stages may be others now: what their steps take is learnt anew."""
        self.controller.relinked()

    def reset(self) -> None:
        """The epoch ended: no request, no frame."""
        self.controller.reset()
        self._grades.clear()
        self._due.clear()
        for drafter in self._drafters:
            drafter.reset()

    def propose(self, batch: Batch) -> dict[str, tuple[int, ...]]:
        """Drafts for the next frame, see ``scheduler.Propose``."""
        self._gain = 0.0
        asked = [(d.request_id, self._offers(d.request_id, d.room)) for d in batch.decodes]
        choices = self.controller.choose(
            tokens=batch.tokens,
            sequences=batch.sequences,
            answers=batch.answers,
            offers=[(key, [offer for _, offer in some]) for key, some in asked],
            room=batch.room,
            seconds=lambda rounds: self._seconds(asked, rounds),
        )
        drafts: dict[str, tuple[int, ...]] = {}
        for drafter in list(self._drafters):
            wants: dict[str, int] = {}
            for (key, some), choice in zip(asked, choices, strict=True):
                if choice is not None and some[choice.offer][0] is drafter:
                    wants[key] = choice.count
            if wants:
                drafts |= self._draft(drafter, wants)
        for (key, some), choice in zip(asked, choices, strict=True):
            if choice is not None and drafts.get(key):
                self._expect(key, some[choice.offer][1], choice, len(drafts[key]))
        return drafts

    def launched(self, frame: Frame) -> None:
        """A frame is sent now."""
        if not self._drafters:
            return
        tokens, sequences = len(frame.tokens), len(frame.segments)
        answers = sum(s.sample for s in frame.segments) + self._gain
        plain = not any(s.drafts for s in frame.segments)
        self._gain = 0.0
        self.controller.launched(frame.step, tokens, sequences, answers, plain=plain)
        self._due[frame.step] = self._clock() + self.controller.latency(tokens, sequences)

    def answered(self, step: int, record: StepRecord | None) -> None:
        """It came back; without a record nothing is known of its time."""
        self._due.pop(step, None)
        self.controller.answered(step, _spent(record) if record is not None else None)

    def completed(self, completion: Completion) -> None:
        """What came of its drafts, and how its sequences go on."""
        if not self._drafters:
            return
        for v in completion.verified:
            grade = self._grades.pop(v.request_id, "")
            self.controller.verified(v.request_id, grade, v.drafted, v.accepted)
        chosen: dict[str, list[int]] = {}
        for c in completion.chosen:
            chosen.setdefault(c.request_id, []).append(c.token)
        for drafter in self._drafters:
            for key, tokens in chosen.items():
                drafter.extend(key, tokens)

    def idle(self) -> bool:
        """Frames travel and the head has nothing else to do: work ahead, a little at a time."""
        if not self._due or not self._drafters:
            return False
        left = min(self._due.values()) - self._clock()
        for drafter in list(self._drafters):
            try:
                if left > 0 and drafter.idle(left):
                    return True
            except FleetError as exc:
                self._give_up(drafter, exc)
        return False

    def _offers(self, key: str, room: int) -> list[tuple[Drafter, Offer]]:
        most = min(room, MOST)
        return [(d, offer) for d in self._drafters if (offer := d.offer(key, most)) is not None]

    def _seconds(self, asked: list[tuple[str, list[tuple[Drafter, Offer]]]], rounds: int) -> float:
        total = 0.0
        for drafter in self._drafters:
            keys = [k for k, some in asked if any(d is drafter and o.sequential for d, o in some)]
            if keys:
                total += drafter.seconds(keys, rounds)
        return total

    def _draft(self, drafter: Drafter, wants: dict[str, int]) -> dict[str, tuple[int, ...]]:
        try:
            return drafter.draft(wants)
        except FleetError as exc:
            self._give_up(drafter, exc)
            return {}

    def _give_up(self, drafter: Drafter, error: FleetError) -> None:
        log.error("no more drafts of this kind: %s", error.message)
        drafter.reset()
        self._drafters.remove(drafter)

    def _expect(self, key: str, offer: Offer, choice: Choice, count: int) -> None:
        self._grades[key] = offer.grade
        self._gain += self.controller.expected(key, offer, min(choice.count, count))


def _spent(record: StepRecord) -> Spent | None:
    """What a step cost, without its waiting behind other frames."""
    if not record.stages:
        return None
    busy = [(s.compute + s.host) * 1e-6 for s in record.stages]
    waited = record.lag + sum(s.wait for s in record.stages)
    whole = (record.completed - record.launched - waited) * 1e-6
    return Spent(max(whole, sum(busy)), busy[0], max(busy[1:], default=0.0))
