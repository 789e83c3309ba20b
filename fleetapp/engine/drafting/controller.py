"""How many drafts each sequence of a frame carries, none included. Pure: no clock, no randomness.

The step that a frame takes with n positions costs the time of its slowest part; the tokens it
commits are one per sequence and what the drafts are expected to add. The controller takes the
drafts that make the most tokens per second of all (docs/speculation.md has the formula), from
what it measured: acceptance by position (fading), step time by width, draft time. Goodput as the
measure of how far to speculate: Liu et al., "Optimizing Speculative Decoding for Serving Large
Language Models Using Goodput" (2024), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetapp.engine.drafting.acceptance import Acceptance, Tally
from fleetapp.engine.drafting.base import Offer
from fleetapp.engine.drafting.costs import StepCost, width_class

MOST: Final = 10
"""Drafts that one sequence carries at most."""
MARGIN: Final = 0.03
"""Gain that is expected at least before anything is drafted: the best of many estimates is more
often too high than too low, and drafting has costs of its own at the head."""
PROBE_SHARE: Final = 0.005
"""Part of the time that may be spent on drafts of which no gain is expected, to learn."""
_CREDIT_FRAMES: Final = 400
_LEAST_LOSS: Final = 0.05
"""Part of a step that a probe is believed to cost at least: what was measured may be chance."""
_REFRESH: Final = 256
_REFRESH_CLOSE: Final = 32
"""Frames after which a width without drafts is measured again: sooner if the gain is small."""
_CLOSE: Final = 1.2
_ANY_WIDTH: Final = 12
_COARSE: Final = 4
_COARSE_UNTIL: Final = 32


@dataclass(frozen=True)
class Choice:
    """``count`` drafts from the offer of that number."""

    offer: int
    count: int


@dataclass(frozen=True)
class Spent:
    """What a step took, in seconds; frames that lay waiting behind others are not counted."""

    latency: float
    """From the launch until its answer: all stages and hops."""
    head: float
    """The head was busy with it."""
    rest: float
    """The busiest of the other stages was."""


@dataclass(frozen=True)
class _Flying:
    tokens: int
    sequences: int
    answers: float
    plain: bool


class _Costs:
    """Seconds by drafts that are added to a frame; each is looked up when it is first asked for."""

    def __init__(self, cost: StepCost, tokens: int, sequences: int) -> None:
        self._cost, self._tokens, self._sequences = cost, tokens, sequences
        self._known: list[float] = []

    def __getitem__(self, extra: int) -> float:
        known = self._known
        while len(known) <= extra:
            known.append(self._cost.estimate(self._tokens + len(known), self._sequences))
        return known[extra]


@dataclass
class _Frame:
    """What is known of a frame to be: costs by extra tokens, and what flies beside it."""

    answers: float
    latency: _Costs
    head: _Costs
    rest: _Costs
    others_latency: float
    others_head: float
    others_rest: float
    others_answers: float

    def time(self, extra: int, drafting: float) -> float:
        """Seconds until the frame's sequences can go on."""
        return max(self.latency[extra] + drafting, self._busy(extra, drafting))

    def rate(self, extra: int, drafting: float, gain: float) -> float:
        """Tokens per second of everybody."""
        busy = self._busy(extra, drafting)
        rate = (self.answers + gain) / max(self.latency[extra] + drafting, busy)
        if self.others_answers:
            rate += self.others_answers / max(self.others_latency, busy)
        return rate

    def _busy(self, extra: int, drafting: float) -> float:
        """No cycle of all frames can be shorter than the work of the busiest stage."""
        return max(
            self.others_head + self.head[extra] + drafting, self.others_rest + self.rest[extra]
        )


@dataclass
class _Plan:
    """How many drafts of which offer, for each sequence."""

    rate: float = 0.0
    extra: int = 0
    rounds: int = 0
    drafting: float = 0.0
    counts: list[Choice | None] = field(default_factory=list)


