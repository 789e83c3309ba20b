"""Where a conversation has been before, so that its next turn finds its history in the cache.

Pure. A request is named by hashes of its beginning, one per message (or stretch of a raw prompt);
the chain that last served the longest of them has most of it in its cache.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from fleetapp.engine import pipe

_STRETCH: Final = 1024
"""Characters or token ids of a raw prompt that get a name together."""
REMEMBERED: Final = 20_000
SLACK: Final = 2
"""Requests that a chain may have more than the least busy one and still be preferred: computing a
history again costs more than a place in a slightly wider batch."""

Place = TypeVar("Place", bound=Hashable)


def names(request: pipe.Generate) -> tuple[bytes, ...]:
    """Hashes of ever longer beginnings of a request."""
    parts: list[bytes]
    if request.messages is not None:
        parts = [f"{m.role}\0{m.content}\0".encode("utf-8", "replace") for m in request.messages]
    elif request.prompt is not None:
        text = request.prompt
        parts = [
            text[i : i + _STRETCH].encode("utf-8", "replace") for i in range(0, len(text), _STRETCH)
        ]
    else:
        ids = request.token_ids or ()
        parts = [repr(ids[i : i + _STRETCH]).encode() for i in range(0, len(ids), _STRETCH)]
    digest = hashlib.sha256()
    found = []
    for part in parts:
        digest.update(part)
        found.append(digest.digest()[:16])
    return tuple(found)


class Affinity(Generic[Place]):
    """Remembers places by name, the least recently used are forgotten."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._places: OrderedDict[bytes, Place] = OrderedDict()
        self._remembered = remembered

    def note(self, request: Sequence[bytes], place: Place) -> None:
        """A request was served there."""
        for name in request:
            self._places[name] = place
            self._places.move_to_end(name)
        while len(self._places) > self._remembered:
            self._places.popitem(last=False)

    def choose(
        self, request: Sequence[bytes], places: Sequence[Place], load: Callable[[Place], int]
    ) -> Place:
        """The place for a request: where most of it was computed, unless that is much busier.

        Args:
            request: its names.
            places: at least one.
            load: requests that a place has.
        """
        least = min(places, key=load)
        for name in reversed(request):
            known = self._places.get(name)
            if known is not None and known in places:
                return known if load(known) <= load(least) + SLACK else least
        return least
