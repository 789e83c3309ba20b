"""A chain that exists only as numbers, to see what the controller makes of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from fleetapp.engine.drafting.base import Offer
from fleetapp.engine.drafting.controller import Choice, Controller, Spent

WIDTHS = (1, 2, 4, 8, 16)
CPU = (8.9, 9.3, 11.6, 16.7, 25.4)
"""Milliseconds on one core, as measured."""
FLAT = (10.0, 10.0, 10.1, 10.3, 10.8)
STEEP = (5.0, 9.0, 17.0, 33.0, 65.0)


def between(table: tuple[float, ...]) -> Callable[[int], float]:
    """Seconds by width, straight between what a table says in milliseconds."""

    def seconds(n: int) -> float:
        for (a, x), (b, y) in zip(
            zip(WIDTHS, table, strict=True), zip(WIDTHS[1:], table[1:], strict=True), strict=False
        ):
            if n <= b:
                return (x + (y - x) * (n - a) / (b - a)) / 1e3
        slope = (table[-1] - table[-2]) / (WIDTHS[-1] - WIDTHS[-2])
        return (table[-1] + slope * (n - WIDTHS[-1])) / 1e3

    return seconds


@dataclass
class World:
    """One sequence over a chain whose drafts are right with these chances.

    Args:
        chances: of each position, given that all before it were right; constant beyond.
        seconds: of a step by width.
        hop: seconds of all hops together.
        draft: seconds of each drafted token; 0 for prompt lookup.
        noise: spread of the measured and spent time.
        offered: part of the steps in which there is something to draft from.
    """

    chances: tuple[float, ...]
    seconds: Callable[[int], float]
    hop: float = 0.0
    draft: float = 0.0
    noise: float = 0.05
    offered: float = 1.0
    most: int = 10

    def rate(self, k: int) -> float:
        """Tokens per second with k drafts in every step that has any."""
        return self.expected([k]) if self.offered == 1 else self._mixed(k)

    def expected(self, chosen: list[int]) -> float:
        """Tokens per second that steps with so many drafts give on average."""
        return sum(map(self._tokens, chosen)) / sum(map(self._time, chosen))

    def _mixed(self, k: int) -> float:
        part = self.offered
        tokens = part * self._tokens(k) + 1 - part
        return tokens / (part * self._time(k) + (1 - part) * self._time(0))

    def _tokens(self, k: int) -> float:
        reach, expected = 1.0, 1.0
        for i in range(k):
            reach *= self._chance(i)
            expected += reach
        return expected

    def _time(self, k: int) -> float:
        return self.seconds(1 + k) + self.hop + k * self.draft

    def best(self) -> float:
        """The rate of the best fixed k."""
        return max(self.rate(k) for k in range(self.most + 1))

    def run(self, tokens: int, controller: Controller, seed: int = 1) -> tuple[float, list[int]]:
        """Tokens per second of an answer of so many tokens, and the k of each step."""
        draw = random.Random(seed)
        key = f"run {seed} {draw.random()}"
        controller.open(key)
        done, spent, step, chosen = 0, 0.0, 0, list[int]()
        while done < tokens:
            step += 1
            there = draw.random() < self.offered
            offer = Offer("g", self.most, sequential=self.draft > 0)
            (choice,) = controller.choose(
                tokens=1,
                sequences=1,
                answers=1,
                offers=[(key, [offer] if there else [])],
                room=255,
                seconds=lambda rounds: rounds * self.draft,
            ) or [None]
            k = choice.count if isinstance(choice, Choice) else 0
            chosen.append(k)
            gain = controller.expected(key, offer, k)
            controller.launched(step, 1 + k, 1, 1 + gain, plain=k == 0)
            accepted = 0
            while accepted < k and draw.random() < self._chance(accepted):
                accepted += 1
            if k:
                controller.verified(key, "g", k, accepted)
            compute = self.seconds(1 + k) * draw.lognormvariate(0.0, self.noise)
            controller.answered(step, Spent(compute + self.hop, compute, 0.0))
            done += 1 + accepted
            spent += compute + self.hop + k * self.draft
        controller.close(key)
        return done / spent, chosen

    def _chance(self, position: int) -> float:
        return self.chances[min(position, len(self.chances) - 1)]
