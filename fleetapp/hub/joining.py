"""Lets a PC into the fleet: checks the code, issues the certificate, extends the membership."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec

from fleetapp.errors import BadRequest, Malformed, NotAMember, NotFound
from fleetapp.fleet import certificates
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import (
    BROKEN_JSON,
    AuthorityReply,
    JoinReply,
    JoinRequest,
    Reissue,
    ReissueRequest,
    Signed,
)
from fleetapp.fleet.membership import Member, clean_name, new_member
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.state import Declined, Pending, StateFile
from fleetapp.types import DeviceId

log = logging.getLogger("fleetapp.hub.joining")

MAX_PENDING = 200
MAX_DECLINED = 1000
"""Refusals that are remembered; older ones are forgotten first."""


class Gatekeeper:
    """Redeems codes.

    Args:
        device: the coordinator's own id, so that a joining PC knows whose name to expect.
        admit: adds a member to the signed membership and returns it.
        standing: the signed membership if this SPKI is an active member, None if it is unknown;
            raises NotAMember if it was revoked.
        listed: the signed membership if this SPKI is in it, active or revoked; raises NotAMember.
        signer: the active member that has signed a document; raises NotAMember, BadSignature.
        clones: knows which PCs are copies.
    """

    def __init__(
        self,
        device: DeviceId,
        authority: Authority,
        codes: CodeBook,
        state: StateFile,
        audit: AuditLog,
        admit: Callable[[Member], Signed],
        standing: Callable[[str], Signed | None],
        listed: Callable[[str], Signed],
        signer: Callable[[Signed], Member],
        clones: CloneWatch,
    ) -> None:
        self._device = device
        self._authority = authority
        self._codes = codes
        self._state = state
        self._audit = audit
        self._admit = admit
        self._standing = standing
        self._listed = listed
        self._signer = signer
        self._clones = clones

    def authority_reply(self) -> AuthorityReply:
        """Public knowledge."""
        return AuthorityReply(
            authority=self._authority.certificate_pem.decode(), hub_device=self._device
        )

    def request(self, request: JoinRequest, source: str) -> JoinReply:
        """Redeem a code.

        A PC that is a member already (approved meanwhile, or its certificate ran out) gets a new
        certificate for proving its key, which the signing request does; no use is spent. One that
        waits for the admin's yes goes on waiting, even if its code has run out meanwhile.

        Args:
            request: as it came.
            source: address it came from, to slow down guessing.

        Raises:
            BadJoinCode, ExpiredJoinCode, UsedUpJoinCode, RevokedJoinCode, TooManyAttempts.
            Malformed, BadRequest: the signing request or the secret is broken.
            NotAMember: this PC was revoked, or the admin declined it; or it came without a code
                and is no member.
        """
        state = self._state.value
        assert state is not None
        leaf = self._authority.issue(request.csr.encode())
        certificate = certificates.load_pem(leaf)
        device = certificates.device_of(certificate)
        membership = self._standing(certificates.spki(certificate))
        if membership is not None:
            self._audit.write(device, "certificate_issued")
            return JoinReply(False, state.name, leaf.decode(), membership)
        if any(p.device_id == device for p in state.pending):
            return JoinReply(True, state.name)
        if not request.secret:
            raise NotAMember(
                "This PC is no member of the fleet.",
                remedy="Leave it (fleetapp fleet leave) and join with a code.",
            )
        try:
            secret = bytes.fromhex(request.secret)
        except ValueError as exc:
            raise BadRequest("The join request's secret is not hexadecimal.") from exc
        redeemed = self._codes.redeem(secret, device, source)
        if Declined(device, redeemed.code_id) in state.declined:
            raise NotAMember(
                "The admin declined to let this PC into the fleet.",
                remedy="Ask the admin for another join code.",
            )
        name = clean_name(request.name) or f"PC-{device[:6]}"
        if redeemed.approve:
            self._queue(Pending(device, name, request.csr, redeemed.code_id, time.time()))
            return JoinReply(True, state.name)
        public = certificates.public_key_of(certificate)
        membership = self._admit(new_member(public, name, time.time()))
        self._audit.write(device, "joined", name=name, code=redeemed.code_id)
        return JoinReply(False, state.name, leaf.decode(), membership)

    def newest_list(self, request: JoinRequest) -> Signed:
        """The newest list for a device that proves a key that is in it, whatever its state.

        One that was revoked may know so, and a coordinator that was replaced must.

        Raises:
            Malformed: the signing request is broken.
            NotAMember: the list has no such device.
        """
        leaf = certificates.load_pem(self._authority.issue(request.csr.encode()))
        return self._listed(certificates.spki(leaf))

    def reissue(self, request: ReissueRequest) -> JoinReply:
        """Make a copy of a member a member of its own, with no role but that.

        Raises:
            NotAMember, BadSignature: no active member has signed that.
            BadRequest, Malformed: it makes no sense, or this copy has an identity already.
        """
        assert self._state.value is not None
        old = self._signer(request.wish)
        try:
            wish = msgspec.json.decode(request.wish.payload, type=Reissue)
        except BROKEN_JSON as exc:
            raise Malformed("The wish for another identity cannot be read.") from exc
        if (wish.device_id, wish.fleet_id) != (old.device_id, self._authority.fleet_id):
            raise BadRequest("The wish for another identity is about somebody else.")
        leaf = self._authority.issue(wish.csr.encode())
        certificate = certificates.load_pem(leaf)
        device = certificates.device_of(certificate)
        self._clones.redeem(old.device_id, wish.instance, device)
        name = clean_name(request.name) or f"PC-{device[:6]}"
        known = self._standing(certificates.spki(certificate))
        if known is None:
            public = certificates.public_key_of(certificate)
            known = self._admit(new_member(public, name, time.time()))
            self._clones.reissued(old.device_id, device, name)
        return JoinReply(False, self._state.value.name, leaf.decode(), known)

    def _queue(self, entry: Pending) -> None:
        assert self._state.value is not None
        waiting = self._state.value.pending
        if len(waiting) >= MAX_PENDING:
            raise BadRequest(
                "Too many PCs wait for approval.", remedy="Ask the admin to look at the list."
            )
        self._state.change(pending=(*waiting, entry))
        self._audit.write(entry.device_id, "join_asked", name=entry.name, code=entry.code_id)

    def approve(self, device_id: str, actor: str = "local") -> None:
        """Admit a waiting PC; it fetches its certificate when it asks again.

        Raises:
            NotFound: nobody with that id waits.
        """
        entry = self._take(device_id)
        leaf = certificates.load_pem(self._authority.issue(entry.csr.encode()))
        self._admit(new_member(certificates.public_key_of(leaf), entry.name, time.time()))
        self._audit.write(actor, "approved", device=device_id, name=entry.name)

    def decline(self, device_id: str, actor: str = "local") -> None:
        """Refuse a waiting PC, which goes on asking with the same code. Raises NotFound."""
        entry = self._take(device_id)
        assert self._state.value is not None
        refused = (*self._state.value.declined, Declined(entry.device_id, entry.code_id))
        self._state.change(declined=refused[-MAX_DECLINED:])
        self._audit.write(actor, "declined", device=device_id, name=entry.name)

    def _take(self, device_id: str) -> Pending:
        assert self._state.value is not None
        pending = self._state.value.pending
        for entry in pending:
            if entry.device_id == device_id:
                self._state.change(pending=tuple(p for p in pending if p is not entry))
                return entry
        raise NotFound(f"No PC with the device id {device_id} waits for approval.")
