"""What ``fleetapp doctor`` looks at. Each check answers one question and changes nothing."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import os
import re
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from fleetapp.cli.agent_cmds import as_type, local_status
from fleetapp.cli.client import agent_client, find_agent
from fleetapp.cli.output import size
from fleetapp.engine import probe
from fleetapp.errors import AgentNotRunning, FleetError
from fleetapp.fleet import multicast
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.models.manifest import decode_model
from fleetapp.platform import current
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings, SettingsStore
from fleetapp.types import SearchView

RELEASED = datetime(2026, 11, 1, tzinfo=UTC)
"""Moved with each release. A clock before it is wrong: certificates would look not yet valid."""
PYTHONS = ((3, 11), (3, 13))
GIB = 2**30
KEYRING_SECONDS = 5.0
OVERDUE_SECONDS = 2 * 86400.0
"""A certificate that is due for so long has not been renewed for some reason; PCs do rest."""
MDNS_GROUP = "224.0.0.251"
MDNS_PORT = 5353
SAFE_KEYRINGS = ("keyring.backends.Windows", "keyring.backends.macOS",
                 "keyring.backends.SecretService", "keyring.backends.kwallet")  # fmt: skip

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: what was looked at, how it is, and what to do about it."""

    name: str
    state: State
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Subject:
    """What is examined. ``settings`` is None if they are broken, which a check of its own says."""

    paths: Paths
    settings: Settings | None

    def agent_runs(self) -> bool:
        """Whether an agent of this state folder is alive, as far as its files say."""
        try:
            find_agent(self.paths.home)
        except AgentNotRunning:
            return False
        return True


def python(_: Subject) -> Finding:
    """Is this Python one that we test with?"""
    version, here = f"Python {sys.version.split()[0]}", sys.version_info[:2]
    if PYTHONS[0] <= here <= PYTHONS[1]:
        return Finding("Python", "ok", f"{version}.")
    return Finding("Python", "fail", f"{version} is not supported.", "Use Python 3.11 to 3.13.")


def _wanted_here(requirement: str) -> bool:
    """Whether a line of the metadata is for this system and for no extra."""
    system = re.search(r"sys_platform == ['\"](\w+)['\"]", requirement)
    return "extra ==" not in requirement and (system is None or system[1] == sys.platform)


def packages(_: Subject) -> Finding:
    """Is everything there that fleetapp needs?"""
    try:
        wanted = importlib.metadata.requires("fleetapp") or []
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            "Packages", "fail", "fleetapp itself is not installed.", "Install it with pip."
        )
    names = [re.split(r"[^A-Za-z0-9._-]", w, maxsplit=1)[0] for w in wanted if _wanted_here(w)]
    missing = []
    for name in names:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        listed = ", ".join(missing)
        return Finding("Packages", "fail", f"Missing: {listed}.", "Install fleetapp anew with pip.")
    return Finding("Packages", "ok", f"All {len(names)} are installed.")


def devices(_: Subject) -> Finding:
    """Which devices can compute? Asked in a process of its own, which a driver may take down."""
    try:
        found = probe.run()
    except FleetError as error:
        return Finding("Devices", "fail", error.message, error.remedy)
    if found.missing:
        return Finding(
            "Devices", "fail", f"The runtime cannot be loaded: {found.missing[0]}.",
            "Install fleetapp anew; on Windows also the Visual C++ redistributable.",
        )  # fmt: skip
    broken = [d for d in found.devices if d.error]
    listed = "; ".join(f"{d.id} ({d.name})" for d in found.devices if not d.error)
    detail = f"{listed or 'none'}. OpenVINO {found.runtime.split('-')[0]}."
    if not listed:
        return Finding("Devices", "fail", "There is no device to compute on.", "Update drivers.")
    if broken:
        why = f"{broken[0].id} does not answer: {broken[0].error}."
        return Finding("Devices", "warn", f"{detail} {why}", "Update the driver of that device.")
    return Finding("Devices", "ok", detail)


