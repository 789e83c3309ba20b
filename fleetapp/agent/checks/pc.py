"""Checks of the PC itself: programs, devices, room, settings, models."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tempfile
import threading
from pathlib import Path

import msgspec

from fleetapp.agent.checks.subject import Subject
from fleetapp.errors import FleetError
from fleetapp.models.manifest import decode_model
from fleetapp.platform.files import unusable
from fleetapp.platform.units import size
from fleetapp.settings import SettingsStore
from fleetapp.types import Finding

PYTHONS = ((3, 11), (3, 13))
GIB = 2**30
KEYRING_SECONDS = 5.0
SAFE_KEYRINGS = ("keyring.backends.Windows", "keyring.backends.macOS",
                 "keyring.backends.SecretService", "keyring.backends.kwallet")  # fmt: skip


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


def devices(subject: Subject) -> Finding:
    """Which devices can compute? Asked in a process of its own, which a driver may take down."""
    try:
        found = subject.probe()
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


def memory(subject: Subject) -> Finding:
    """Is there room to work?"""
    platform = subject.platform
    free, total = platform.memory_free(), platform.memory_total()
    detail = f"{size(free)} of {size(total)} free."
    if free < GIB:
        return Finding(
            "Memory", "warn", detail, "Close programs; this PC gets few layers or none until then."
        )
    return Finding("Memory", "ok", detail)


def disk(subject: Subject) -> Finding:
    """Is there room for shards?"""
    free = subject.platform.disk_free(subject.paths.home)
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


def models(subject: Subject) -> Finding:
    """Which models are in the library?"""
    chosen = subject.settings.models_dir if subject.settings else None
    root = Path(chosen or subject.paths.models)
    if chosen and (why := unusable(root)):
        return Finding(
            "Models", "fail", f"The folder of the model library, {root}, cannot be used: {why}.",
            "Make it usable, or choose another: 'fleetapp settings set models_dir FOLDER', or in "
            "the settings window.",
        )  # fmt: skip
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
