"""Who belongs to a fleet: a value, the pure functions that change it, and its signature.

Every change raises the epoch by one; a function that changes nothing answers the same value. The
authority signs the exact bytes, and everyone refuses a list that is not newer than their own, so
nobody can bring back a revoked member by replaying an old list.
"""

from __future__ import annotations

import hashlib
from typing import Literal, Protocol

import msgspec

from fleetapp.errors import BadRequest, BadSignature, Malformed, NotAMember, NotFound, WrongFleet
from fleetapp.fleet import keys
from fleetapp.fleet.control import BROKEN_JSON, MembershipDelta, Signed
from fleetapp.types import DeviceId, FleetId, Role

MAX_NAME = 64
TERM = 1 << 40
"""Epochs are counted in terms: each change of the coordinator begins one, above all that the
coordinator before could have reached by ordinary changes."""

_ROLE_ORDER: tuple[Role, ...] = ("coordinator", "admin", "member")


class Member(msgspec.Struct, frozen=True):
    """One device. A revoked one stays listed, so that an old leaf of it is known to be void."""

    spki: str
    """Hex SHA-256 of ``public_key``."""
    public_key: bytes
    """SubjectPublicKeyInfo, DER: verifies what this member signs, such as manifests."""
    name: str
    roles: tuple[Role, ...]
    state: Literal["active", "revoked"]
    joined: float
    """Wall-clock seconds since 1970, for people to read."""

    @property
    def device_id(self) -> DeviceId:
        """The id that belongs to its key."""
        return keys.device_id_of(self.spki)

    @property
    def role(self) -> Role:
        """The one that says most: coordinator before admin before member."""
        return next((r for r in _ROLE_ORDER if r in self.roles), "member")


class Membership(msgspec.Struct, frozen=True, tag="fleetapp.membership.1", tag_field="kind"):
    """The signed list. The tag keeps its signature from being taken for another document's."""

    fleet_id: FleetId
    fleet_name: str
    epoch: int
    members: dict[str, Member]
    """By device id."""


class Change(msgspec.Struct, frozen=True):
    """What a later list says differently."""

    fleet_name: str
    epoch: int
    members: dict[str, Member]
    """New and changed ones, by device id."""
    gone: tuple[str, ...]


class Signer(Protocol):
    """An :class:`~fleetapp.fleet.authority.Authority` is one."""

    @property
    def spki(self) -> str: ...

    def sign(self, payload: bytes) -> bytes: ...


def new(fleet_id: FleetId, fleet_name: str) -> Membership:
    """An empty list at epoch 0."""
    return Membership(fleet_id, clean_name(fleet_name), 0, {})


def new_member(
    public_key: bytes, name: str, joined: float, roles: tuple[Role, ...] = ("member",)
) -> Member:
    """An active member with the key ``public_key`` (DER).

    Raises:
        Malformed: not a P-256 key.
    """
    keys.load_public(public_key)
    return Member(
        keys.spki_hash(public_key), public_key, clean_name(name), _sorted(roles), "active", joined
    )


def clean_name(name: str) -> str:
    """One printable line of at most 64 characters; empty becomes nothing, never an error."""
    printable = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(printable.split())[:MAX_NAME].strip()