def memory(_: Subject) -> Finding:
    """Is there room to work?"""
    platform = current()
    free, total = platform.memory_free(), platform.memory_total()
    detail = f"{size(free)} of {size(total)} free."
    if free < GIB:
        return Finding(
            "Memory", "warn", detail, "Close programs; this PC gets few layers or none until then."
        )
    return Finding("Memory", "ok", detail)


def disk(subject: Subject) -> Finding:
    """Is there room for shards?"""
    free = current().disk_free(subject.paths.home)
    detail = f"{size(free)} free for {subject.paths.home}."
    if free < GIB // 8:
        return Finding("Disk", "fail", detail, "Free some space or choose another folder: --state.")
    if free < 2 * GIB:
        return Finding("Disk", "warn", detail, "Larger models need more; free some space.")
    return Finding("Disk", "ok", detail)


def home(subject: Subject) -> Finding:
    """Can the state folder be written? A temporary file without a name is tried."""
    folder = subject.paths.home
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return Finding(
            "State folder", "fail", f"{folder} cannot be written ({error.strerror}).",
            "Choose a folder that can be written with --state or FLEETAPP_HOME.",
        )  # fmt: skip
    return Finding("State folder", "ok", f"{subject.paths.home}.")


def settings(subject: Subject) -> Finding:
    """Do the settings make sense?"""
    try:
        rows = SettingsStore(subject.paths).load().explain()
    except FleetError as error:
        return Finding("Settings", "fail", error.message, error.remedy)
    changed = [r for r in rows if r.source != "default"]
    locked = sum(r.locked for r in changed)
    return Finding(
        "Settings", "ok", f"{len(changed)} differ from their defaults, {locked} by policy."
    )


def discovery(subject: Subject) -> Finding:
    """Can multicast DNS be used? The agent knows best; without one, the group is joined on each
    interface, and nothing sent.
    """
    if (asked := _searched(subject)) is not None:
        return asked
    wanted = subject.settings.interfaces() if subject.settings else None
    if wanted is None:
        wanted = tuple(a.address for a in current().addresses() if a.version == 4)
    remedy = "Give the coordinator's address instead: 'fleetapp fleet join CODE --hub HOST:PORT'."
    if not wanted:
        return Finding("Discovery", "warn", "No network interface is usable.", remedy)
    failed = [(a, why) for a in wanted if ":" not in a and (why := _join_group(a))]
    works = [a for a in wanted if a not in dict(failed)]
    skipped = "".join(f" Not on {a}: {why}." for a, why in failed)
    if not works:
        return Finding("Discovery", "warn", f"No mDNS.{skipped}", remedy)
    kinds = {a.address: a.kind for a in current().addresses(loopback=True)}
    if limited := multicast.by_kind(frozenset(kinds[a] for a in works if a in kinds)):
        return Finding("Discovery", "warn", f"{limited[0]}{skipped}", f"{limited[1]} {remedy}")
    return Finding("Discovery", "ok", f"mDNS is possible on {', '.join(works)}.{skipped}")


def _searched(subject: Subject) -> Finding | None:
    """What the running agent's search has found; None if no agent runs."""
    try:
        with agent_client(subject.paths.home) as client:
            found = as_type(client.request("GET", "/local/v1/search"), SearchView)
    except FleetError:
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
    if subject.agent_runs():
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


