"""The support bundle: one zip file that explains a PC to whoever helps, and gives nothing away.

Only what is listed here goes in, and all of it through :mod:`.redact`. Chats, keys, codes, tokens,
models and shards are never opened for it but to strike their secrets out.
"""

from __future__ import annotations

import io
import json
import os
import platform as host
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from fleetapp import __version__
from fleetapp.agent.redact import Redactor
from fleetapp.errors import BadRequest, FleetError, StorageError
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error
from fleetapp.platform.paths import Paths
from fleetapp.settings import SettingsStore
from fleetapp.settings.view import plain
from fleetapp.types import BundleView

MAX_LOG = 4 * 2**20
"""Bytes of each log file, its newest ones."""
MAX_LOGS = 24
"""Files, the newest ones."""
README = """\
fleetapp support bundle

In it:
  about.json       versions of fleetapp, Python, the system and packages
  doctor.json      what 'fleetapp doctor' says of this PC
  hardware.json    processor, devices, memory and disk
  status.json      what the agent was doing (only if one was running)
  settings.json    every setting, its value and where it comes from
  membership.json  fleet, role and certificate dates of this PC; how many others there are
  logs/            logs of agent and runners, lines as they were written

Not in it: prompts, answers and chats; join codes, API keys, tokens, private keys and passphrases;
models. What looks like one of these in a log is replaced by [struck out], the user's folders by ~
and <state>. Names of this PC and of the fleet, addresses in the office's network and names of
models are in it: look through it before you send it to somebody outside.
"""


def write_bundle(
    target: Path, paths: Paths, platform: Platform, facts: Mapping[str, object]
) -> BundleView:
    """Write it; blocks for some seconds.

    Args:
        target: the zip file; one that exists is replaced.
        paths: the state folder.
        platform: writes the file so that only this user can read it.
        facts: what the caller knows, by file name without its end; anything msgspec can encode.

    Raises:
        BadRequest: the target is not an absolute path to a file in a folder that exists.
        StorageError: it cannot be written.
    """
    _check(target)
    redactor = Redactor.of(paths)
    files: dict[str, bytes] = {"README.txt": README.encode()}
    parts = {
        "about": _about(),
        "settings": _settings(paths, platform),
        "membership": _membership(paths, platform),
        **{name: msgspec.to_builtins(fact) for name, fact in facts.items()},
    }
    for name, part in parts.items():
        text = json.dumps(redactor.value(part), indent=2, ensure_ascii=False)
        files[f"{name}.json"] = f"{text}\n".encode()
    for log in _logs(paths):
        files[f"logs/{log.name}"] = _log(log, redactor)
    packed = io.BytesIO()
    now = time.localtime()[:6]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, now), content, zipfile.ZIP_DEFLATED)
    try:
        platform.write_private(target, packed.getvalue())
    except OSError as exc:
        raise storage_error(exc, target) from exc
    return BundleView(str(target), target.stat().st_size, tuple(files))


def default_name(now: datetime) -> str:
    """Of a bundle's file."""
    return f"fleetapp-support-{now:%Y%m%d-%H%M%S}.zip"


def _check(target: Path) -> None:
    if not target.is_absolute():
        raise BadRequest("The path of the bundle must be absolute.", param="path")
    if target.is_dir():
        raise BadRequest(f"{target} is a folder.", remedy="Give the name of a file.", param="path")
    if not target.parent.is_dir():
        raise StorageError(
            f"The folder {target.parent} does not exist.", remedy="Choose another place."
        )


def _about() -> dict[str, Any]:
    return {
        "written": datetime.now(UTC).isoformat("T", "seconds"),
        "fleetapp": __version__,
        "python": sys.version,
        "system": host.platform(),
        "machine": host.machine(),
        "packages": _packages(),
        "environment": sorted(n for n in os.environ if n.startswith("FLEETAPP_")),
    }


def _packages() -> dict[str, str]:
    try:
        wanted = metadata.requires("fleetapp") or []
    except metadata.PackageNotFoundError:
        return {}
    found = {}
    for line in wanted:
        if "extra ==" in line:
            continue
        name = "".join(c if c.isalnum() or c in "-_." else " " for c in line).split()[0]
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def _settings(paths: Paths, platform: Platform) -> object:
    try:
        rows = SettingsStore(paths, platform).load().explain()
    except FleetError as error:
        return {"error": str(error)}
    return [
        {
            "name": row.name,
            "value": plain(row.value),
            "default": plain(row.default),
            "source": row.source,
            "where": row.where,
        }
        for row in rows
    ]


def _membership(paths: Paths, platform: Platform) -> object:
    if not paths.fleet.is_dir() or not paths.device_key.exists():
        return {"member": False}
    try:
        identity = Identity.load_or_create(paths, platform)
        enrolment = FleetStore(paths, identity, platform).load()
    except FleetError as error:
        return {"error": str(error)}
    if enrolment is None:
        return {"member": False}
    members = enrolment.membership.members
    me = members.get(identity.device_id)
    return {
        "member": True,
        "device_id": identity.device_id,
        "fleet_id": enrolment.info.fleet_id,
        "fleet_name": enrolment.info.name,
        "roles": list(me.roles) if me else [],
        "certificate_from": enrolment.leaf.not_valid_before_utc.isoformat(),
        "certificate_until": enrolment.leaf.not_valid_after_utc.isoformat(),
        "renew_at": datetime.fromtimestamp(enrolment.renew_at, UTC).isoformat(),
        "members": dict(Counter(member.state for member in members.values())),
    }


def _logs(paths: Paths) -> list[Path]:
    try:
        found = [f for f in paths.logs.iterdir() if f.is_file() and not f.is_symlink()]
        found.sort(key=lambda f: f.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return found[:MAX_LOGS]


def _log(file: Path, redactor: Redactor) -> bytes:
    try:
        with file.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - MAX_LOG))
            text = log.read(MAX_LOG).decode("utf-8", "replace")
    except OSError as error:
        return f"It could not be read ({error.strerror}).\n".encode()
    lines = text.splitlines()
    if size > MAX_LOG:
        lines[0] = "(older lines are left out)"
    if file.suffix == ".log":
        # a traceback or a key spans lines: struck out as one text, then as lines
        return "\n".join(map(redactor.line, _without_keys(lines))).encode()
    return "".join(f"{redactor.line(line)}\n" for line in lines).encode()


def _without_keys(lines: list[str]) -> list[str]:
    """Lines without those of PEM blocks of private keys."""
    kept, inside = [], False
    for line in lines:
        if "-----BEGIN" in line and "PRIVATE KEY" in line:
            inside = True
        if not inside:
            kept.append(line)
        if "-----END" in line:
            inside = False
    return kept
