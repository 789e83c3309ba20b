"""What an admin decides about one PC: let it in or not, shut it out, let it in again."""

from __future__ import annotations

from collections.abc import Callable

from fleetapp.errors import BadRequest
from fleetapp.fleet import membership
from fleetapp.hub.hub import Hub
from fleetapp.types import Decision

_Reducer = Callable[[membership.Membership, str], membership.Membership]


def decide(hub: Hub, decision: Decision, device_id: str) -> None:
    """Carry out the admin's word; it is on disk and in the audit log when this returns.

    A word that changes nothing (revoking a revoked PC) is no error and is not written down.

    Raises:
        NotFound: nobody with that id waits (approve, decline), or is listed (all others).
        BadRequest: the coordinator would shut itself out.
        StorageError: it could not be kept; the fleet is as before.
    """
    if decision == "approve":
        hub.gate.approve(device_id)
    elif decision == "decline":
        hub.gate.decline(device_id)
        hub.changed()
    elif decision in ("drain", "undrain"):
        if hub.drain(device_id, on=decision == "drain"):
            name = hub.membership.members[device_id].name
            hub.audit.write("local", f"{decision}ed", device=device_id, name=name)
    elif decision == "evict":
        _evict(hub, device_id)
    elif decision == "revoke":
        _revoke(hub, device_id)
    else:
        _reduce(hub, device_id, membership.reinstate, "reinstated")


def _evict(hub: Hub, device_id: str) -> None:
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
    hub.audit.write("local", "evicted", device=device_id, name=member.name)


def _revoke(hub: Hub, device_id: str) -> None:
    if device_id == hub.identity.device_id:
        raise BadRequest(
            "The coordinator cannot shut itself out.",
            remedy="To end the fleet, let the others leave and then 'fleetapp fleet leave' here.",
        )
    _reduce(hub, device_id, membership.revoke, "revoked")


def _reduce(hub: Hub, device_id: str, reduce: _Reducer, action: str) -> None:
    before = hub.signed_membership
    if hub.change_membership(lambda current: reduce(current, device_id)) is not before:
        name = hub.membership.members[device_id].name
        hub.audit.write("local", action, device=device_id, name=name)
