"""What this PC says of itself, and gives its runners."""

from __future__ import annotations

from fleetapp.agent.held import RunnerSetup
from fleetapp.agent.pc import PC
from fleetapp.fleet.enrolment import Credentials
from fleetapp.types import FleetId, Hardware

KV_SHARE = 0.25
KV_MAX = 2 * 2**30
KV_MIN = 64 * 2**20


def hosts_of(pc: PC) -> tuple[str, ...]:
    """Addresses on which others may reach it, best first; never empty."""
    chosen = pc.settings().interfaces()
    if chosen:
        return chosen
    usable = tuple(a.address for a in pc.platform.addresses())
    return usable or ("127.0.0.1",)


def listen_host(pc: PC) -> str:
    """Where servers listen: on all interfaces unless the whole fleet lives on loopback."""
    hosts = hosts_of(pc)
    return "127.0.0.1" if all(h.startswith("127.") for h in hosts) else "0.0.0.0"  # noqa: S104 - members connect from other PCs; every connection needs a fleet certificate


def hardware_of(pc: PC, disk_free: int) -> Hardware:
    """For the hub and its admins."""
    return Hardware(
        cores=pc.platform.cores(),
        memory_total=pc.platform.memory_total(),
        memory_free=pc.guest.memory_for_fleet(),
        disk_free=disk_free,
        cpu=pc.platform.cpu_name(),
        runtime=pc.runtime(),
        devices=pc.guest.devices.shown,
    )


def runner_setup(pc: PC, credentials: Credentials, fleet_id: FleetId) -> RunnerSetup:
    """What every runner gets, whatever its shard."""
    settings = pc.settings()
    free = pc.platform.memory_free()
    automatic = max(KV_MIN, min(KV_MAX, int(free * KV_SHARE)))
    return RunnerSetup(
        device="CPU",
        threads=settings.threads,
        kv_bytes=settings.kv_memory_mb * 2**20 or automatic,
        cache_dir=pc.paths.cache,
        listen_host=listen_host(pc),
        listen_port=settings.data_port,
        cert_path=credentials.leaf_path,
        key_path=credentials.key_path,
        authority_path=pc.paths.fleet / "authority.crt",
        fleet=fleet_id,
        device_id=pc.identity.device_id,
        name=pc.name(),
        spill_bytes=settings.kv_spill_mb * 2**20,
        spill_disk_bytes=settings.kv_spill_disk_mb * 2**20,
        max_context=settings.max_context,
    )
