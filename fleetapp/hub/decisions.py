"""What an admin decides about one PC: let it in or not, shut it out, what it may do."""

from __future__ import annotations

from collections.abc import Callable

from fleetapp.errors import BadRequest
from fleetapp.fleet import membership
from fleetapp.hub.hub import Hub
from fleetapp.types import Decision, GivenRole, Role

_Reducer = Callable[[membership.Membership, str], membership.Membership]

_PRINTABLE = "Shorten it, and leave out line breaks, tabs, double spaces and control characters."


def decide(hub: Hub, decision: Decision, device_id: str, actor: str = "local") -> None:
    """Carry out the admin's word; it is on disk and in the audit log when this returns.

    A word that changes nothing (revoking a revoked PC) is no error and is not written down.

    Args:
        hub: the fleet's.
        decision: the word.
        device_id: about whom.
        actor: whose word it is, for the audit log.

    Raises:
        NotFound: nobody with that id waits (approve, decline), or is listed (all others).
        NotAMember, UserError: this hub does not coordinate any more, or is about to hand over.
        BadRequest: the coordinator would be shut out.
        StorageError: it could not be kept; the fleet is as before.
    """
    hub.succession.require_office()  # before anything is taken off a list
    if decision == "approve":
        hub.gate.approve(device_id, actor)
    elif decision == "decline":
        hub.gate.decline(device_id, actor)
        hub.changed()
    elif decision in ("drain", "undrain"):
        if hub.drain(device_id, on=decision == "drain"):
            name = hub.membership.members[device_id].name
            hub.audit.write(actor, f"{decision}ed", device=device_id, name=name)
    elif decision == "evict":
        _evict(hub, device_id, actor)
    elif decision == "revoke":
        _revoke(hub, device_id, actor)
    else:
        _reduce(hub, device_id, membership.reinstate, actor, "reinstated")


def _evict(hub: Hub, device_id: str, actor: str) -> None:
    if device_id == hub.identity.device_id:
        raise BadRequest(
            "The coordinator cannot be put out of its own fleet.",
            remedy="To end the fleet, let the others leave and then 'fleetapp fleet leave' here.",
        )
    member = hub.membership.members.get(device_id)
    if member is not None and member.state == "revoked":
        raise BadRequest(
            f"{member.name} is shut out already; putting it out would let it join again.",
            remedy="To allow that, reinstate it first.",
        )
    hub.change_membership(lambda current: membership.remove(current, device_id))
    assert member is not None, "remove raises NotFound"
    hub.audit.write(actor, "evicted", device=device_id, name=member.name)


def set_role(hub: Hub, device_id: str, role: GivenRole, actor: str = "local") -> None:
    """Make a member an admin, or an admin a plain member; on disk and audited on return.

    Raises:
        NotFound, NotAMember: there is no active member with that id.
        BadRequest: the coordinator's role goes with its authority and is given in another way.
        StorageError: it could not be kept; the fleet is as before.
    """
    if device_id == hub.identity.device_id:
        raise BadRequest(
            "The coordinator is an admin for as long as it coordinates.",
            remedy="'fleetapp fleet move-coordinator' makes another PC the coordinator.",
        )
    roles: tuple[Role, ...] = ("admin", "member") if role == "admin" else ("member",)

    def reduce(current: membership.Membership, device: str) -> membership.Membership:
        return membership.set_roles(current, device, roles)

    _reduce(hub, device_id, reduce, actor, "role_set", role=role)


def rename(hub: Hub, device_id: str, name: str, actor: str = "local") -> None:
    """Call a member by another name; on disk and audited on return.

    Args:
        hub: the fleet's.
        device_id: about whom.
        name: one printable line; empty gives it the name back that it has itself.
        actor: whose word it is, for the audit log.

    Raises:
        NotFound: there is no member with that id.
        BadRequest: the name is no name, or another member has it.
        NotAMember, UserError: this hub does not coordinate any more, or is about to hand over.
        StorageError: it could not be kept.
    """
    hub.succession.require_office()
    wanted = name.strip()
    if membership.clean_name(wanted) != wanted:
        raise BadRequest(
            f"A name is one line of at most {membership.MAX_NAME} printable characters.",
            remedy=_PRINTABLE,
            param="name",
        )
    for other in hub.membership.members.values() if wanted else ():
        same = other.name.casefold() == wanted.casefold()
        if same and other.state == "active" and other.device_id != device_id:
            raise BadRequest(
                f"Another PC of this fleet is called {other.name} ({other.device_id}).",
                remedy="Choose a name that no other PC has.",
                param="name",
            )
    if hub.rename(device_id, wanted):
        hub.audit.write(actor, "renamed", device=device_id, name=wanted)


def rename_fleet(hub: Hub, name: str, actor: str = "local") -> None:
    """Call the fleet by another name; on disk and audited on return.

    Raises:
        BadRequest: the name is no name.
        NotAMember, UserError: this hub does not coordinate any more, or is about to hand over.
        StorageError: it could not be kept.
    """
    hub.succession.require_office()
    wanted = name.strip()
    if not wanted or membership.clean_name(wanted) != wanted:
        raise BadRequest(
            f"A fleet's name has 1 to {membership.MAX_NAME} printable characters.",
            remedy=_PRINTABLE,
            param="name",
        )
    if hub.rename_fleet(wanted):
        hub.audit.write(actor, "fleet_renamed", name=wanted)


def _revoke(hub: Hub, device_id: str, actor: str) -> None:
    if device_id == hub.identity.device_id:
        raise BadRequest(
            "The coordinator cannot be shut out of its own fleet.",
            remedy="To end the fleet, let the others leave and then 'fleetapp fleet leave' on it.",
        )
    _reduce(hub, device_id, membership.revoke, actor, "revoked")


def _reduce(
    hub: Hub, device_id: str, reduce: _Reducer, actor: str, action: str, **details: str
) -> None:
    before = hub.signed_membership
    if hub.change_membership(lambda current: reduce(current, device_id)) is not before:
        member = hub.membership.members[device_id]
        hub.audit.write(
            actor, action, device=device_id, name=member.name, **details, epoch=hub.membership.epoch
        )
