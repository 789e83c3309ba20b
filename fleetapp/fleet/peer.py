"""What nodes say of themselves on the local network, as values. Hints, never trust.

A record holds the protocol version, a short fleet id and a role, and no name of a person or PC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fleetapp.types import PROTOCOL_VERSION, SERVICE_TYPE, Role

SHORT = 8
"""Characters of a fleet id that are announced: enough to choose, too little to follow."""
MAX_LABEL = 63
"""Bytes of one DNS label (RFC 1035)."""
_MAX_ADDRESSES = 16

_DEVICE = re.compile(r"[a-z2-7]{20}")
_FLEET = re.compile(rf"[a-z2-7]{{{SHORT}}}|")
_ROLES: tuple[Role, ...] = ("member", "coordinator", "admin")


class Announcement(msgspec.Struct, frozen=True):
    """What this node says. Without a fleet (``fleet_id`` empty) it is looking for one."""

    device_id: str
    fleet_id: str
    role: Role
    port: int
    """Of the control connection; 0 if it does not listen."""
    addresses: tuple[str, ...]

    @property
    def instance(self) -> str:
        """Full service name, unique because the device id is derived from a key."""
        return f"{dns_label(self.device_id)}.{SERVICE_TYPE}"

    @property
    def server(self) -> str:
        """Host name in mDNS; the PC's own host name never appears (trap T19)."""
        return f"{dns_label(self.device_id)}.local."

    def properties(self) -> dict[str, str]:
        """The TXT record."""
        return {"v": str(PROTOCOL_VERSION), "fleet": self.fleet_id[:SHORT], "role": self.role}


class Peer(msgspec.Struct, frozen=True):
    """What another node said, checked for form only."""

    device_id: str
    fleet: str
    """First characters of its fleet's id; empty while it has none."""
    role: Role
    protocol: int
    port: int
    addresses: tuple[str, ...]

    def in_fleet(self, fleet_id: str) -> bool:
        """Whether it claims to belong to that fleet."""
        return bool(self.fleet) and fleet_id.startswith(self.fleet)


def dns_label(text: str) -> str:
    """Any text as one DNS label: no dots or control characters, cut by bytes, never empty."""
    plain = "".join("-" if c == "." or not c.isprintable() else c for c in text).strip()
    return plain.encode()[:MAX_LABEL].decode(errors="ignore") or "node"


def parse(
    instance: str,
    port: int | None,
    properties: Mapping[bytes, bytes | None],
    addresses: tuple[str, ...],
) -> Peer | None:
    """The peer behind a service record; ``None`` if the record makes no sense.

    Anybody on the network can send one, so nothing of it is believed and nothing raises.
    """
    device = instance.removesuffix(f".{SERVICE_TYPE}")
    fields = {
        key.decode(errors="replace"): (value or b"").decode(errors="replace")
        for key, value in properties.items()
    }
    role = next((r for r in _ROLES if r == fields.get("role")), None)
    version, fleet = fields.get("v", ""), fields.get("fleet", "")
    if (
        role is None
        or not _DEVICE.fullmatch(device)
        or not _FLEET.fullmatch(fleet)
        or not re.fullmatch(r"[0-9]{1,5}", version)
        or not addresses
    ):
        return None
    return Peer(device, fleet, role, int(version), port or 0, addresses[:_MAX_ADDRESSES])
