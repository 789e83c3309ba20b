"""Where this PC's coordinator may be, and where news of another one: hints, never trust."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs

from fleetapp.agent.joining import Address, split_address
from fleetapp.errors import BadRequest
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.enrolment import FleetInfo, FleetStore
from fleetapp.fleet.trust import TrustList
from fleetapp.types import DeviceId

MAX_ADDRESSES = 8
"""Of the coordinator that are remembered, newest first."""


class Whereabouts:
    """Puts together what the search finds, what somebody has set, and what worked before.

    Args:
        device: this PC.
        info: what is remembered of the fleet.
        store: keeps it.
        trust: who is a coordinator.
        discovery: the search on the local network.
        configured: the setting ``hub_address``, asked each time; may be empty.
    """

    def __init__(
        self,
        device: DeviceId,
        info: FleetInfo,
        store: FleetStore,
        trust: TrustList,
        discovery: Discovery,
        configured: Callable[[], str],
    ) -> None:
        self.info = info
        self._device = device
        self._store = store
        self._trust = trust
        self._discovery = discovery
        self._configured = configured

    def coordinator(self) -> list[Address]:
        """Where to connect to, best first."""
        announced = self._announced(lambda _: True)
        given = _read([self._configured()])
        return list(dict.fromkeys((*given, *announced, *_read(self.info.hub_addresses))))

    def strangers(self, *, lost: bool) -> list[Address]:
        """Where somebody coordinates this fleet whom the present list does not name.

        Args:
            lost: no coordinator is connected, so that what answers at the known addresses may be
                another one too.
        """
        known = {m.device_id for m in self._trust.coordinators()} | {self._device}
        found = self._announced(lambda device: device not in known)
        if lost:
            found += _read([self._configured(), *self.info.hub_addresses])
        return found

    def remember(self, addresses: Iterable[str], hub: DeviceId | None = None) -> None:
        """Keep ``host:port`` of the coordinator, before those known; what is no address is dropped.

        Raises:
            StorageError: it could not be kept.
        """
        good = [a for a in addresses if _read([a])]
        short = tuple(dict.fromkeys((*good, *self.info.hub_addresses)))[:MAX_ADDRESSES]
        self.info = structs.replace(
            self.info, hub_addresses=short, hub_device=hub or self.info.hub_device
        )
        self._store.save_info(self.info)

    def _announced(self, wanted: Callable[[str], bool]) -> list[Address]:
        return [
            (address, peer.port)
            for peer in self._discovery.found()
            if peer.role == "coordinator"
            and peer.in_fleet(self.info.fleet_id)
            and wanted(peer.device_id)
            for address in peer.addresses
        ]


def _read(texts: Iterable[str]) -> list[Address]:
    found = []
    for text in texts:
        try:
            found.append(split_address(text))
        except BadRequest:
            continue
    return found
