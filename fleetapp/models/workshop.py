"""One process at a time, and no half-made thing left behind: the library's lock and work folder."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from fleetapp.errors import DiskFull, FleetUnavailable, ModelError, StorageError
from fleetapp.models.disk import disk_free, make_folder, writing
from fleetapp.models.progress import Progress, ProgressFn

_NO_ROOM = 1024 * 1024
"""Bytes of free space at which damaged output is the disk's fault."""


class Workshop:
    """Where a library makes things before they are complete.

    Args:
        root: folder of the library.
        deadline: seconds to wait for another process.
    """

    def __init__(self, root: Path, deadline: float) -> None:
        self._root, self._deadline = root, deadline
        self._work = root / "work"

    @contextmanager
    def locked(self, progress: ProgressFn) -> Iterator[None]:
        """Keep every other process from changing the library.

        Raises:
            FleetUnavailable: another one does so for longer than the deadline.
            ReadOnly: the library cannot be changed at all.
        """
        lock = filelock.FileLock(self._root / "library.lock")
        with writing(self._root):
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                progress(Progress("waiting", message="another fleetapp is using the library"))
                try:
                    lock.acquire(timeout=self._deadline, poll_interval=0.1)
                except filelock.Timeout:
                    raise FleetUnavailable(
                        f"Another process has been using {self._root} for too long.",
                        remedy="End it, or choose another folder with the setting models_dir.",
                    ) from None
        try:
            yield
        finally:
            lock.release()

    def tidy(self) -> None:
        """Remove what a process that was killed has left half made, unless one is at work now."""
        if not self._work.exists():
            return
        lock = filelock.FileLock(self._root / "library.lock")
        with contextlib.suppress(filelock.Timeout, OSError), lock.acquire(timeout=0):
            shutil.rmtree(self._work, ignore_errors=True)

    @contextmanager
    def folder(self, needed: int) -> Iterator[Path]:
        """An empty folder on the library's disk that is gone afterwards. Needs the lock.

        Args:
            needed: bytes that will be written; where a write fails and less is free, that is why.

        Raises:
            DiskFull: in place of what a full disk made of the work.
        """
        shutil.rmtree(self._work, ignore_errors=True)  # left by a process that was killed
        folder = make_folder(self._work / uuid.uuid4().hex)
        try:
            yield folder
        except (ModelError, StorageError) as e:
            # When the disk fills up native writers fail and remove their file, or end it early.
            room = needed if isinstance(e, StorageError) else _NO_ROOM
            if not isinstance(e, DiskFull) and disk_free(self._root) < room:
                raise DiskFull(f"The disk of {self._root} is full.") from e
            raise
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
