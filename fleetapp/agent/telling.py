"""What a PC tells its coordinator of itself: all of it in the greeting, then what has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fleetapp import __version__
from fleetapp.agent.pc import PC
from fleetapp.agent.renewal import Renewal
from fleetapp.agent.stages import StageHost
from fleetapp.agent.thispc import hardware_of, hosts_of
from fleetapp.fleet.control import Heartbeat, MemberHello
from fleetapp.fleet.keys import hardware_id
from fleetapp.fleet.trust import TrustList
from fleetapp.models.store import ShardStore
from fleetapp.types import PROTOCOL_VERSION, FleetId


@dataclass(frozen=True)
class Told:
    """What may change and is told again only then."""

    shards: dict[str, str]
    """Digest of the model by digest of the shard."""
    hosts: tuple[str, ...]
    devices: tuple[str, ...]
    certificate_ends: float


class Telling:
    """For one membership.

    Args:
        pc: this PC.
        fleet_id: of the fleet.
        trust: says which membership list it holds.
        stages: what it has loaded.
        store: shards on its disk.
        renewal: knows its certificate.
        announced: addresses at which others find it; empty before the first look.
        shard_port: where it shares shards, or 0.
    """

    def __init__(
        self,
        *,
        pc: PC,
        fleet_id: FleetId,
        trust: TrustList,
        stages: StageHost,
        store: ShardStore,
        renewal: Renewal,
        announced: Callable[[], tuple[str, ...]],
        shard_port: Callable[[], int],
    ) -> None:
        self._pc = pc
        self._fleet_id = fleet_id
        self._trust = trust
        self._stages = stages
        self._store = store
        self._renewal = renewal
        self._announced = announced
        self._shard_port = shard_port
        self._told = Told({}, (), (), 0.0)
        self.wants_whole_lists = False
        """A difference did not fit the membership list that it holds."""

    def hello(self) -> MemberHello:
        """The greeting of a new connection."""
        pc = self._pc
        self._told = told = self._now()
        return MemberHello(
            protocol=PROTOCOL_VERSION,
            app=__version__,
            device_id=pc.identity.device_id,
            name=pc.name(),
            hardware=hardware_of(pc, self.disk_free()),
            lends=pc.guest.lends or ("CPU",),
            contribute=pc.guest.decision.contribute,
            hosts=told.hosts,
            held=self._stages.held(),
            instance=pc.instance,
            certificate_ends=told.certificate_ends,
            hardware_id=hardware_id(pc.platform.machine_facts(), self._fleet_id),
            holds="" if self.wants_whole_lists else self._trust.fingerprint,
            shards=told.shards,
            shard_port=self._shard_port(),
        )

    async def heartbeat(self, seq: int) -> Heartbeat:
        """The ``seq``-th of this connection."""
        guest = self._pc.guest
        before, self._told = self._told, self._now()
        now = self._told
        return Heartbeat(
            seq=seq,
            memory_free=guest.memory_for_fleet(),
            disk_free=self.disk_free(),
            contribute=guest.decision.contribute,
            sent_bytes=self._stages.sent_bytes(),
            reason=guest.decision.reason,
            draining=guest.decision.draining,
            lends=guest.lends or ("CPU",),
            shards=now.shards if now.shards != before.shards else None,
            hosts=now.hosts if now.hosts != before.hosts else None,
            certificate_ends=now.certificate_ends
            if now.certificate_ends != before.certificate_ends
            else None,
            temperature=guest.temperature,
            devices=now.devices if now.devices != before.devices else None,
        )

    def disk_free(self) -> int:
        """Bytes of disk that the fleet may still fill here."""
        stages = self._store.stages()
        return self._pc.guest.disk_for_fleet(sum(m.size for m in stages.values()))

    def _now(self) -> Told:
        return Told(
            shards={name: stage.model_digest for name, stage in self._store.stages().items()},
            hosts=self._announced() or hosts_of(self._pc),
            devices=self._pc.guest.devices.shown,
            certificate_ends=self._renewal.leaf.not_valid_after_utc.timestamp(),
        )