def clock(_: Subject, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Finding:
    """Is the date at least possible?"""
    shown = f"{now():%Y-%m-%d %H:%M} UTC"
    if now() < RELEASED:
        return Finding(
            "Clock", "fail", f"It says {shown}, which is before this version was made.",
            "Set the date and time of this PC: certificates would look not yet valid.",
        )  # fmt: skip
    return Finding("Clock", "ok", f"{shown}.")


def keyring(_: Subject) -> Finding:
    """Is there a safe place for a passphrase? Asked in a thread: a locked one may wait for good."""
    found: list[str] = []

    def ask() -> None:
        import keyring.backend  # noqa: PLC0415 - slow to import

        names = [type(backend).__module__ for backend in keyring.backend.get_all_keyring()]
        found.extend(n.rpartition(".")[2] for n in names if n.startswith(SAFE_KEYRINGS))

    without = "The passphrase of a fleet founded here is kept in a file that only you can read."
    if os.environ.get("FLEETAPP_KEYRING", "").strip().lower() in ("0", "off", "no", "false"):
        return Finding("Keyring", "ok", f"Switched off by FLEETAPP_KEYRING. {without}")
    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(KEYRING_SECONDS)
    if thread.is_alive():
        return Finding("Keyring", "warn", f"It does not answer. {without}", "Unlock the keyring.")
    if not found:
        return Finding(
            "Keyring", "warn", f"This system has none. {without}",
            "Matters only for the coordinator; install a Secret Service such as GNOME Keyring.",
        )  # fmt: skip
    return Finding("Keyring", "ok", f"{', '.join(sorted(set(found)))}.")


def agent(subject: Subject) -> Finding:
    """Does the agent run, and what does it say?"""
    try:
        with agent_client(subject.paths.home) as client:
            status = local_status(client)
    except AgentNotRunning as error:
        return Finding("Agent", "warn", error.message, error.remedy)
    except FleetError as error:
        return Finding("Agent", "fail", error.message, error.remedy or "Restart the agent.")
    state: State = "warn" if status.state == "attention" or status.warnings else "ok"
    said = " ".join((status.reason, *status.warnings))
    return Finding("Agent", state, f"It runs (version {status.version}). {said}")


def fleet(subject: Subject, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Finding:
    """Does this PC belong to a fleet, and how long is its certificate valid?"""
    paths = subject.paths
    join = "Join one with 'fleetapp fleet join CODE', or found one with 'fleetapp fleet create'."
    if not paths.fleet.is_dir() or not paths.device_key.exists():
        return Finding("Fleet", "warn", "This PC belongs to no fleet.", join)
    try:
        enrolment = FleetStore(paths, Identity.load_or_create(paths)).load()
    except FleetError as error:
        return Finding("Fleet", "fail", error.message, error.remedy or join)
    if enrolment is None:
        return Finding("Fleet", "warn", "This PC belongs to no fleet.", join)
    left = enrolment.leaf.not_valid_after_utc - now()
    overdue = now().timestamp() - enrolment.renew_at
    detail = (
        f"Member of '{enrolment.info.name}'; certificate valid until "
        f"{enrolment.leaf.not_valid_after_utc:%Y-%m-%d}."
    )
    if left < timedelta(0):
        return Finding("Fleet", "fail", f"{detail} It has expired.", "Start the agent to renew it.")
    if overdue > OVERDUE_SECONDS:
        return Finding(
            "Fleet", "warn", f"{detail} Its renewal is {overdue / 86400:.0f} days late.",
            "Keep the agent running where it reaches the coordinator.",
        )  # fmt: skip
    return Finding("Fleet", "ok", detail)


def models(subject: Subject) -> Finding:
    """Which models are in the library?"""
    chosen = subject.settings.models_dir if subject.settings else None
    root = Path(chosen or subject.paths.models)
    good, bad = [], []
    for file in sorted(root.glob("imported/*/model.json")):
        try:
            good.append(decode_model(file.read_bytes()).model_id)
        except (OSError, msgspec.MsgspecError):
            bad.append(file.parent.name)
    if bad:
        return Finding(
            "Models", "fail", f"Cannot be read: {', '.join(bad)}.",
            f"Remove and import again: 'fleetapp model remove {bad[0]}'.",
        )  # fmt: skip
    if not good:
        return Finding(
            "Models", "warn", "None on this PC, and only the coordinator needs one.",
            "Get one with 'fleetapp model get smollm2-135m-instruct'.",
        )  # fmt: skip
    return Finding("Models", "ok", f"{', '.join(good)}.")


CHECKS: tuple[Callable[[Subject], Finding], ...] = (
    python, packages, devices, memory, disk, home, settings, discovery, ports, clock, keyring,
    agent, fleet, models,
)  # fmt: skip
