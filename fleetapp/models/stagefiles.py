"""The files of a stage folder: what they are called, described, checked and read. No OpenVINO."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fleetapp.errors import CorruptModel
from fleetapp.models.chunking import describe, file_sha256, tensor_spans
from fleetapp.models.manifest import FileEntry, StageManifest
from fleetapp.models.progress import Progress, ProgressFn, silent

log = logging.getLogger(__name__)

MANIFEST = "stage.json"
SIGNATURE = "stage.sig"
TOKENIZER = "tokenizer"
JOURNAL = "journal"
"""Of a stage under construction: the chunks that are in place."""


class Place(NamedTuple):
    """Where a chunk lies."""

    path: Path
    offset: int
    size: int


def check_paths(manifest: StageManifest) -> None:
    """Refuse a manifest whose paths leave its folder or whose chunks do not cover its files.

    Raises:
        CorruptModel: names the file.
    """
    seen: set[str] = set()
    for entry in manifest.files:
        path = PurePosixPath(entry.path)
        bad = path.is_absolute() or not path.parts or any(c in entry.path for c in '\\:*?"<>|\0')
        if bad or ".." in path.parts or str(path) != entry.path or entry.path.lower() in seen:
            raise CorruptModel(f"The shard's manifest names an impossible file '{entry.path}'.")
        if entry.path in (MANIFEST, SIGNATURE, JOURNAL):
            raise CorruptModel(f"The shard's manifest lists its own '{entry.path}'.")
        seen.add(entry.path.lower())
        end = 0
        for chunk in entry.chunks:
            if chunk.offset != end or chunk.size <= 0:
                raise CorruptModel(f"The chunks of '{entry.path}' have gaps or overlaps.")
            end += chunk.size
        if end != entry.size:
            raise CorruptModel(f"The chunks of '{entry.path}' do not add up to its size.")


def damaged(folder: Path, files: Iterable[FileEntry], progress: ProgressFn = silent) -> list[str]:
    """Return the files of a manifest that are missing or whose bytes are not what it says."""
    entries = list(files)
    total, done, bad = sum(e.size for e in entries), 0, []

    def tell(before: int, now: int) -> None:
        progress(Progress("verifying", before + now, total))

    for entry in entries:
        progress(Progress("verifying", done, total))
        path = folder / entry.path
        whole = path.is_file() and path.stat().st_size == entry.size
        if not whole or file_sha256(path, partial(tell, done)) != entry.sha256:
            bad.append(entry.path)
        done += entry.size
    progress(Progress("verifying", total, total))
    return bad


def read_place(place: Place) -> bytes | None:
    """Read a chunk's bytes, unchecked; None if they are not all there."""
    try:
        with place.path.open("rb") as file:
            file.seek(place.offset)
            data = file.read(place.size)
    except OSError as e:
        log.warning("%s cannot be read: %s", place.path, e)
        return None
    return data if len(data) == place.size else None


def stage_files(folder: Path) -> tuple[FileEntry, ...]:
    """Describe a stage's files; weights are cut at tensor boundaries.

    Raises:
        CorruptModel: the weights end before the last tensor (a full disk may do that).
    """
    spans = tensor_spans(folder / "stage.xml")
    if max((at + size for at, size in spans), default=0) > (folder / "stage.bin").stat().st_size:
        raise CorruptModel("The stage's weights were not written to their end.")
    entries = [describe(folder, "stage.xml"), describe(folder, "stage.bin", spans)]
    if (folder / TOKENIZER).is_dir():
        entries += [
            describe(folder, f"{TOKENIZER}/{path.name}")
            for path in sorted((folder / TOKENIZER).iterdir())
        ]
    return tuple(entries)
