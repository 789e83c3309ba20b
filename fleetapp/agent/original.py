"""Is another PC this very coordinator already, because this state folder is a copy of its?"""

from __future__ import annotations

import logging

import aiohttp

from fleetapp.agent.joining import (
    CALL_DEADLINE,
    Address,
    authority_at,
    membership_from,
    proof_of_key,
)
from fleetapp.errors import FleetError
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.peer import Peer
from fleetapp.fleet.trust import TrustList

log = logging.getLogger("fleetapp.agent.original")

LISTEN_SECONDS = 2.0
"""Nodes that are there answer a new search within 0.12 s on an idle PC; not all are (s)."""


async def find_original(
    identity: Identity, trust: TrustList, discovery: Discovery
) -> list[Address]:
    """Where a PC with this PC's own key coordinates the fleet; empty if there is none.

    To be asked before this PC announces itself. Whoever announces this PC's id, and shows its
    authority, which is public, proves nothing: the connection must be one that only the holder of
    this PC's key can accept. Otherwise anybody could keep a coordinator from starting.
    """
    spki = bytes.fromhex(trust.authority_spki)
    await discovery.wait_for(lambda peers: bool(_namesakes(peers, identity)), LISTEN_SECONDS)
    timeout = aiohttp.ClientTimeout(total=CALL_DEADLINE)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for address in _namesakes(discovery.found(), identity):
            try:
                hub = await authority_at(session, spki, address)
                if hub.device == identity.device_id:
                    await membership_from(session, hub, proof_of_key(identity, ""))
                    log.warning("another PC is this coordinator already, at %s:%d", *address)
                    return [address]
            except (FleetError, aiohttp.ClientError, OSError, TimeoutError) as exc:
                log.info("nobody is this coordinator at %s:%d: %s", *address, exc)
    return []


def _namesakes(peers: tuple[Peer, ...], identity: Identity) -> list[Address]:
    return [
        (address, peer.port)
        for peer in peers
        if peer.device_id == identity.device_id and peer.role == "coordinator" and peer.port
        for address in peer.addresses
    ]
