"""What proposes tokens, behind one protocol.

Speculative decoding as in Leviathan et al. (ICML 2023) and Chen et al. (2023), with drafts that
are deterministic: a draft is right exactly if it is the token that would have been chosen
anyway, so neither greedy nor sampled answers change by one token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Offer(msgspec.Struct, frozen=True):
    """What a drafter could propose for a sequence now."""

    grade: str
    """Drafts of one grade are about equally good; acceptance is counted by it."""
    most: int
    """Tokens that it could propose, at least 1."""
    belief: float = 0.6
    """Chance that one of them is right, as long as no draft of this grade was verified."""
    sequential: bool = False
    """Each further token takes time (a round of the draft model)."""


class Drafter(Protocol):
    """Follows the text of running sequences and guesses how they go on."""

    def open(self, key: str, tokens: Sequence[int]) -> None:
        """A sequence begins; ``tokens`` are its prompt."""
        ...

    def extend(self, key: str, tokens: Sequence[int]) -> None:
        """These tokens were chosen, whatever had been drafted; unknown keys are ignored."""
        ...

    def close(self, key: str) -> None:
        """The sequence ended; one that is not there is not an error."""
        ...

    def offer(self, key: str, most: int) -> Offer | None:
        """What it could propose, at most ``most`` tokens; costs next to nothing to ask."""
        ...

    def seconds(self, keys: Sequence[str], rounds: int) -> float:
        """What ``rounds`` tokens for each of these sequences are expected to take."""
        ...

    def draft(self, wants: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Propose up to so many tokens for each sequence; one it cannot help is left out."""
        ...

    def idle(self, seconds: float) -> bool:
        """Nothing else is to be done for about so long: work ahead a little.

        False if there is nothing to do, or nothing that is done in that time.
        """
        ...

    def reset(self) -> None:
        """Forget every sequence."""
        ...
