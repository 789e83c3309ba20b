"""What a PC does when the coordinator says that it is a copy of another one: it becomes itself.

The copied key proves that this is a member's copy, so it signs for a new one; then it is destroyed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import aiohttp
import msgspec

from fleetapp.agent.infleet import InFleet
from fleetapp.agent.joining import CALL_DEADLINE, Address, HubAddress, post
from fleetapp.agent.pc import PC, forget_hub
from fleetapp.errors import BadSignature, FleetError, NoHub
from fleetapp.fleet.control import JoinReply, Reissue, ReissueRequest, Signed
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.types import PROTOCOL_VERSION, DeviceId

CLONED = "is a copy of another PC"
"""The reason in the goodbye of a PC that comes back as another device."""
log = logging.getLogger("fleetapp.agent.cloned")


async def ask_for_identity(
    fleet: InFleet, fresh: Identity, addresses: Sequence[Address]
) -> JoinReply:
    """A certificate for the key of ``fresh``, from the coordinator that has turned this PC away.

    Raises:
        NoHub, FleetError: no coordinator gives one.
    """
    pc, info = fleet.pc, fleet.enrolment.info
    payload = msgspec.json.encode(
        Reissue(pc.identity.device_id, info.fleet_id, pc.instance, fresh.csr().decode())
    )
    # A name that was made from the copied id means the other PC.
    name = "" if pc.identity.device_id[:6] in pc.name() else pc.name()
    wish = Signed(payload, pc.identity.sign(payload), pc.identity.spki)
    ask = ReissueRequest(PROTOCOL_VERSION, wish, name)
    authority = fleet.enrolment.credentials.authority_pem
    failure: FleetError = NoHub("No coordinator was found.")
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for address in addresses:
            for member in fleet.trust.coordinators():
                hub = HubAddress(address, DeviceId(member.device_id), authority, info.fleet_id)
                try:
                    return await post(session, hub, ask, "/join/reissue", JoinReply)
                except FleetError as exc:
                    failure = exc
                except (aiohttp.ClientError, OSError) as exc:
                    failure = NoHub(f"The coordinator cannot be reached: {exc}.")
    raise failure


def adopt(pc: PC, fleet: InFleet, fresh: Identity, reply: JoinReply) -> PC:
    """Replace this PC's identity and membership on disk; blocks. Settings and shards stay.

    A crash in between leaves a PC that belongs to no fleet, and never the copied key in use again.

    Raises:
        TrustError, Malformed, StorageError: the answer cannot be used or kept.
    """
    if reply.membership is None:
        raise BadSignature("The coordinator sent no membership list.")
    authority = fleet.enrolment.credentials.authority_pem
    forget_hub(pc)  # of a coordinator's copy: the authority's key is not this PC's to keep
    pc.fleet_store.remove()
    fresh.save(pc.platform)
    store = FleetStore(pc.paths, fresh, pc.platform)
    store.save(fleet.enrolment.info, reply.leaf.encode(), authority, reply.membership)
    log.warning("this PC was a copy of %s and is %s now", pc.identity.device_id, fresh.device_id)
    return replace(pc, identity=fresh, fleet_store=store)