@dataclass
class _Field:
    """All that could be drafted for a frame, see ``Controller.choose``."""

    offers: Sequence[tuple[str, Sequence[Offer]]]
    gains: list[list[list[float]]]
    widest: int
    seconds: Callable[[int], float]
    tokens: int
    """Positions that the frame has without drafts."""

    def best(self, frame: _Frame) -> _Plan:
        """The best way to draft at all."""
        best = _Plan()
        most = max(
            (min(o.most, MOST) for _, s in self.offers for o in s if o.sequential), default=0
        )
        for rounds in range(most + 1):
            drafting = self.seconds(rounds) if rounds else 0.0
            picked, steps = self._order(rounds)
            gain, rate, extra = 0.0, best.rate, 0
            everything = -sum([less for less, _ in steps])
            for n, (less, _) in enumerate(steps, 1):
                if frame.rate(n, drafting, everything) <= rate:
                    break  # a wider frame is no faster: what all could add comes too late
                gain -= less
                if not usual(self.tokens + n):
                    continue
                if (now := frame.rate(n, drafting, gain)) > rate:
                    rate, extra = now, n
            if extra:
                counts = self._counts(picked, steps[:extra])
                best = _Plan(rate, extra, rounds, drafting, counts)
        return best

    def further(self, plan: _Plan) -> _Plan:
        """The next wider frame than the plan has; an empty one if there is none."""
        rounds = plan.rounds + (plan.rounds > 0)
        picked, steps = self._order(rounds)
        extra = plan.extra + 1
        while not usual(self.tokens + extra):
            extra += 1
        if len(steps) < extra:
            return _Plan()
        drafting = self.seconds(rounds) if rounds else 0.0
        return _Plan(0.0, extra, rounds, drafting, self._counts(picked, steps[:extra]))

    def _order(self, rounds: int) -> tuple[list[int], list[tuple[float, int]]]:
        """Each sequence's better offer if the sequential drafter runs that many rounds, and all
        single drafts, as (minus what it adds, sequence), by what they add.

        A later draft of a sequence never adds more than an earlier one, so this order is
        possible, and for every width the best.
        """
        picked: list[int] = []
        steps: list[tuple[float, int]] = []
        for i, ((_, some), lists) in enumerate(zip(self.offers, self.gains, strict=True)):
            usable = [g[:rounds] if o.sequential else g for o, g in zip(some, lists, strict=True)]
            pick = max(range(len(some)), key=[sum(g) for g in usable].__getitem__, default=-1)
            picked.append(pick)
            if pick >= 0:
                steps += [(-gain, i) for gain in usable[pick]]
        steps.sort()
        return picked, steps[: self.widest]

    def _counts(self, picked: list[int], steps: list[tuple[float, int]]) -> list[Choice | None]:
        counts = [0] * len(picked)
        for _, i in steps:
            counts[i] += 1
        return [Choice(p, c) if c else None for p, c in zip(picked, counts, strict=True)]


