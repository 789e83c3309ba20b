"""Giving the coordinator's office to another PC, and noticing that it has been given away."""

from __future__ import annotations

import asyncio
import logging

from fleetapp.errors import (
    FleetError,
    NotAMember,
    NotFound,
    PeerTimeout,
    ProtocolError,
    UserError,
    from_code,
)
from fleetapp.fleet.control import HandedOver, Handover, HandoverRefused, MembershipUpdate, Signed
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.registry import Registry, Session
from fleetapp.types import DeviceId

log = logging.getLogger("fleetapp.hub.succession")

ANNOUNCE_SECONDS = 2.0
ANSWER_SECONDS = 60.0
"""For the other PC to keep what it was given; its keyring may ask somebody (s)."""


class Succession:
    """Who coordinates, seen from the hub that does so now.

    Args:
        device: the PC of this hub.
        trust: the newest membership list.
        registry: who is connected.
    """

    def __init__(self, device: DeviceId, trust: TrustList, registry: Registry) -> None:
        self._device = device
        self._trust = trust
        self._registry = registry
        self._to: DeviceId | None = None
        self._answer: asyncio.Future[HandedOver] | None = None

    def require_office(self) -> None:
        """Return only if this hub may change the membership.

        Raises:
            NotAMember: a newer list names another coordinator: two hubs must never sign.
            UserError: the office is being given away.
        """
        if all(m.device_id != self._device for m in self._trust.coordinators()):
            raise NotAMember(
                "This PC does not coordinate the fleet any more.",
                remedy="Do this on the coordinator ('fleetapp fleet nodes' names it).",
            )
        if self._to is not None:
            raise UserError(
                "The fleet is being given to another coordinator right now.",
                remedy="Try again in a minute.",
            )

    async def give(self, device_id: str, bundle: bytes) -> HandedOver:
        """Let a connected member take the office; nothing is changed here yet.

        Args:
            device_id: of that member.
            bundle: ``fleet.recovery.Bundle`` as JSON. It holds the authority's key and goes over
                the member's own connection, whose key was checked against the list.

        Raises:
            NotFound, NotAMember: it is no active member, or not connected.
            UserError: it is this PC, or the office is being given away already.
            PeerTimeout, FleetError: it did not take it; this PC goes on coordinating.
        """
        self.require_office()
        member = self._trust.membership.members.get(device_id) if self._trust.membership else None
        if member is None or member.state != "active":
            raise NotFound(f"The fleet has no active member {device_id}.")
        if device_id == self._device:
            raise UserError("This PC coordinates the fleet already.")
        session = self._registry.get(member.device_id)
        if session is None:
            raise NotAMember(
                f"{member.name} is not connected.",
                remedy="Start it first; if this PC must go now, use the recovery file there.",
            )
        self._to, self._answer = session.device_id, asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await session.send(Handover(bundle))
                answer = await self._answer
            self._check(answer.membership, session.device_id)
        except TimeoutError as exc:
            raise PeerTimeout(
                f"{member.name} did not say whether it coordinates the fleet now.",
                remedy="Look at 'fleetapp fleet nodes' in a moment; if it does, this PC steps "
                "down by itself.",
            ) from exc
        finally:
            self._to = self._answer = None
        return answer

    async def announce(self, signed: Signed, addresses: tuple[str, ...]) -> None:
        """Tell every connected member who coordinates now and where; who does not read is left."""

        async def tell(session: Session) -> None:
            try:
                async with asyncio.timeout(ANNOUNCE_SECONDS):
                    await session.send(MembershipUpdate(signed, addresses))
            except (FleetError, OSError, TimeoutError) as exc:
                log.info("%s was not told of the new coordinator: %s", session.device_id, exc)

        await asyncio.gather(*(tell(s) for s in self._registry.sessions()))

    def answered(self, device: DeviceId, message: HandedOver | HandoverRefused) -> None:
        """A member says what became of the office; ignored if it was not asked."""
        if device != self._to or self._answer is None or self._answer.done():
            return
        if isinstance(message, HandedOver):
            self._answer.set_result(message)
        else:
            self._answer.set_exception(from_code(message.code, message.message, message.remedy))

    def lost(self, device: DeviceId) -> None:
        """A member's connection ended; if it was about to take the office, it will not tell."""
        if device == self._to and self._answer is not None and not self._answer.done():
            gone = FleetError(f"The connection to {device} broke before it had answered.")
            self._answer.set_exception(gone)

    def _check(self, signed: Signed, device: DeviceId) -> None:
        """The list must be genuine, newer, and name that PC as its only coordinator."""
        if not self._trust.update(signed):
            raise ProtocolError("The other PC answered with a list that is not newer.")
        if [m.device_id for m in self._trust.coordinators()] != [device]:
            raise ProtocolError("The other PC answered with a list that names somebody else.")
