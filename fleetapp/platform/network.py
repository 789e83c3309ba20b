"""Which of this PC's addresses others could reach, best first (trap T20)."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["ordinary", "bridge", "tunnel", "link_local", "loopback"]

_ORDER: tuple[Kind, ...] = ("ordinary", "bridge", "tunnel", "link_local", "loopback")

# Names under which virtual switches and VPNs appear; Windows uses the adapter's friendly name.
_BRIDGE = re.compile(
    r"^(docker|br-|veth|virbr|vmnet|vboxnet|vbox|cni|flannel|cali|lxc|lxd|podman|kube)"
    r"|^vEthernet \((WSL|Default Switch|DockerNAT|nat)|VirtualBox|VMware|Hyper-V",
    re.IGNORECASE,
)
_TUNNEL = re.compile(
    r"^(tun|tap|wg|utun|ppp|zt|tailscale|ipsec|nordlynx|gpd|cscotun|vpn|ham|gre|sit)\d*\b"
    r"|VPN|WireGuard|Tailscale|ZeroTier|AnyConnect|GlobalProtect|PANGP|Fortinet|Juniper|Teredo",
    re.IGNORECASE,
)


def connect_problem(error: BaseException) -> str:
    """Why a connection did not come about, in words for people.

    HTTP clients put their own objects into their words, and the cause behind an attribute.
    """
    cause = getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return "what answers there does not speak the fleet's TLS"
    if isinstance(cause, TimeoutError):
        return "it does not answer"
    if isinstance(cause, OSError) and cause.strerror:
        # asyncio puts an address in the place of the words; whoever asks names it already
        ours = cause.strerror.startswith("Connect call failed")
        return os.strerror(cause.errno) if ours and cause.errno else cause.strerror
    return str(cause) or type(cause).__name__


@dataclass(frozen=True)
class Address:
    """One usable unicast address of this PC."""

    interface: str
    address: str
    kind: Kind
    prefix: int

    @property
    def version(self) -> int:
        """4 or 6."""
        return ipaddress.ip_address(self.address).version


@dataclass(frozen=True)
class RawInterface:
    """What the operating system says of one interface; ``addresses`` are (address, netmask)."""

    name: str
    up: bool
    point_to_point: bool
    addresses: tuple[tuple[str, str | None], ...]


def _kind(raw: RawInterface, ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Kind:
    if ip.is_loopback:
        return "loopback"
    if ip.is_link_local:
        return "link_local"
    if _BRIDGE.search(raw.name):
        return "bridge"
    if raw.point_to_point or _TUNNEL.search(raw.name):
        return "tunnel"
    return "ordinary"


def _prefix(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, mask: str | None) -> int:
    if not mask:
        return ip.max_prefixlen
    try:
        return bin(int(ipaddress.ip_address(mask))).count("1")
    except ValueError:
        return ip.max_prefixlen


def rank(raw: Iterable[RawInterface], *, loopback: bool = False) -> tuple[Address, ...]:
    """Usable addresses of interfaces that are up, in the order in which to try them.

    Real networks come first, then virtual switches, tunnels and self-assigned addresses; within
    one kind IPv4 precedes IPv6 and the system's own order is kept. Link-local IPv6 is left out: it
    means something only together with the reader's own interface. Loopback only if asked for.
    """
    found: list[Address] = []
    for interface in raw:
        if not interface.up:
            continue
        for text, mask in interface.addresses:
            try:
                ip = ipaddress.ip_address(text.partition("%")[0])
            except ValueError:
                continue
            if ip.is_unspecified or ip.is_multicast or (ip.version == 6 and ip.is_link_local):
                continue
            kind = _kind(interface, ip)
            if kind == "loopback" and not loopback:
                continue
            found.append(Address(interface.name, str(ip), kind, _prefix(ip, mask)))
    unique = {a.address: a for a in reversed(found)}
    return tuple(
        sorted(
            (a for a in found if unique[a.address] is a),
            key=lambda a: (_ORDER.index(a.kind), a.version),
        )
    )


def nearest_first(others: Iterable[str], own: Iterable[Address]) -> tuple[str, ...]:
    """Addresses of another PC in the order in which to try them from this one.

    What lies in the network of one of our own interfaces comes first (in the order of ``own``),
    then everything else, self-assigned addresses and others' loopback, and last what is our own
    address too: every PC with Docker has the same one on docker0, and would find itself there.
    """
    own = tuple(own)
    mine = {a.address for a in own if a.kind != "loopback"}
    networks = [ipaddress.ip_network(f"{a.address}/{a.prefix}", strict=False) for a in own]

    def rank_of(text: str) -> tuple[int, int]:
        ip = ipaddress.ip_address(text.partition("%")[0])
        if str(ip) in mine:
            return (len(networks) + 1, 0)
        near = next((i for i, n in enumerate(networks) if ip in n), len(networks))
        return (near, 2 if ip.is_loopback else int(ip.is_link_local))

    return tuple(sorted(dict.fromkeys(others), key=rank_of))
