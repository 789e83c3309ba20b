"""Belonging to a fleet: entering, founding, joining and leaving one, one thing at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Literal

from fleetapp.agent.cloned import CLONED, adopt, ask_for_identity
from fleetapp.agent.infleet import InFleet
from fleetapp.agent.joining import APPROVAL, Address, Joined, join, split_address
from fleetapp.agent.office import Office
from fleetapp.agent.pc import PC, STATE, forget_hub
from fleetapp.errors import (
    AlreadyMember,
    BadRequest,
    Cancelled,
    ClonedIdentity,
    FleetError,
    NoHub,
    NotAMember,
    PortTaken,
    StorageError,
    UserError,
)
from fleetapp.fleet import joincode, keys
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.enrolment import FleetInfo
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.membership import add, new, new_member, sign_membership
from fleetapp.hub.admin import HubAdmin
from fleetapp.hub.hub import LEFT, Hub
from fleetapp.hub.state import HubState, StateFile
from fleetapp.platform.units import counted
from fleetapp.types import JoinCodeView

log = logging.getLogger("fleetapp.agent")

FIND_HUB_DEADLINE = 15.0
JOIN_DEADLINE = 600.0
GREET_DEADLINE = 5.0
"""For the coordinator's greeting after joining; and before leaving, which it should hear of (s)."""
PORT_PATIENCE = 3.0
"""Between two attempts to open a port that another program has (s)."""
CODE_HOURS = 72.0
CODE_USES = 100


