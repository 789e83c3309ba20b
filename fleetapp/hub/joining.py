"""Lets a PC into the fleet: checks the code, issues the certificate, extends the membership."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from fleetapp.errors import BadRequest, NotFound
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.control import Signed
from fleetapp.fleet.joincode import CodeBook
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.state import Pending, StateFile
from fleetapp.types import DeviceId, FleetId

log = logging.getLogger("fleetapp.hub.joining")

MAX_PENDING = 200


class AuthorityReply(msgspec.Struct, frozen=True):
    """What anybody may fetch before trusting anything."""

    authority: str
    """PEM; its SPKI hash must be the code's."""
    hub_device: str
    fleet: str


class JoinRequest(msgspec.Struct, frozen=True):
    """Sent over a connection that already trusts only the code's authority."""

    protocol: int
    secret: str
    """Hex of the code's 10 secret bytes."""
    csr: str
    name: str


class JoinReply(msgspec.Struct, frozen=True):
    """``leaf`` is empty while the admin has not approved yet."""

    pending: bool
    fleet_name: str
    leaf: str = ""
    membership: Signed | None = None


class Gatekeeper:
    """Redeems codes.

    Args:
        admit: adds (spki, device, name) to the signed membership and returns it.
        standing: the signed membership if this SPKI is an active member, None if it is unknown;
            raises NotAMember if it was revoked.
    """

    def __init__(
        self,
        fleet: FleetId,
        device: DeviceId,
        authority: Authority,
        codes: CodeBook,
        state: StateFile,
        audit: AuditLog,
        admit: Callable[[str, DeviceId, str], Signed],
        standing: Callable[[str], Signed | None],
    ) -> None:
        self._fleet = fleet
        self._device = device
        self._authority = authority
        self._codes = codes
        self._state = state
        self._audit = audit
        self._admit = admit
        self._standing = standing

    def authority_reply(self) -> AuthorityReply:
        """Public knowledge."""
        return AuthorityReply(
            authority=self._authority.certificate_pem, hub_device=self._device, fleet=self._fleet
        )

    def request(self, request: JoinRequest) -> JoinReply:
        """Redeem a code.

        A PC that is a member already (approved meanwhile, or its certificate ran out) gets a new
        certificate for proving its key, which the signing request does; no use is spent.

        Raises:
            BadJoinCode, ExpiredJoinCode, UsedUpJoinCode, RevokedJoinCode: the code's fault.
            BadRequest: the signing request is broken.
            NotAMember: this PC was revoked.
        """
        assert self._state.value is not None
        subject = self._authority.inspect(request.csr)
        membership = self._standing(subject.spki)
        if membership is not None:
            self._audit.write(subject.device_id, "certificate_issued")
            return JoinReply(
                pending=False,
                fleet_name=self._state.value.name,
                leaf=self._authority.issue(request.csr),
                membership=membership,
            )
        try:
            secret = bytes.fromhex(request.secret)
        except ValueError as exc:
            raise BadRequest("The join request's secret is not hexadecimal.") from exc
        name = "".join(c for c in request.name if c.isprintable())[:64] or subject.device_id
        waiting = self._state.value.pending
        for entry in waiting:
            if entry.device_id == subject.device_id:
                self._codes.check(secret)
                return JoinReply(pending=True, fleet_name=self._state.value.name)
        code = self._codes.redeem(secret)
        if code.approve:
            if len(waiting) >= MAX_PENDING:
                raise BadRequest(
                    "Too many PCs wait for approval.", remedy="Ask the admin to look at the list."
                )
            entry = Pending(
                device_id=subject.device_id,
                name=name,
                csr=request.csr,
                code_id=code.code_id,
                asked=time.time(),
            )
            self._state.change(pending=(*waiting, entry))
            self._audit.write(subject.device_id, "join_asked", name=name, code=code.code_id)
            return JoinReply(pending=True, fleet_name=self._state.value.name)
        self._audit.write(subject.device_id, "joined", name=name, code=code.code_id)
        return self._let_in(subject.spki, subject.device_id, name, request.csr)

    def approve(self, device_id: DeviceId) -> None:
        """Admit a waiting PC; it fetches its certificate at its next poll."""
        entry = self._take(device_id)
        subject = self._authority.inspect(entry.csr)
        self._admit(subject.spki, subject.device_id, entry.name)
        self._audit.write("local", "approved", device=device_id)

    def decline(self, device_id: DeviceId) -> None:
        """Refuse a waiting PC."""
        self._take(device_id)
        self._audit.write("local", "declined", device=device_id)

    def _take(self, device_id: DeviceId) -> Pending:
        assert self._state.value is not None
        pending = self._state.value.pending
        for entry in pending:
            if entry.device_id == device_id:
                self._state.change(pending=tuple(p for p in pending if p is not entry))
                return entry
        raise NotFound(f"No PC with the device id {device_id} waits for approval.")

    def _let_in(self, spki: str, device_id: DeviceId, name: str, csr: str) -> JoinReply:
        assert self._state.value is not None
        leaf = self._authority.issue(csr)
        membership = self._admit(spki, device_id, name)
        return JoinReply(
            pending=False,
            fleet_name=self._state.value.name,
            leaf=leaf,
            membership=membership,
        )
