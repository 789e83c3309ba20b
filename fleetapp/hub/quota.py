"""What one API key may use at a time and in a minute."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from fleetapp.errors import RateLimited
from fleetapp.hub.keys import ApiKeyView
from fleetapp.platform.units import counted

requests = partial(counted, what="request")
WINDOW: Final = 60.0


class Quotas:
    """Counts the requests of every key.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._running: dict[str, int] = {}
        self._begun: dict[str, deque[float]] = {}

    @contextmanager
    def use(self, key: ApiKeyView) -> Iterator[None]:
        """For as long as one request runs.

        Raises:
            RateLimited: the key has used up what it may; says when there is more.
        """
        self._check_parallel(key)
        self._check_minute(key)
        self._running[key.id] = self._running.get(key.id, 0) + 1
        try:
            yield
        finally:
            left = self._running[key.id] - 1
            if left:
                self._running[key.id] = left
            else:
                del self._running[key.id]

    def _check_parallel(self, key: ApiKeyView) -> None:
        if key.parallel and self._running.get(key.id, 0) >= key.parallel:
            raise RateLimited(
                f"The key '{key.name}' may have {requests(key.parallel)} at a time.",
                remedy="Wait for one of them to end.",
                seconds=1,
            )

    def _check_minute(self, key: ApiKeyView) -> None:
        if not key.per_minute:
            return
        now = self._now()
        begun = self._begun.setdefault(key.id, deque())
        while begun and begun[0] <= now - WINDOW:
            begun.popleft()
        if len(begun) >= key.per_minute:
            seconds = math.ceil(begun[0] + WINDOW - now)
            raise RateLimited(
                f"The key '{key.name}' may make {requests(key.per_minute)} a minute.",
                remedy=f"Try again in {seconds} s.",
                seconds=seconds,
            )
        begun.append(now)