def _sorted(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    return tuple(r for r in _ROLE_ORDER if r in roles) or ("member",)


def _with(membership: Membership, member: Member) -> Membership:
    if membership.members.get(member.device_id) == member:
        return membership
    return msgspec.structs.replace(
        membership,
        epoch=membership.epoch + 1,
        members={**membership.members, member.device_id: member},
    )


def _member(membership: Membership, device: str) -> Member:
    try:
        return membership.members[device]
    except KeyError:
        raise NotFound(f"The fleet has no member {device}.") from None


def add(membership: Membership, member: Member) -> Membership:
    """Take ``member`` in. A device that joins again keeps its roles and its joining date (T17).

    Raises:
        NotAMember: it was revoked; :func:`reinstate` is an admin's decision.
    """
    known = membership.members.get(member.device_id)
    if known is None:
        return _with(membership, member)
    if known.state == "revoked":
        raise NotAMember(
            f"The device {member.device_id} was removed from the fleet.",
            remedy="Ask the admin to let it in again.",
        )
    return _with(membership, msgspec.structs.replace(known, name=member.name or known.name))


def revoke(membership: Membership, device: str) -> Membership:
    """Shut ``device`` out, for good until reinstated. Raises NotFound."""
    member = _member(membership, device)
    return _with(membership, msgspec.structs.replace(member, state="revoked", roles=("member",)))


def remove(membership: Membership, device: str) -> Membership:
    """Forget a device that left by itself; it may join again with a code. Raises NotFound."""
    _member(membership, device)
    return msgspec.structs.replace(
        membership,
        epoch=membership.epoch + 1,
        members={d: m for d, m in membership.members.items() if d != device},
    )


def reinstate(membership: Membership, device: str) -> Membership:
    """Let a revoked device in again, as a plain member. Raises NotFound."""
    member = _member(membership, device)
    return _with(membership, msgspec.structs.replace(member, state="active"))


def set_roles(membership: Membership, device: str, roles: tuple[Role, ...]) -> Membership:
    """Give an active member these roles and no others. Raises NotFound, NotAMember."""
    member = _member(membership, device)
    if member.state != "active":
        raise NotAMember(f"The device {device} was removed from the fleet.")
    return _with(membership, msgspec.structs.replace(member, roles=_sorted(roles)))


def next_term(epoch: int, draw: int) -> int:
    """An epoch in the term after that of ``epoch``.

    Args:
        epoch: of the newest list that is known.
        draw: a random number from 0 to ``TERM // 2``. Two PCs that take the office over at the same
            time, from two copies of one file, thus sign lists of different epochs, and the higher
            one wins everywhere.
    """
    return (epoch // TERM + 1) * TERM + draw


def begins_a_term(before: Membership, epoch: int) -> bool:
    """Whether a list of ``epoch`` comes from another coordinator than ``before``."""
    return epoch // TERM > before.epoch // TERM


def hand_over(membership: Membership, to: Member, epoch: int, *, revoke_old: bool) -> Membership:
    """Make ``to`` the only coordinator, in a list of a later ``epoch``.

    Who has coordinated before stays as a plain member, or is shut out with ``revoke_old``.

    Raises:
        BadRequest: the epoch is not later.
    """
    if epoch <= membership.epoch:
        raise BadRequest(f"Epoch {epoch} does not follow {membership.epoch}.")
    new_office = msgspec.structs.replace(
        membership.members.get(to.device_id, to), roles=_ROLE_ORDER, state="active"
    )
    members = {
        device: msgspec.structs.replace(
            member, roles=("member",), state="revoked" if revoke_old else member.state
        )
        if "coordinator" in member.roles
        else member
        for device, member in membership.members.items()
    }
    return msgspec.structs.replace(
        membership, epoch=epoch, members={**members, to.device_id: new_office}
    )


def catch_up(membership: Membership, earlier: Membership) -> Membership:
    """Take over from a list of an earlier term what a recovery file was too old to know.

    Who was shut out there is shut out, who was no admin there is none, and who is not listed yet is
    taken in as it was there, but coordinates nothing. Nothing is ever given to who is listed.
    """
    members = dict(membership.members)
    for device, there in earlier.members.items():
        here = members.get(device)
        if here is None:
            roles = _sorted(tuple(r for r in there.roles if r != "coordinator"))
            members[device] = msgspec.structs.replace(there, roles=roles)
        elif "coordinator" not in here.roles:
            if there.state == "revoked":
                members[device] = msgspec.structs.replace(here, state="revoked", roles=("member",))
            elif not {"admin", "coordinator"} & set(there.roles):
                members[device] = msgspec.structs.replace(here, roles=("member",))
    if members == membership.members:
        return membership
    return msgspec.structs.replace(membership, epoch=membership.epoch + 1, members=members)


def rename(membership: Membership, device: str, name: str) -> Membership:
    """Show ``device`` under another name. Raises NotFound."""
    member = _member(membership, device)
    return _with(membership, msgspec.structs.replace(member, name=clean_name(name)))


def rename_fleet(membership: Membership, name: str) -> Membership:
    """The same fleet under another name, which members take from the list."""
    name = clean_name(name)
    if name == membership.fleet_name:
        return membership
    return msgspec.structs.replace(membership, epoch=membership.epoch + 1, fleet_name=name)


def canonical(membership: Membership) -> bytes:
    """The bytes that are signed: JSON, keys sorted."""
    return msgspec.json.encode(membership, order="deterministic")


def sign_membership(membership: Membership, authority: Signer) -> Signed:
    """The list with its authority's signature."""
    payload = canonical(membership)
    return Signed(payload, authority.sign(payload), authority.spki)


def verify_membership(signed: Signed, authority_public: bytes) -> Membership:
    """The list, if the authority with that public key (DER) signed exactly these bytes.

    Raises:
        WrongFleet: signed by, or made for, another fleet.
        BadSignature: changed after signing, or not signed by that authority.
        Malformed: signed, but no membership list.
    """
    spki = keys.spki_hash(authority_public)
    if signed.signer != spki:
        raise WrongFleet("A membership list comes from another fleet's authority.")
    try:
        keys.verify(signed.payload, signed.signature, spki, authority_public)
    except BadSignature as exc:
        raise BadSignature("A membership list was changed after it was signed.") from exc
    try:
        membership = msgspec.json.decode(signed.payload, type=Membership)
    except BROKEN_JSON as exc:
        raise Malformed("A signed document is not a membership list.") from exc
    if membership.fleet_id != keys.fleet_id_of(spki):
        raise WrongFleet("A membership list names another fleet than its authority's.")
    for device, member in membership.members.items():
        if keys.spki_hash(member.public_key) != member.spki or member.device_id != device:
            raise Malformed(f"The membership list contradicts itself about {device}.")
    return membership


def fingerprint(signed: Signed) -> str:
    """A short name for exactly these signed bytes."""
    return hashlib.sha256(signed.payload).hexdigest()


def difference(old: Membership, new: Membership, signed: Signed) -> MembershipDelta:
    """How to get from ``old`` to ``new``, with the signature that ``signed`` has over ``new``."""
    change = Change(
        new.fleet_name,
        new.epoch,
        {d: m for d, m in new.members.items() if old.members.get(d) != m},
        tuple(d for d in old.members if d not in new.members),
    )
    return MembershipDelta(old.epoch, msgspec.json.encode(change), signed.signature, signed.signer)


def advance(old: Membership, delta: MembershipDelta) -> Signed:
    """The whole list that a difference leads to; its signature has yet to be verified.

    Raises:
        Malformed: it does not start from ``old``, or cannot be read.
    """
    if delta.base != old.epoch:
        raise Malformed(
            f"A change of the membership list starts at epoch {delta.base}, not {old.epoch}."
        )
    try:
        change = msgspec.json.decode(delta.change, type=Change)
    except BROKEN_JSON as exc:
        raise Malformed("A change of the membership list cannot be read.") from exc
    gone = set(change.gone)
    new = msgspec.structs.replace(
        old,
        fleet_name=change.fleet_name,
        epoch=change.epoch,
        members={d: m for d, m in old.members.items() if d not in gone} | change.members,
    )
    return Signed(canonical(new), delta.signature, delta.signer)
