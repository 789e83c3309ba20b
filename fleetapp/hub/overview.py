"""The whole fleet as people see it, put together from what the hub knows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import structs

from fleetapp.fleet.membership import Member
from fleetapp.hub.registry import Session
from fleetapp.types import ChainView, DeviceId, FleetView, NodeView

if TYPE_CHECKING:
    from fleetapp.hub.hub import Hub


def fleet_view(hub: Hub) -> FleetView:
    """Everything an admin's window shows."""
    state = hub.state.value
    assert state is not None
    now = time.monotonic()
    drained = frozenset(state.drained)
    nodes = [
        _node(member, hub.registry.get(member.device_id), now, drained)
        for member in hub.membership.members.values()
    ]
    nodes += [
        NodeView(
            device_id=p.device_id, name=p.name, role="member", state="pending", contribute=False
        )
        for p in state.pending
    ]
    return FleetView(
        fleet_id=state.fleet_id,
        name=state.name,
        nodes=tuple(nodes),
        chains=tuple(_chain(hub, chain) for chain in hub.models.views()),
        warnings=hub.clones.warnings,
    )


def _node(member: Member, session: Session | None, now: float, drained: frozenset[str]) -> NodeView:
    if member.state != "active":
        state = "revoked"
    elif session is None:
        state = "offline"
    else:
        state = {"gone": "offline"}.get(session.liveness(now), session.liveness(now))
    return NodeView(
        device_id=member.device_id,
        name=member.name,
        role=member.role,
        state=state,  # type: ignore[arg-type]
        contribute=session.contribute if session else False,
        app=session.hello.app if session else "",
        hardware=session.hello.hardware if session else None,
        last_seen=round(now - session.last_heard, 1) if session else None,
        drained=member.device_id in drained,
        reason=session.reason if session else "",
        temperature=session.temperature if session else None,
        certificate_ends=session.certificate_ends if session else None,
    )


def _chain(hub: Hub, chain: ChainView) -> ChainView:
    """With what is measured of it."""
    links = hub.models.knowledge.links
    hops = tuple(
        structs.replace(
            hop,
            rtt=links.rtt(DeviceId(hop.from_device), DeviceId(hop.to_device)),
            bandwidth=links.rate(DeviceId(hop.from_device), DeviceId(hop.to_device)),
        )
        for hop in chain.hops
    )
    return structs.replace(chain, hops=hops, load=hub.loads.of(chain.chain))
