"""How often drafts were right, by position, with the past fading."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Final

_FADE: Final = 0.98


class Acceptance:
    """The chance that a draft is right if all before it were, for each position.

    Args:
        parent: what is believed where nothing was seen here; it learns whatever this one does.
        belief: the same where there is no parent.
        weight: how many verifications the parent's belief counts as.
        keep: part of the past that is left after each verification of a position.
    """

    def __init__(
        self,
        parent: Acceptance | None = None,
        *,
        belief: float = 0.6,
        weight: float = 8.0,
        keep: float = 0.97,
    ) -> None:
        self._parent = parent
        self._belief = belief
        self._weight = weight
        self._keep = keep
        self._hits: list[float] = []
        self._trials: list[float] = []

    def observe(self, drafted: int, accepted: int) -> None:
        """The first ``accepted`` of ``drafted`` tokens were right."""
        if self._parent is not None:
            self._parent.observe(drafted, accepted)
        seen = min(drafted, accepted + 1)
        while len(self._hits) < seen:
            self._hits.append(0.0)
            self._trials.append(0.0)
        for i in range(seen):
            self._hits[i] = self._hits[i] * self._keep + (i < accepted)
            self._trials[i] = self._trials[i] * self._keep + 1.0

    def fade(self) -> None:
        """Nothing was drafted although it could have been: lean towards the parent again.

        Otherwise a run of bad luck that switched drafting off would never be forgotten.
        """
        for i in range(len(self._hits)):
            self._hits[i] *= _FADE
            self._trials[i] *= _FADE

    def rate(self, position: int) -> float:
        """Chance at a position, counted from 0, if all before it are right.

        Positions that were never reached are believed to be like the one before.
        """
        return self.rates(position + 1)[position]

    def rates(self, most: int) -> list[float]:
        """The chances of the first ``most`` positions."""
        weight = self._weight
        beliefs = self._parent.rates(most) if self._parent is not None else None
        rates: list[float] = []
        belief = self._belief
        for i in range(most):
            if beliefs is not None:
                belief = beliefs[i]
            if i < len(self._hits):
                belief = (self._hits[i] + weight * belief) / (self._trials[i] + weight)
            rates.append(belief)
        return rates

    def gains(self, most: int) -> list[float]:
        """What each further draft adds to the tokens expected of a step; never increases."""
        return list(accumulate(self.rates(most), mul))


class Tally:
    """Plain counts since the start, for people.

    Attributes:
        drafted: drafts sent, by position after the last committed token.
        accepted: those of them that were right.
    """

    def __init__(self) -> None:
        self.drafted: list[int] = []
        self.accepted: list[int] = []

    def observe(self, drafted: int, accepted: int) -> None:
        """As ``Acceptance.observe``."""
        while len(self.drafted) < drafted:
            self.drafted.append(0)
            self.accepted.append(0)
        for i in range(drafted):
            self.drafted[i] += 1
            self.accepted[i] += i < accepted