class Controller:
    """For one chain, epoch after epoch; what it learnt of drafts and machine is kept.

    Args:
        margin: see ``MARGIN``.
        probe_share: see ``PROBE_SHARE``.
        fixed: take that many drafts whenever there are so many, for measuring; 0 chooses.
    """

    def __init__(
        self, *, margin: float = MARGIN, probe_share: float = PROBE_SHARE, fixed: int = 0
    ) -> None:
        self.tally = Tally()
        self._fixed = fixed
        self._margin = margin
        self._probe_share = probe_share
        self._latency = StepCost()
        self._head = StepCost()
        self._rest = StepCost()
        self._flying: dict[int, _Flying] = {}
        self._grades: dict[str, Acceptance] = {}
        self._sequences: dict[str, dict[str, Acceptance]] = {}
        self._credit = 0.0
        self._frames = 0
        self._plain: dict[tuple[int, int], int] = {}

    # -- what happened ---------------------------------------------------------------------

    def open(self, key: str) -> None:
        """A sequence begins."""
        self._sequences[key] = {}

    def close(self, key: str) -> None:
        """It ended."""
        self._sequences.pop(key, None)

    def reset(self) -> None:
        """A new epoch: no sequence, no frame."""
        self._sequences.clear()
        self._flying.clear()

    def relinked(self) -> None:
        """Other stages, other links: step times are learnt anew."""
        self._latency, self._head, self._rest = StepCost(), StepCost(), StepCost()
        self._plain.clear()

    def verified(self, key: str, grade: str, drafted: int, accepted: int) -> None:
        """So many of a sequence's drafts were right."""
        self.tally.observe(drafted, accepted)
        self._acceptance(key, grade, 0.6).observe(drafted, accepted)

    def launched(
        self, step: int, tokens: int, sequences: int, answers: float, *, plain: bool
    ) -> None:
        """A frame was sent.

        Args:
            step: its number.
            tokens: its positions, drafts included.
            sequences: its segments.
            answers: tokens that are expected of it.
            plain: it carries no drafts.
        """
        self._flying[step] = _Flying(tokens, sequences, answers, plain)

    def answered(self, step: int, spent: Spent | None) -> None:
        """A frame came back; None if nothing can be said of its time."""
        frame = self._flying.pop(step, None)
        if frame is None or spent is None:
            return
        self._frames += 1
        for cost, seconds in (
            (self._latency, spent.latency),
            (self._head, spent.head),
            (self._rest, spent.rest),
        ):
            if seconds > 0:
                cost.observe(frame.tokens, frame.sequences, seconds)
        if frame.plain:
            self._plain[_kind(frame.tokens, frame.sequences)] = self._frames

    def latency(self, tokens: int, sequences: int) -> float:
        """Seconds until a frame like that is answered; 0 if nothing is known."""
        return self._latency.estimate(tokens, sequences)

    def expected(self, key: str, offer: Offer, count: int) -> float:
        """Tokens that so many drafts are expected to add."""
        return sum(self._acceptance(key, offer.grade, offer.belief).gains(count))

    # -- what to do ------------------------------------------------------------------------

    def choose(
        self,
        *,
        tokens: int,
        sequences: int,
        answers: int,
        offers: Sequence[tuple[str, Sequence[Offer]]],
        room: int,
        seconds: Callable[[int], float],
    ) -> list[Choice | None]:
        """Drafts for the sequences of the next frame.

        Args:
            tokens: positions that the frame has without drafts.
            sequences: its segments.
            answers: of which so many will be answered with a token.
            offers: for each sequence that may carry drafts its key and what is offered.
            room: positions that the frame can take beyond ``tokens``.
            seconds: what so many rounds of a sequential drafter take.

        Returns:
            One entry per entry of ``offers``.
        """
        nothing: list[Choice | None] = [None] * len(offers)
        if self._fixed:
            return [
                Choice(0, min(self._fixed, some[0].most)) if some else None for _, some in offers
            ]
        base = self._latency.estimate(tokens, sequences)
        earned = self._probe_share * base
        self._credit = min(self._credit + earned, _CREDIT_FRAMES * earned)
        widest = min(room, sum(max((o.most for o in some), default=0) for _, some in offers))
        last = self._plain.get(_kind(tokens, sequences))
        if widest < 1 or last is None:
            return nothing
        frame = self._frame(tokens, sequences, float(answers))
        gains = [
            [self._acceptance(key, o.grade, o.belief).gains(min(o.most, MOST)) for o in some]
            for key, some in offers
        ]
        off = frame.rate(0, 0.0, 0.0)
        field = _Field(offers, gains, widest, seconds, tokens)
        best = field.best(frame)
        if best.rate < off * (1 + self._margin):
            self._fade(offers)
        if not best.extra:
            return nothing
        lasts = frame.time(0, 0.0)
        if best.rate < off * (1 + self._margin):
            spared, trial = frame.time(0, 0.0), best
        else:
            stale = self._frames - last
            if stale > (_REFRESH_CLOSE if best.rate < off * _CLOSE else _REFRESH):
                return nothing
            spared, trial = frame.time(best.extra, best.drafting), field.further(best)
        loss = max(frame.time(trial.extra, trial.drafting) - spared, _LEAST_LOSS * lasts)
        if trial.extra and loss <= self._credit:
            self._credit -= loss
            return trial.counts
        return nothing if trial is best else best.counts

    def _frame(self, tokens: int, sequences: int, answers: float) -> _Frame:
        flying = self._flying.values()
        return _Frame(
            answers=answers,
            latency=_Costs(self._latency, tokens, sequences),
            head=_Costs(self._head, tokens, sequences),
            rest=_Costs(self._rest, tokens, sequences),
            others_latency=max(
                (self._latency.estimate(f.tokens, f.sequences) for f in flying), default=0.0
            ),
            others_head=sum(self._head.estimate(f.tokens, f.sequences) for f in flying),
            others_rest=sum(self._rest.estimate(f.tokens, f.sequences) for f in flying),
            others_answers=sum(f.answers for f in flying),
        )

    def _fade(self, offers: Sequence[tuple[str, Sequence[Offer]]]) -> None:
        for key, some in offers:
            own = self._sequences.get(key, {})
            for offer in some:
                if offer.grade in own:
                    own[offer.grade].fade()

    def _acceptance(self, key: str, grade: str, belief: float) -> Acceptance:
        general = self._grades.get(grade)
        if general is None:
            general = self._grades[grade] = Acceptance(belief=belief, weight=4.0, keep=0.985)
        own = self._sequences.get(key)
        if own is None:
            return general
        if grade not in own:
            own[grade] = Acceptance(general)
        return own[grade]


def usual(width: int) -> bool:
    """Whether frames with drafts may be that wide.

    A device prepares itself for each width that is new to it (seen on a CPU: tens of
    milliseconds, once), and works in tiles: few widths are as good as all of them.
    """
    return width <= _ANY_WIDTH or width % (_COARSE if width <= _COARSE_UNTIL else 2 * _COARSE) == 0


def _kind(tokens: int, sequences: int) -> tuple[int, int]:
    return width_class(tokens), sequences
