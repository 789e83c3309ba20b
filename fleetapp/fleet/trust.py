"""The newest membership list this PC knows, asked on every connection."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from fleetapp.errors import BadSignature, Malformed, NotAMember
from fleetapp.fleet import keys
from fleetapp.fleet.control import MembershipDelta, Signed
from fleetapp.fleet.membership import (
    Member,
    Membership,
    advance,
    fingerprint,
    verify_membership,
)
from fleetapp.types import Role

_log = logging.getLogger(__name__)

Listener = Callable[[Membership], None]


class TrustList:
    """Thread-safe; only ever moves to a higher epoch.

    Args:
        authority_public: SubjectPublicKeyInfo (DER) of the fleet's authority.
        initial: the list from disk, if there is one. Raises as :meth:`update` does.
    """

    def __init__(self, authority_public: bytes, initial: Signed | None = None) -> None:
        self._authority = authority_public
        self.fleet_id = keys.fleet_id_of(keys.spki_hash(authority_public))
        self._lock = threading.Lock()
        self._membership: Membership | None = None
        self._signed: Signed | None = None
        self._by_spki: dict[str, Member] = {}
        self._listeners: list[Listener] = []
        if initial is not None:
            self.update(initial)

    @property
    def signed(self) -> Signed | None:
        """The newest list as it was signed; ``None`` before the first."""
        with self._lock:
            return self._signed

    @property
    def membership(self) -> Membership | None:
        """The newest list; ``None`` before the first."""
        with self._lock:
            return self._membership

    @property
    def epoch(self) -> int:
        """Of the newest list; -1 before the first."""
        with self._lock:
            return -1 if self._membership is None else self._membership.epoch

    def update(self, signed: Signed) -> bool:
        """Take over a list if it is newer; ``False`` if it is the present one or an older one.

        Listeners run in the caller's thread, after the new list counts.

        Raises:
            WrongFleet, BadSignature, Malformed: the present list stays. Two different lists of
                one epoch are a BadSignature too: only a copied authority makes such a pair.
        """
        if signed == self.signed:
            return False
        membership = verify_membership(signed, self._authority)
        with self._lock:
            present = self._membership
            if present is not None and membership.epoch <= present.epoch:
                if membership.epoch == present.epoch and membership != present:
                    raise BadSignature(
                        f"There are two different membership lists of epoch {present.epoch}.",
                        remedy="Look for a second PC that runs a copy of this fleet's hub.",
                    )
                if membership.epoch < present.epoch:
                    _log.warning(
                        "older membership refused",
                        extra={"epoch": membership.epoch, "present": present.epoch},
                    )
                return False
            self._membership, self._signed = membership, signed
            self._by_spki = {m.spki: m for m in membership.members.values()}
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(membership)
        return True

    @property
    def authority_spki(self) -> str:
        """Hex SPKI hash of the fleet's authority."""
        return keys.spki_hash(self._authority)

    def open(self, signed: Signed) -> Membership:
        """A list of this fleet, newer or not; raises as :meth:`update` does for one that is not."""
        return verify_membership(signed, self._authority)

    def is_newer(self, signed: Signed) -> bool:
        """Whether a list is genuine and :meth:`update` would take it over; raises as it does."""
        return self.open(signed).epoch > self.epoch

    @property
    def fingerprint(self) -> str:
        """Names the newest list; empty before the first."""
        signed = self.signed
        return "" if signed is None else fingerprint(signed)

    def advanced(self, delta: MembershipDelta) -> Signed:
        """The whole list that a change of the present one leads to, for :meth:`update` to verify.

        Raises:
            Malformed: the change starts from another list.
        """
        membership = self.membership
        if membership is None:
            raise Malformed("A change of the membership list came before any list.")
        return advance(membership, delta)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every new list (to cut revoked peers); answers how to stop."""
        with self._lock:
            self._listeners.append(listener)

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop

    def find(self, spki: str | None) -> Member | None:
        """The member with this key, revoked or not."""
        with self._lock:
            return self._by_spki.get(spki or "")

    def coordinators(self) -> tuple[Member, ...]:
        """Active members that run the hub."""
        with self._lock:
            members = tuple(self._by_spki.values())
        return tuple(m for m in members if m.state == "active" and "coordinator" in m.roles)

    def verify(self, signed: Signed, *roles: Role) -> Member:
        """The active member (with one of ``roles``, if any) that signed exactly these bytes.

        Raises:
            NotAMember: the signer is none, or has no such role.
            BadSignature: it did not sign these bytes.
        """
        member = self.require(signed.signer, *roles)
        keys.verify(signed.payload, signed.signature, member.spki, member.public_key)
        return member

    def allows(self, spki: str | None) -> bool:
        """Whether the key is an active member's."""
        member = self.find(spki)
        return member is not None and member.state == "active"

    def require(self, spki: str | None, *roles: Role) -> Member:
        """The active member with this key (and, if any are given, one of these roles).

        Raises:
            NotAMember: unknown, revoked, without such a role, or no key was shown (``None``).
        """
        if not spki:
            raise NotAMember("The other side showed no certificate of this fleet.")
        with self._lock:
            member = self._by_spki.get(spki)
        if member is None:
            raise NotAMember("The other side's key is not in the fleet's membership list.")
        if member.state != "active":
            raise NotAMember(
                f"The device {member.device_id} was removed from the fleet.",
                remedy="Ask the admin to let it in again.",
            )
        if roles and not set(roles) & set(member.roles):
            raise NotAMember(
                f"{member.name or member.device_id} is not {' or '.join(roles)} in this fleet.",
                remedy="Ask the admin.",
            )
        return member
