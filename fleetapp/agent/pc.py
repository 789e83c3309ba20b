"""What an agent has whether or not its PC belongs to a fleet."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fleetapp.agent.guest import Guest
from fleetapp.agent.limiter import Limiter
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.enrolment import Credentials, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.trust import TrustList
from fleetapp.hub.hub import Hub
from fleetapp.models.library import Library
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings

STATE, CODES, KEYS, SEEN, PLACE = "state.json", "codes.json", "keys.json", "seen.json", "place"
"""What the hub keeps beside its authority's key."""


@dataclass(frozen=True)
class Bound:
    """A listening server."""

    host: str
    port: int
    close: Callable[[], Awaitable[None]]
    renew: Callable[[], None] = lambda: None
    """Show the leaf that is on disk now to whoever connects from now on."""


class Servers(Protocol):
    """Opens the HTTP fronts; given by the layer above, which knows HTTP."""

    async def open_control(
        self, hub: Hub, trust: TrustList, credentials: Credentials, host: str, port: int
    ) -> Bound: ...

    async def open_blobs(
        self,
        read: Callable[[str], bytes],
        trust: TrustList,
        credentials: Credentials,
        willing: Callable[[], bool],
        limiter: Limiter,
        host: str,
        port: int,
    ) -> Bound: ...

    async def open_api(self, hub: Hub, host: str, port: int) -> Bound: ...


@dataclass(frozen=True)
class PC:
    """What an agent has whether or not it belongs to a fleet."""

    paths: Paths
    platform: Platform
    settings: Callable[[], Settings]
    identity: Identity
    fleet_store: FleetStore
    discovery: Discovery
    servers: Servers
    guest: Guest
    name: Callable[[], str]
    runtime: Callable[[], str]
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    """Of this start of the agent."""


def open_library(pc: PC) -> Library:
    """The model library of this PC."""
    root = pc.settings().models_dir or pc.paths.models
    return Library(Path(root), pc.identity)


def forget_hub(pc: PC) -> None:
    """Forget the fleet that this PC coordinated; harmless if there is none.

    Codes and keys go too: one of an earlier fleet must not open the next. The audit log stays.
    Blocks on the keyring: call it in a thread.
    """
    Authority.remove(pc.paths, pc.platform)
    for name in (STATE, CODES, KEYS, SEEN, PLACE):
        (pc.paths.hub / name).unlink(missing_ok=True)
