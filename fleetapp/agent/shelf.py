"""What the folder of this PC's model library holds, as it is shown. Blocks on the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fleetapp.agent.pc import PC
from fleetapp.models import fetch
from fleetapp.models.catalog import DEFAULT, Entry
from fleetapp.models.library import Library
from fleetapp.models.licences import licence
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import CatalogModel, LibraryModel

LOCK_DEADLINE = 5.0
"""Seconds to wait for another process; what takes longer is a job."""


class Found(NamedTuple):
    """What is there."""

    folder: Path
    models: tuple[LibraryModel, ...]
    catalog: tuple[CatalogModel, ...]


class _Seen(NamedTuple):
    when: float
    stamp: object
    found: Found


class Shelf:
    """The library that the settings name. Methods may be called from several threads.

    Args:
        pc: this PC as it is now.
        entries: the catalogue.
    """

    def __init__(self, pc: Callable[[], PC], entries: Sequence[Entry]) -> None:
        self._pc = pc
        self._entries = entries
        self._library: Library | None = None
        self._seen: _Seen | None = None
        self._lock = threading.Lock()

    def library(self) -> Library:
        """It; its folders are made if they are missing.

        Raises:
            ReadOnly, DiskFull: they cannot be made.
        """
        root = self._root()
        with self._lock:
            if self._library is None or self._library.root != root:
                self._library = Library(root, self._pc().identity, lock_deadline=LOCK_DEADLINE)
            return self._library

    def look(self, age: float) -> Found:
        """What is there, looked at no more than so many seconds ago."""
        seen, now = self._seen, time.monotonic()
        if seen is not None and now - seen.when < age:
            return seen.found
        library = self.library()
        stamp = (library.root, library.stamp())
        if seen is not None and seen.stamp == stamp:
            models = seen.found.models
        else:
            titles: dict[str, str] = {e.model_id: e.title for e in self._entries}
            models = tuple(_shown(m, titles) for m in library.models())
        found = Found(library.root, models, self._catalog(library, {m.id for m in models}))
        self._seen = _Seen(now, stamp, found)
        return found

    def forget(self) -> None:
        """Look anew next time."""
        self._seen = None

    def tidy(self) -> None:
        """Clear away what killed processes have left half done, if there is a library."""
        if self._root().exists():
            fetch.tidy(self.library())

    def _root(self) -> Path:
        pc = self._pc()
        return Path(pc.settings().models_dir or pc.paths.models)

    def _catalog(self, library: Library, here: set[str]) -> tuple[CatalogModel, ...]:
        return tuple(
            CatalogModel(
                id=entry.model_id,
                title=entry.title,
                licence=licence(entry.licence),
                bytes=entry.size,
                in_library=entry.model_id in here,
                default=entry.model_id == DEFAULT,
                fetched=fetch.have(library.downloads, entry.sha256),
            )
            for entry in self._entries
        )


def _shown(manifest: ModelManifest, titles: dict[str, str]) -> LibraryModel:
    shape = manifest.architecture
    return LibraryModel(
        id=manifest.model_id,
        title=titles.get(manifest.model_id, manifest.model_id),
        licence=licence(manifest.licence),
        bytes=sum(f.size for f in manifest.files),
        layers=shape.layers,
        context=shape.context_length,
        architecture=shape.family,
        quantisation=manifest.quantization,
        source=manifest.source,
        chat=shape.chat_template is not None,
    )
