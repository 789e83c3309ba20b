"""Finding a coordinator that this PC has not heard of yet, because it took over meanwhile.

A member believes only coordinators of its own list. When that one is gone for good, the news has to
come from somebody it does not believe: so it takes from them one thing only, a list that is newer
and signed by the fleet's authority. Whoever offers it, a genuine list is a genuine list.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import aiohttp

from fleetapp.agent.joining import (
    CALL_DEADLINE,
    Address,
    authority_at,
    membership_from,
    proof_of_key,
)
from fleetapp.errors import FleetError
from fleetapp.fleet.control import Signed
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.trust import TrustList
from fleetapp.types import DeviceId

log = logging.getLogger("fleetapp.agent.successor")

LOOK_SECONDS = 2.0
RETRY_SECONDS = 20.0
"""An address that had no news is not asked again for so long (s)."""
MAX_ADDRESSES = 16
"""Asked in one look; anybody can announce anything."""


class SuccessorWatch:
    """Looks around for newer lists.

    Args:
        identity: this PC; it proves its key to whoever it asks.
        credentials: whose authority counts.
        trust: the present list.
        strangers: addresses where a PC announces itself as coordinator of this fleet without
            being one by the present list, and known ones if no coordinator is connected.
        found: given a list that is genuine and newer, and where it was found.
    """

    def __init__(
        self,
        identity: Identity,
        credentials: Credentials,
        trust: TrustList,
        strangers: Callable[[], list[Address]],
        found: Callable[[Signed, Address], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._identity = identity
        self._credentials = credentials
        self._trust = trust
        self._strangers = strangers
        self._found = found
        self._clock = clock
        self._asked: dict[Address, float] = {}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> bool:
        """Ask those that may know of something newer; whether one did. Never raises FleetError."""
        now = self._clock()
        self._asked = {a: t for a, t in self._asked.items() if now - t < RETRY_SECONDS}
        new = [a for a in dict.fromkeys(self._strangers()) if a not in self._asked]
        for address in new[:MAX_ADDRESSES]:
            self._asked[address] = now
            try:
                signed = await self._ask(address)
                if signed is None or not self._trust.is_newer(signed):
                    continue
                log.warning("a newer membership list was found at %s:%d", *address)
                await self._found(signed, address)
            except (FleetError, aiohttp.ClientError, OSError, TimeoutError) as exc:
                log.info("nothing to follow at %s:%d: %s", *address, exc)
                continue
            return True
        return False

    async def _ask(self, address: Address) -> Signed | None:
        timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            hub = await authority_at(session, bytes.fromhex(self._trust.authority_spki), address)
            known = {m.device_id for m in self._trust.coordinators()}
            if hub.device in known or hub.device == self._identity.device_id:
                return None
            name = DeviceId(self._identity.device_id)
            return await membership_from(session, hub, proof_of_key(self._identity, name))
