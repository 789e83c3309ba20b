"""Checks of the way to other PCs: search, ports, what comes in, VPN, clock."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable
from datetime import UTC, datetime

from fleetapp.agent.checks.subject import Subject
from fleetapp.fleet import multicast
from fleetapp.types import Finding

RELEASED = datetime(2026, 11, 1, tzinfo=UTC)
"""Moved with each release. A clock before it is wrong: certificates would look not yet valid."""
MDNS_GROUP = "224.0.0.251"
MDNS_PORT = 5353
REACH_SECONDS = 2.0


def discovery(subject: Subject) -> Finding:
    """Can multicast DNS be used? The agent knows best; without one, the group is joined on each
    interface, and nothing sent.
    """
    if (asked := _searched(subject)) is not None:
        return asked
    wanted = subject.settings.interfaces() if subject.settings else None
    if wanted is None:
        wanted = tuple(a.address for a in subject.platform.addresses() if a.version == 4)
    remedy = "Give the coordinator's address instead: 'fleetapp fleet join CODE --hub HOST:PORT'."
    if not wanted:
        return Finding("Discovery", "warn", "No network interface is usable.", remedy)
    failed = [(a, why) for a in wanted if ":" not in a and (why := _join_group(a))]
    works = [a for a in wanted if a not in dict(failed)]
    skipped = "".join(f" Not on {a}: {why}." for a, why in failed)
    if not works:
        return Finding("Discovery", "warn", f"No mDNS.{skipped}", remedy)
    kinds = {a.address: a.kind for a in subject.platform.addresses(loopback=True)}
    if limited := multicast.by_kind(frozenset(kinds[a] for a in works if a in kinds)):
        return Finding("Discovery", "warn", f"{limited[0]}{skipped}", f"{limited[1]} {remedy}")
    return Finding("Discovery", "ok", f"mDNS is possible on {', '.join(works)}.{skipped}")


def _searched(subject: Subject) -> Finding | None:
    """What the running agent's search has found; None if no agent runs."""
    found = subject.agent.search()
    if found is None:
        return None
    seen = f"mDNS finds {found.peers} other PCs, {found.coordinators} of them coordinators."
    if not found.why:
        return Finding("Discovery", "ok", seen)
    cause, *advice = found.why
    return Finding("Discovery", "warn", f"{seen} {cause}", " ".join(advice))


def _join_group(address: str) -> str:
    """Why the mDNS group cannot be joined on an interface; empty if it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("", MDNS_PORT))
            group = struct.pack("4s4s", socket.inet_aton(MDNS_GROUP), socket.inet_aton(address))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        except OSError as error:
            return error.strerror or str(error)
    return ""


def ports(subject: Subject) -> Finding:
    """Are the fixed ports free, unless our own agent holds them?"""
    if subject.settings is None:
        return Finding("Ports", "warn", "Not checked, because the settings are broken.")
    if subject.agent.runs():
        return Finding("Ports", "ok", "In use by the running agent.")
    hosts = {"api_port": subject.settings.api_host, "local_port": "127.0.0.1"}
    taken = []
    for name in ("api_port", "control_port", "local_port", "data_port"):
        port = getattr(subject.settings, name)
        if port and (why := _port_taken(hosts.get(name, ""), port)):
            taken.append(f"{port} ({name}: {why})")
    if taken:
        return Finding(
            "Ports", "warn", f"Not free: {', '.join(taken)}.",
            "Stop the other program, or choose another port: 'fleetapp settings set NAME 0'.",
        )  # fmt: skip
    return Finding("Ports", "ok", "All are free.")


def _port_taken(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        if os.name != "nt":  # there it would mean the opposite: take the port from its owner
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            used = error.errno == errno.EADDRINUSE or getattr(error, "winerror", 0) == 10048
            return "used by another program" if used else (error.strerror or str(error))
    return ""


def inbound(subject: Subject) -> Finding:
    """Can this PC be called at its own addresses? A port is opened for a moment and called.

    Other PCs take no part in it: what stands between two PCs shows only when one joins.
    """
    wanted = subject.settings.interfaces() if subject.settings else None
    if wanted is None:
        wanted = tuple(a.address for a in subject.platform.addresses())
    if not wanted:
        return Finding(
            "Inbound", "warn", "This PC is connected to no network.", "Check cable or Wi-Fi."
        )
    failed = [(a, why) for a in wanted if (why := _call_oneself(a))]
    works = [a for a in wanted if a not in dict(failed)]
    skipped = "".join(f" Not at {a}: {why}." for a, why in failed)
    if not works:
        return Finding(
            "Inbound", "fail", f"This PC cannot be called by others.{skipped}",
            "Allow fleetapp in this PC's firewall, for incoming TCP connections.",
        )  # fmt: skip
    detail = f"This PC answers at {', '.join(works)}.{skipped}"
    return Finding("Inbound", "warn" if failed else "ok", detail, (
        "If other PCs do not reach it, allow fleetapp in its firewall, for incoming TCP "
        "connections."
    ) if failed else "")  # fmt: skip


def _call_oneself(address: str) -> str:
    """Why a port at this address cannot be called; empty if it can."""
    try:
        with (
            socket.create_server(
                (address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET
            ) as server,
            socket.create_connection(server.getsockname()[:2], REACH_SECONDS) as caller,
        ):
            server.settimeout(REACH_SECONDS)
            taken, who = server.accept()
            with taken:
                taken.settimeout(REACH_SECONDS)
                if who[:2] != caller.getsockname()[:2]:
                    return "another program answered"
    except TimeoutError:
        return "nothing came through within two seconds"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def vpn(subject: Subject) -> Finding:
    """Does a VPN stand between this PC and the office's network?"""
    found = subject.platform.addresses()
    tunnels = ", ".join(dict.fromkeys(a.interface for a in found if a.kind == "tunnel"))
    if limited := multicast.by_kind(frozenset(a.kind for a in found)):
        return Finding("VPN", "warn", limited[0], " ".join(limited[1:]))
    if tunnels:
        return Finding(
            "VPN", "ok", f"One is on ({tunnels}), and the office's network is there as well."
        )
    return Finding("VPN", "ok", "None is on.")


def clock(_: Subject, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Finding:
    """Is the date at least possible?"""
    shown = f"{now():%Y-%m-%d %H:%M} UTC"
    if now() < RELEASED:
        return Finding(
            "Clock", "fail", f"It says {shown}, which is before this version was made.",
            "Set the date and time of this PC: certificates would look not yet valid.",
        )  # fmt: skip
    return Finding("Clock", "ok", f"{shown}.")
