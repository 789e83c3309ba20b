"""Where the build reads and writes, in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON_LOCK = HERE / "python.lock"
WHEELS_LOCK = HERE / "wheels.lock"
ROOTS = HERE / "roots"
"""Root certificates, PEM, that signatures of inputs must lead to."""

PRODUCT = "FleetApp"
"""Name of the program folder, of the entry in the list of programs, and of the tray's program."""
PUBLISHER = "The fleetapp authors"


def cache() -> Path:
    """What was downloaded, kept between builds: ``FLEETAPP_BUILD_CACHE`` or the user's cache."""
    chosen = os.environ.get("FLEETAPP_BUILD_CACHE", "")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(base).expanduser() / "fleetapp-build"


@dataclass(frozen=True)
class Work:
    """Folders of one build, below ``dist/windows`` unless told otherwise."""

    root: Path = ROOT / "dist" / "windows"

    @property
    def stage(self) -> Path:
        """The tree that is installed, byte for byte."""
        return self.root / "stage"

    @property
    def objects(self) -> Path:
        """What is needed on the way: icons, resource files, generated scripts."""
        return self.root / "objects"

    @property
    def setup(self) -> Path:
        """The per-user installer."""
        return self.root / f"{PRODUCT}-Setup.exe"

    @property
    def msi(self) -> Path:
        """The per-machine package."""
        return self.root / f"{PRODUCT}.msi"
