"""Is another PC this very coordinator already, because this state folder is a copy of its?"""

from __future__ import annotations

import logging
from pathlib import Path

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
from fleetapp.fleet.keys import hardware_id
from fleetapp.fleet.peer import Peer
from fleetapp.fleet.trust import TrustList
from fleetapp.platform.base import Platform

log = logging.getLogger("fleetapp.agent.original")

LISTEN_SECONDS = 3.0
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


class Place:
    """Remembers where a hub last ran, so that an ordinary restart need not listen for an original.

    Args:
        file: beside the hub's state, and copied with it.
        home: the state folder, which a copy on the same PC does not share.
        platform: knows what differs between two PCs of one disk image.
    """

    def __init__(self, file: Path, home: Path, platform: Platform) -> None:
        self._file = file
        self._platform = platform
        self._here = hardware_id((str(home.absolute()), *platform.machine_facts()), "place")

    @property
    def is_the_same(self) -> bool:
        """Whether it ran here when :meth:`note` was called last."""
        try:
            return self._file.read_text("ascii") == self._here
        except (OSError, ValueError):
            return False

    def note(self) -> None:
        """It runs here now.

        Raises:
            StorageError: that could not be kept.
        """
        if not self.is_the_same:
            self._platform.write_private(self._file, self._here.encode())


def _namesakes(peers: tuple[Peer, ...], identity: Identity) -> list[Address]:
    return [
        (address, peer.port)
        for peer in peers
        if peer.device_id == identity.device_id and peer.role == "coordinator" and peer.port
        for address in peer.addresses
    ]
