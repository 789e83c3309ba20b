"""Which own addresses can be used for multicast DNS, and in words why nothing was found."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fleetapp.platform.network import Kind

_GROUP = "224.0.0.251"
_PORT = 5353


def probe(address: str) -> str:
    """Try what an mDNS responder needs on one own IPv4 address; the reason if it fails, or ''.

    python-zeroconf gives up altogether when one of several interfaces fails (trap T20), so every
    one is tried before.
    """
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as trial:
        try:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            trial.bind((address, _PORT))
            own = socket.inet_aton(address)
            trial.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
            trial.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_GROUP) + own
            )
        except OSError as exc:
            return exc.strerror or str(exc)
    return ""


def usable(candidates: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """(addresses that work, address -> reason for those that do not). IPv4 only.

    IPv6 addresses are announced and connected to, but the search itself runs over IPv4: every
    office network that carries multicast at all carries it there.
    """
    good: list[str] = []
    bad: dict[str, str] = {}
    for address in dict.fromkeys(candidates):
        try:
            version = ipaddress.ip_address(address).version
        except ValueError:
            bad[address] = "not an address"
            continue
        if version == 6:
            continue
        if reason := probe(address):
            bad[address] = reason
        else:
            good.append(address)
    return tuple(good), bad


@dataclass(frozen=True)
class Situation:
    """What is known when somebody asks why nothing was found. Seconds for ``searching``."""

    started: bool
    failure: str
    interfaces: tuple[str, ...]
    kinds: frozenset[Kind]
    skipped: Mapping[str, str] = field(default_factory=dict)
    peers: int = 0
    searching: float = 0.0
    announced: bool = False
    heard_itself: bool = False


_PATIENCE = 3.0
_MANUAL = "Give the coordinator's address by hand (setting hub_address, or --hub HOST:PORT)."


def diagnose(now: Situation) -> tuple[str, ...]:
    """Sentences from the most to the least certain, then what to do; empty if all is well."""
    if not now.started:
        return ("The search on the local network is not running.", _MANUAL)
    said = [f"The address {a} cannot be used for the search: {r}." for a, r in now.skipped.items()]
    if now.failure:
        said.append(f"The search on the local network does not work: {now.failure}.")
    elif not now.interfaces:
        said.append("This PC is connected to no network on which it could search.")
    elif limited := by_kind(now.kinds):
        said += limited
    elif now.announced and not now.heard_itself and now.searching > _PATIENCE:
        said += [
            "A firewall on this PC seems to block multicast DNS (UDP port 5353).",
            "Allow fleetapp in the firewall, for UDP port 5353 in both directions.",
        ]
    elif not now.peers and now.searching > _PATIENCE:
        said.append(
            "Nobody else answers: no other PC runs fleetapp here, or the network keeps multicast "
            "back (guest or isolated Wi-Fi, or another subnet)."
        )
        said.append(
            "Connect both PCs to the same network, or ask who runs it to switch client isolation "
            "off for them."
        )
    return (*said, _MANUAL) if said else ()


def by_kind(kinds: frozenset[Kind]) -> list[str]:
    """What can be said from the kinds of a PC's addresses alone, and what to do about it."""
    real = kinds - {"loopback"}
    if real and real <= {"tunnel"}:
        return [
            "This PC is connected through a VPN only, and VPNs do not carry the search.",
            "Connect it to the office's network as well.",
        ]
    if real and real <= {"link_local"}:
        return [
            "This PC has only a self-assigned address: the network gave it none.",
            "Check cable or Wi-Fi; two PCs on one cable work all the same.",
        ]
    if real and real <= {"bridge", "tunnel", "link_local"}:
        return [
            "This PC has only virtual networks (containers, virtual machines, VPNs).",
            "Connect it to the office's network.",
        ]
    return []
