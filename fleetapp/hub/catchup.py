"""What a coordinator that took over with an old recovery file learns from its members.

Every member brings the newest list that it had from the coordinator before. That list is signed by
the authority, so it says what was true then, whoever brings it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fleetapp.errors import FleetError
from fleetapp.fleet import membership
from fleetapp.fleet.control import EarlierList, Signed
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.state import StateFile

log = logging.getLogger("fleetapp.hub.catchup")

_Reduce = Callable[[membership.Membership], membership.Membership]


def catch_up(
    brought: EarlierList,
    trust: TrustList,
    state: StateFile,
    change: Callable[[_Reduce], Signed],
    audit: AuditLog,
) -> None:
    """Take account of a list of an earlier term, if it is newer than all that were before.

    A list that is not genuine, not of an earlier term, or not needed is ignored: nobody can undo
    with one what this coordinator has decided.
    """
    known = state.value.caught_up if state.value is not None else None
    present = trust.membership
    if known is None or present is None:
        return
    try:
        earlier = trust.open(brought.membership)
    except FleetError as exc:
        log.warning("a member brought a list that is none: %s", exc)
        return
    if earlier.epoch <= known or not membership.begins_a_term(earlier, present.epoch):
        return
    change(lambda current: membership.catch_up(current, earlier))
    state.change(caught_up=earlier.epoch)
    after = trust.membership
    assert after is not None
    shut_out = [
        m.name
        for device, m in after.members.items()
        if m.state == "revoked" and present.members.get(device) not in (None, m)
    ]
    added = [m.name for device, m in after.members.items() if device not in present.members]
    audit.write(
        "local",
        "caught_up",
        revoked=", ".join(shut_out),
        added=", ".join(added),
        epoch=after.epoch,
    )
