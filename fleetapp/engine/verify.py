"""Only the hash decides: a shard is checked before OpenVINO opens any of its files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from fleetapp.errors import CorruptModel, HashMismatch
from fleetapp.models.manifest import FileEntry, StageManifest, decode_stage

_PIECE: Final = 1 << 20
_REPORT_SECONDS: Final = 0.1

Report = Callable[[int, int], None]
"""Takes bytes done and bytes in all."""


def read_manifest(folder: Path) -> StageManifest:
    """The description inside a stage folder.

    Raises:
        CorruptModel: there is none, or it cannot be read.
    """
    path = folder / "stage.json"
    try:
        return decode_stage(path.read_bytes())
    except OSError as exc:
        raise CorruptModel(f"The shard in {folder} has no stage.json ({exc.strerror}).") from exc
    except (msgspec.MsgspecError, ValueError) as exc:
        raise CorruptModel(f"{path} is not a stage manifest.") from exc


def verify_files(folder: Path, manifest: StageManifest, report: Report) -> None:
    """Hold size and SHA-256 of every file against the manifest.

    Raises:
        HashMismatch: names the first file that differs.
    """
    done, last = 0, time.monotonic()
    for entry in manifest.files:
        digest = hashlib.sha256()
        path = _path_of(folder, entry)
        try:
            with path.open("rb") as stream:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
                    done += len(piece)
                    if time.monotonic() - last >= _REPORT_SECONDS:
                        last = time.monotonic()
                        report(done, manifest.size)
        except OSError as exc:
            raise HashMismatch(f"{path} cannot be read ({exc.strerror}).") from exc
        if digest.hexdigest() != entry.sha256:
            raise HashMismatch(f"{path} is not the file that the manifest describes.")
    report(manifest.size, manifest.size)


def _path_of(folder: Path, entry: FileEntry) -> Path:
    """The manifest is signed, but a name that leads out of the folder is refused all the same."""
    path = folder / entry.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise HashMismatch(f"The manifest names a file outside of its folder: {entry.path!r}.")
    return path
