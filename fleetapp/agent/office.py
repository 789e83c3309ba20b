"""The coordinator's office of this PC: packed into a file, taken up, given away, laid down."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from fleetapp.agent.infleet import InFleet
from fleetapp.agent.joining import bracket
from fleetapp.agent.pc import PC, forget_hub
from fleetapp.agent.takeover import bundle_of, read_bundle, require_ports, take_over
from fleetapp.errors import BadRequest, FleetError, NotAMember, UserError
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.control import HandedOver, HandoverRefused, Signed
from fleetapp.fleet.enrolment import Enrolment
from fleetapp.fleet.recovery import Bundle, seal, unseal
from fleetapp.hub.hub import Hub
from fleetapp.types import DeviceId

log = logging.getLogger("fleetapp.agent.office")

MOVING = "moving"
"""The reason in the goodbye of a member that comes back in another role."""


class OfficeCalls(Protocol):
    """What the loopback API may ask. All raise FleetError."""

    async def export_recovery(self, passphrase: str) -> str:
        """The recovery file's text; only on the coordinator."""
        ...

    async def use_recovery(self, text: str, passphrase: str, revoke_old: bool) -> None:
        """Make this PC the coordinator of the file's fleet."""
        ...

    async def move_coordinator(self, device_id: str) -> None:
        """Give the office to a connected member; only on the coordinator."""
        ...


class Office:
    """``OfficeCalls`` of one agent, and what happens to the office without being asked.

    Args:
        pc: this PC as it is now.
        current: its membership; None if it belongs to no fleet.
        busy: held while the membership changes.
        restart: ends the membership with a reason, runs blocking work, and enters again.
    """

    def __init__(
        self,
        pc: Callable[[], PC],
        current: Callable[[], InFleet | None],
        busy: asyncio.Lock,
        restart: Callable[[str, Callable[[], object]], Awaitable[None]],
    ) -> None:
        self._pc = pc
        self._current = current
        self._busy = busy
        self._restart = restart
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ asked by people

    async def export_recovery(self, passphrase: str) -> str:
        """The recovery file's text.

        Raises:
            NotAMember, UserError: this PC coordinates no fleet.
            BadRequest: the passphrase is too short.
        """
        hub = self._hub()
        bundle = await asyncio.to_thread(self._bundle, hub)
        text = await asyncio.to_thread(seal, bundle, passphrase)
        hub.audit.write("local", "recovery_exported")
        return text.decode("ascii")

    async def use_recovery(self, text: str, passphrase: str, revoke_old: bool) -> None:
        """Make this PC the coordinator of the file's fleet, and come up as that.

        Raises:
            BadRequest, Unsupported: the file or its passphrase; or this PC coordinates already.
            WrongFleet: this PC belongs to another fleet.
            StorageError, PortTaken: it could not be kept, or the hub cannot listen.
        """
        bundle = await asyncio.to_thread(unseal, text.encode("utf-8", "replace"), passphrase)
        async with self._busy:
            fleet = self._current()
            if fleet is not None and fleet.hub is not None:
                raise BadRequest(
                    "This PC coordinates a fleet already.",
                    remedy="Use the file on another PC, or leave this fleet first.",
                )
            enrolment = _as_now(fleet) if fleet is not None else None
            pc = self._pc()
            await asyncio.to_thread(require_ports, pc)

            def work() -> Signed:
                return take_over(pc, enrolment, bundle, actor="local", revoke_old=revoke_old)

            await self._restart(MOVING, work)

    async def move_coordinator(self, device_id: str) -> None:
        """Give the office away; returns when the other PC has it and this one is a member.

        Raises:
            NotAMember, NotFound, UserError: it cannot be that PC, or not now.
            FleetError: the other PC did not take it; this one goes on coordinating.
        """
        async with self._busy:
            hub = self._hub()
            session = hub.registry.get(DeviceId(device_id))
            bundle = await asyncio.to_thread(self._bundle, hub)
            hub.audit.write("local", "coordinator_offered", device=device_id)
            fleet = self._current()
            assert fleet is not None, "a hub has one"
            try:
                answer = await hub.succession.give(device_id, msgspec.json.encode(bundle))
            except FleetError:
                self.changed(fleet)  # if it has the office in spite of what it says
                raise
            port, hosts = answer.control_port, session.hosts if session is not None else ()
            addresses = tuple(f"{bracket(h)}:{port}" for h in hosts) if port else ()
            hub.audit.write("local", "coordinator_moved", device=device_id)
            fleet.keep_list(answer.membership, DeviceId(device_id), addresses)
            await hub.succession.announce(answer.membership, addresses)
            await self._restart(MOVING, lambda: forget_hub(self._pc()))

    # ------------------------------------------------------------------ happens by itself

    def offered(self, fleet: InFleet, raw: bytes) -> None:
        """The coordinator wants this PC to be the next one."""
        self._spawn(self._take(fleet, raw))

    def changed(self, fleet: InFleet) -> None:
        """The newest list gives this PC another role than the one it acts in."""
        self._spawn(self._follow(fleet))

    async def _take(self, fleet: InFleet, raw: bytes) -> None:
        async with self._busy:
            if self._current() is not fleet:
                return
            pc = self._pc()
            try:
                bundle = read_bundle(raw)
                await asyncio.to_thread(require_ports, pc)
                actor = fleet.where.info.hub_device
                signed = await asyncio.to_thread(take_over, pc, _as_now(fleet), bundle, actor=actor)
            except FleetError as exc:
                log.warning("the coordinator's office was offered and not taken: %s", exc)
                await fleet.link.send(HandoverRefused(exc.code, exc.message, exc.remedy))
                return
            # again, because an older list may have been written in the meantime
            fleet.keep_list(signed, pc.identity.device_id, ())
            await fleet.link.send(HandedOver(signed, pc.settings().control_port))
            await self._restart(MOVING, lambda: None)

    async def _follow(self, fleet: InFleet) -> None:
        async with self._busy:
            if self._current() is not fleet or fleet.acts_in_its_role:
                return
            log.warning("this PC %s", "coordinates no more" if fleet.hub else "coordinates now")
            pc = self._pc()
            # An authority that is no longer needed is one that can be stolen.
            await self._restart(MOVING, (lambda: forget_hub(pc)) if fleet.hub else (lambda: None))

    def stop(self) -> None:
        """Begin nothing more: the agent ends."""
        for task in self._tasks:
            task.cancel()

    def _spawn(self, coroutine: Awaitable[None]) -> None:
        task = asyncio.ensure_future(coroutine)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("changing the role of this PC failed", exc_info=task.exception())

    def _hub(self) -> Hub:
        fleet = self._current()
        if fleet is None:
            raise NotAMember("This PC belongs to no fleet.")
        if fleet.hub is None:
            raise UserError(
                "This PC is not the coordinator of its fleet.", remedy="Do this on the coordinator."
            )
        return fleet.hub

    def _bundle(self, hub: Hub) -> Bundle:
        pc = self._pc()
        return bundle_of(pc, hub, Authority.open(pc.paths, pc.platform))


def _as_now(fleet: InFleet) -> Enrolment:
    """Its membership with the newest list, not the one that it began with."""
    membership, signed = fleet.trust.membership, fleet.trust.signed
    assert membership is not None
    assert signed is not None
    return dataclasses.replace(
        fleet.enrolment,
        info=fleet.where.info,
        membership=membership,
        signed_membership=signed,
    )