class Belonging:
    """The membership of one state folder.

    Args:
        pc: this PC; a copy of another one's folder becomes a PC of its own.
        changed: called after every change, for whoever shows the status.
        entered: called with the membership whenever one begins.
    """

    def __init__(
        self, pc: PC, changed: Callable[[], None], entered: Callable[[InFleet], None]
    ) -> None:
        self.pc = pc
        self._changed = changed
        self._entered = entered
        self.fleet: InFleet | None = None
        self.trouble: FleetError | None = None
        """Why this PC cannot act as the member that it is; leaving clears it."""
        self.restarting = False
        self._entering: InFleet | None = None
        self.waiting_for = ""
        """What an attempt to join waits for, in words."""
        self.turned_away = ""
        """Why the fleet did not take this PC in when it last asked, in words."""
        self.busy = asyncio.Lock()
        self._becoming: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None
        self._fresh: Identity | None = None
        self._joining: asyncio.Task[Joined] | None = None
        self._called_off: asyncio.Task[Joined] | None = None
        self.office = Office(
            pc=lambda: self.pc,
            current=lambda: self.fleet,
            busy=self.busy,
            restart=self.restart,
        )

    @property
    def known(self) -> InFleet | None:
        """The membership, also while it cannot be entered or is being entered again; for telling
        which fleet and which role that is.
        """
        return self.fleet or self._entering

    async def stop(self, reason: str) -> None:
        """End the membership's work; it is entered again at the next start."""
        for task in (self._becoming, self._retry):
            if task is not None:
                task.cancel()
        self.office.stop()
        if self.fleet is not None:
            await self.fleet.stop(reason)
            self.fleet = None

    @property
    def joining_for(self) -> Literal["", "looking", "approval"]:
        """What an attempt to join is at."""
        if self._joining is None:
            return ""
        return "approval" if self.waiting_for.startswith(APPROVAL) else "looking"

    async def _enter(self, *, may_be_copy: bool = True) -> None:
        try:
            enrolment = await asyncio.to_thread(self.pc.fleet_store.load)
        except StorageError as exc:
            # The agent must run all the same, or nobody could tell it to leave.
            log.error("%s", exc)  # noqa: TRY400 - the cause is in the sentence
            self.trouble = exc
            return
        if enrolment is None:
            return
        self.turned_away = ""
        fleet = InFleet(self.pc, enrolment, self._changed)
        fleet.on_office = lambda bundle: self.office.offered(fleet, bundle)
        fleet.link.on_refusal = lambda why: self._refused(fleet, why)
        fleet.on_role = lambda: self.office.changed(fleet)
        self._entering = fleet
        await fleet.start(may_be_copy=may_be_copy)
        self.fleet, self._entering = fleet, None
        self._entered(fleet)
        self._changed()

    def _refused(self, fleet: InFleet, why: FleetError) -> None:
        if isinstance(why, ClonedIdentity) and (self._becoming is None or self._becoming.done()):
            self._becoming = asyncio.create_task(self._become_another(fleet))

    async def _become_another(self, fleet: InFleet) -> None:
        """This PC's state is a copy of another one's (trap T18)."""
        async with self.busy:
            if self.fleet is not fleet:
                return
            # the same at each attempt: it may have been admitted, and the answer got lost
            fresh = self._fresh = self._fresh or Identity.fresh(self.pc.paths)
            try:
                reply = await ask_for_identity(fleet, fresh, await fleet.addresses())
            except FleetError as exc:
                log.warning("no identity of its own for this copy yet: %s", exc)
                return  # turned away again, it asks again

            def work() -> None:
                self.pc = adopt(self.pc, fleet, fresh, reply)
                self._fresh = None

            await self.restart(CLONED, work)

    async def restart(self, reason: str, between: Callable[[], object]) -> None:
        """End the membership, do blocking work, and enter again: in another role, say.

        Raises:
            FleetError: the work's; it is as before. Or the entering's; the status says so too.
        """
        fleet, self.fleet = self.fleet, None
        self._entering = fleet
        self.restarting = fleet is not None
        self._changed()
        try:
            if fleet is not None:
                await fleet.stop(reason)
            try:
                await asyncio.to_thread(between)
            finally:
                await self.enter(may_be_copy=False)
        finally:
            self.restarting = False

    async def enter(self, *, may_be_copy: bool) -> None:
        """Act as the member that this PC is by what is on disk, if it is one.

        Args:
            may_be_copy: whether the state folder may have been copied since the agent last ran.

        Raises:
            FleetError: it cannot; ``trouble`` says why from now on. If a port is taken it is tried
                again by itself.
        """
        try:
            await self._enter(may_be_copy=may_be_copy)
        except FleetError as exc:
            self.trouble = exc
            self._changed()
            if isinstance(exc, PortTaken):
                self._retry = asyncio.create_task(self._enter_when_free(may_be_copy))
            raise

    async def _enter_when_free(self, may_be_copy: bool) -> None:
        """Try again until the program that has the port is gone, or another port is set."""
        while isinstance(self.trouble, PortTaken):
            await asyncio.sleep(PORT_PATIENCE)
            async with self.busy:
                try:
                    await self._enter(may_be_copy=may_be_copy)
                    self.trouble = None
                except FleetError as exc:
                    self.trouble = exc
            self._changed()

    async def create(self, name: str) -> JoinCodeView:
        """Make this PC the coordinator of a new fleet.

        Raises:
            AlreadyMember: it belongs to one.
        """
        name = name.strip()
        if not name or len(name) > 64 or not name.isprintable():
            raise BadRequest("A fleet's name has 1 to 64 printable characters.")
        async with self.busy:
            self._refuse_if_member()
            try:
                await asyncio.to_thread(self._make_fleet, name)
                await self._enter(may_be_copy=False)
            except BaseException:
                # A port is taken, say: what cannot be run is not kept.
                self._entering = None
                await asyncio.to_thread(self.pc.fleet_store.remove)
                await asyncio.to_thread(forget_hub, self.pc)
                raise
            self.coordinating().audit.write("local", "fleet_created", name=name)
            return await HubAdmin(self.coordinating(), "local").make_code(
                CODE_HOURS, CODE_USES, approve=False
            )

    def _make_fleet(self, name: str) -> None:
        paths, identity = self.pc.paths, self.pc.identity
        forget_hub(self.pc)  # what an earlier fleet left behind
        authority = Authority.create(paths, self.pc.platform)
        me = new_member(
            identity.public_key, self.pc.name(), time.time(), ("coordinator", "admin", "member")
        )
        signed = sign_membership(add(new(authority.fleet_id, name), me), authority)
        StateFile(paths.hub / STATE, self.pc.platform).save(
            HubState(fleet_id=authority.fleet_id, name=name, created=time.time())
        )
        self.pc.fleet_store.save(
            FleetInfo(authority.fleet_id, name, identity.device_id),
            authority.issue(identity.csr()),
            authority.certificate_pem,
            signed,
        )

    async def join(self, code: str, hub_address: str = "") -> None:
        """Join by code; finds the coordinator by mDNS unless an address is given.

        Raises:
            AlreadyMember, BadJoinCode and its kinds, NoHub, WrongFleet.
        """
        parsed = joincode.decode(code)
        async with self.busy:
            self._refuse_if_member()
            self.turned_away = ""
            self._joining = asyncio.create_task(self._ask_to_join(parsed, hub_address))
            try:
                joined = await self._joining
            except asyncio.CancelledError as exc:
                if self._called_off is self._joining:
                    raise Cancelled("Joining was called off.") from exc
                self._joining.cancel()
                raise
            except NotAMember as exc:
                self.turned_away = str(exc)
                raise
            finally:
                self._joining = self._called_off = None
                self._wait_note("")
            await asyncio.to_thread(
                self.pc.fleet_store.save,
                joined.info,
                joined.leaf,
                joined.authority,
                joined.membership,
            )
            await self._enter()
            if self.fleet is not None:
                await self.fleet.wait_connected(GREET_DEADLINE)

    async def _ask_to_join(self, code: joincode.JoinCode, hub_address: str) -> Joined:
        try:
            addresses = await self._find(code, hub_address)
            return await join(
                self.pc.identity, code, addresses, self.pc.name(), self._wait_note, JOIN_DEADLINE
            )
        except TimeoutError as exc:
            raise NoHub(
                "Joining took too long.", remedy="Try again, or ask the admin to approve."
            ) from exc

    async def stop_joining(self) -> None:
        """Call an attempt to join off, if there is one. An admin's list may show this PC on."""
        if self._joining is not None:
            self._called_off = self._joining
            self._joining.cancel()

    async def _find(self, code: joincode.JoinCode, hub_address: str) -> list[Address]:
        configured = hub_address or self.pc.settings().hub_address
        if configured:
            return [split_address(configured)]
        self._wait_note("Looking for the fleet on this network.")

        wanted = keys.fleet_id_of(code.spki_prefix.hex())

        def hubs() -> list[Address]:
            return [
                (address, peer.port)
                for peer in self.pc.discovery.found()
                if peer.role == "coordinator" and peer.in_fleet(wanted)
                for address in peer.addresses
            ]

        await self.pc.discovery.wait_for(lambda _: bool(hubs()), FIND_HUB_DEADLINE)
        found = hubs()
        if not found:
            others = any(p.role == "coordinator" for p in self.pc.discovery.found())
            why = " ".join(self.pc.discovery.diagnose())
            raise NoHub(
                "No coordinator of that fleet was found on this network"
                + (", only ones of other fleets. " if others else ". ")
                + why,
                remedy="Give its address: fleetapp fleet join CODE --hub HOST:PORT.",
            )
        return found

    async def leave(self) -> None:
        """Leave the fleet; a coordinator can only when nobody else is in it.

        Raises:
            NotAMember: this PC is in none.
            UserError: it coordinates others.
        """
        async with self.busy:
            if isinstance(self.trouble, PortTaken):
                raise self.trouble
            if self.trouble is not None:
                await asyncio.to_thread(self.pc.fleet_store.remove)
                self.trouble = self._entering = None
                self._changed()
                return
            fleet = self.require()
            if fleet.hub is not None:
                membership = fleet.trust.membership
                members = membership.members.values() if membership else ()
                others = [
                    m
                    for m in members
                    if m.state == "active" and m.device_id != self.pc.identity.device_id
                ]
                if others:
                    raise UserError(
                        f"This PC coordinates {counted(len(others), 'other PC')}.",
                        remedy="Let them leave first (fleetapp fleet leave on each).",
                    )
            known = fleet.link.removed  # the coordinator has nothing to learn
            if not known and not await fleet.wait_connected(GREET_DEADLINE):
                log.warning("left a fleet whose coordinator cannot hear it; it lists this PC on")
            await fleet.stop(LEFT)
            self.fleet = None
            await asyncio.to_thread(self.pc.fleet_store.remove)
            if fleet.hub is not None:
                await asyncio.to_thread(forget_hub, self.pc)
        self._changed()

    def _wait_note(self, sentence: str) -> None:
        self.waiting_for = sentence
        self._changed()

    def _refuse_if_member(self) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self.fleet is not None:
            raise AlreadyMember(
                f"This PC already belongs to the fleet '{self.fleet.name}'.",
                remedy="Leave it first with 'fleetapp fleet leave'.",
            )

    def require(self) -> InFleet:
        """The membership.

        Raises:
            NotAMember: there is none. Or whatever is in its way.
        """
        if self.trouble is not None:
            raise self.trouble
        if self.fleet is None:
            raise NotAMember("This PC belongs to no fleet.")
        return self.fleet

    def coordinating(self) -> Hub:
        """The hub of this PC.

        Raises:
            UserError: another PC coordinates. NotAMember: it belongs to no fleet.
        """
        hub = self.require().hub
        if hub is None:
            raise UserError(
                "This PC is not the coordinator of its fleet.",
                remedy="Do this on the coordinator.",
            )
        return hub
