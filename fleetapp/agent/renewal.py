"""Keeps this PC's certificate fresh: a new leaf at half-life, tried again until there is one."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from cryptography import x509

from fleetapp.errors import BadSignature, FleetError, StorageError
from fleetapp.fleet import certificates
from fleetapp.fleet.enrolment import FleetStore

log = logging.getLogger("fleetapp.agent.renewal")

LOOK_EVERY = 60.0
"""The time may have jumped meanwhile, or the PC slept (s)."""
RETRY_MIN = 5.0
RETRY_VALID = 3600.0
RETRY_EXPIRED = 15.0
"""Longest pause between two attempts while the leaf still opens doors, and when it does not (s)."""


class Renewal:
    """Looks at the clock, asks for a leaf, keeps it.

    Args:
        store: where the leaf lies; checks a new one before it replaces the old.
        leaf: the present one.
        ask: gets a new leaf (PEM) for this PC's key; bounds its own time, raises FleetError.
        renewed: makes new connections show what is on disk now.
        changed: called when ``trouble`` is another.
        now: Unix seconds.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        store: FleetStore,
        leaf: x509.Certificate,
        ask: Callable[[], Awaitable[bytes]],
        renewed: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.leaf = leaf
        self.trouble = ""
        """Why the leaf is older than it should be, in sentences for people; empty if it is not."""
        self._store = store
        self._ask = ask
        self._renewed = renewed
        self._changed = changed
        self._now = now
        self._sleep = sleep
        self._failures = 0

    @property
    def due(self) -> bool:
        """Whether it is time for a new one; also if the clock says that this one is of tomorrow."""
        start = self.leaf.not_valid_before_utc.timestamp()
        return not start <= self._now() < certificates.renew_at(self.leaf)

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await self._sleep(self._pause())

    async def look(self) -> None:
        """Renew if it is time. Never raises: what went wrong is said by ``trouble``."""
        failure: FleetError | None = None
        if self.due:
            try:
                await self._renew()
            except FleetError as exc:
                failure = exc
            except OSError as exc:  # ssl.SSLError is one
                failure = StorageError(f"The new one cannot be used: {exc}.")
        if failure is None and self.due:
            failure = BadSignature(
                "The coordinator's certificates do not fit this PC's clock.",
                remedy="Check date and time of both PCs.",
            )
        self._failures = self._failures + 1 if failure is not None else 0
        self._say("" if failure is None else self._words(failure))

    async def _renew(self) -> None:
        pem = await self._ask()
        fresh = certificates.load_pem(pem)
        if _valid(self.leaf, self._now()) and not _valid(fresh, self._now()):
            return  # of no use here and now, while the present one is
        self.leaf = await asyncio.to_thread(self._store.save_leaf, pem)
        log.info("certificate renewed, valid until %s", self.leaf.not_valid_after_utc)
        await self._renewed()

    def _pause(self) -> float:
        if self._failures == 0:
            return min(LOOK_EVERY, max(certificates.renew_at(self.leaf) - self._now(), 1.0))
        longest = RETRY_VALID if _valid(self.leaf, self._now()) else RETRY_EXPIRED
        # Many PCs may have lost the same coordinator: they should not all come at once.
        spread = random.uniform(0.7, 1.3)  # noqa: S311 - no secret
        return min(RETRY_MIN * 2.0 ** min(self._failures - 1, 20), longest) * spread

    def _words(self, failure: FleetError) -> str:
        end = self.leaf.not_valid_after_utc
        valid = datetime.fromtimestamp(self._now(), UTC) < end
        until = "It is valid until" if valid else "It has expired on"
        return f"The certificate of this PC could not be renewed: {failure} {until} {end:%Y-%m-%d}."

    def _say(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        self.trouble = trouble
        if trouble:
            log.warning("%s", trouble)
        self._changed()


def _valid(leaf: x509.Certificate, now: float) -> bool:
    start, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    return start.timestamp() <= now < end.timestamp()
