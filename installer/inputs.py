"""The pinned inputs: downloaded once, checked by hash before every use, kept by lock file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from installer.lock import TARGET
from installer.paths import PYTHON_LOCK, WHEELS_LOCK, cache
from installer.run import BuildError, say, tool

_LINE = re.compile(r"([A-Za-z0-9._-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """One line of a lock file."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Inputs:
    """Files whose hashes are those of the lock."""

    python: Path
    """The sdist that carries the embeddable tree, or an official embeddable zip."""
    wheels: dict[Pin, Path]


def pins(lock: Path) -> tuple[Pin, ...]:
    """The lines of a lock file.

    Raises:
        BuildError: one makes no sense, so that none is skipped in silence.
    """
    found = []
    for line in lock.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise BuildError(f"{lock.name} has a line that is no pin: {line}")
        found.append(Pin(*match.groups()))
    return tuple(found)


def sha256(path: Path) -> str:
    """Of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def match(wanted: tuple[Pin, ...], folder: Path) -> dict[Pin, Path]:
    """The file of each pin, by hash alone: names prove nothing (trap T23).

    Raises:
        BuildError: names the pins without a file.
    """
    by_hash = {sha256(p): p for p in sorted(folder.iterdir()) if p.is_file()}
    missing = [p for p in wanted if p.sha256 not in by_hash]
    if missing:
        names = ", ".join(f"{p.name} {p.version}" for p in missing)
        raise BuildError(f"not among the inputs, or with another hash: {names}")
    return {p: by_hash[p.sha256] for p in wanted}


def fetch(*, offline: bool = False) -> Inputs:
    """All inputs, from the cache if they are there.

    Raises:
        BuildError: something cannot be had, or is not what the lock says.
    """
    python, wheels = pins(PYTHON_LOCK), pins(WHEELS_LOCK)
    key = hashlib.sha256("".join(p.sha256 for p in python + wheels).encode()).hexdigest()
    folder = cache() / f"inputs-{key[:16]}"
    if not (folder / "complete").exists():
        if offline:
            raise BuildError(f"the inputs are not in {folder}, and nothing may be downloaded")
        _download(folder)
    zipped = os.environ.get("FLEETAPP_PYTHON_ZIP", "")
    source = _official(Path(zipped)) if zipped else match(python, folder / "python")[python[0]]
    return Inputs(source, match(wheels, folder / "wheels"))


def cached() -> bool:
    """Whether a build needs no network."""
    try:
        fetch(offline=True)
    except (BuildError, OSError):
        return False
    return True


def _official(path: Path) -> Path:
    """An embeddable zip from python.org, named with its hash by whoever makes a release."""
    wanted = os.environ.get("FLEETAPP_PYTHON_ZIP_SHA256", "").lower()
    if not path.is_file() or sha256(path) != wanted:
        raise BuildError(
            f"{path} is not there, or its SHA-256 is not that of FLEETAPP_PYTHON_ZIP_SHA256"
        )
    return path


def _download(folder: Path) -> None:
    say(f"downloading the inputs of the Windows app (about 210 MB, once) into {folder}")
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps"]
    pip += ["--disable-pip-version-check", "--require-hashes"]
    try:
        tool([*pip, "--no-binary=:all:", "--dest", fresh / "python", "-r", PYTHON_LOCK])
        tool([*pip, "--only-binary=:all:", *TARGET, "--dest", fresh / "wheels", "-r", WHEELS_LOCK])
        (fresh / "complete").touch()
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
