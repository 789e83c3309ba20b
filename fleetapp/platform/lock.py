"""One agent a state folder (trap T27).

The operating system drops the lock with its process, however that ends, so a file left behind
locks nobody out. The pid lies beside the lock because Windows refuses to read a locked file.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import filelock

from fleetapp.errors import AlreadyRunning
from fleetapp.platform.files import storage_error, write_atomic


class InstanceLock:
    """Held from :meth:`acquire` to :meth:`release`, or as a context manager."""

    def __init__(self, lock_file: Path) -> None:
        self._path = lock_file
        self._pid_file = lock_file.with_name(f"{lock_file.name}.pid")
        # A soft lock (a file that merely exists) would outlive its process: never fall back to it.
        self._lock = filelock.FileLock(lock_file, thread_local=False, fallback_to_soft=False)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._lock.is_locked

    def owner(self) -> int | None:
        """Pid that wrote itself down last; meaningful only while somebody holds the lock."""
        try:
            return int(self._pid_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def acquire(self) -> Self:
        """Take the lock at once or not at all.

        Raises:
            AlreadyRunning: names the pid that holds it.
            ReadOnly, DiskFull, StorageError: the folder cannot be written.
        """
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout as exc:
            pid = self.owner()
            who = f"process {pid}" if pid else "another process"
            raise AlreadyRunning(
                f"fleetapp is already running for {self._path.parent} ({who}).",
                remedy="Use the running one, quit it first, or give another folder with --state.",
            ) from exc
        except OSError as exc:
            raise storage_error(exc, self._path) from exc
        try:
            write_atomic(self._pid_file, str(os.getpid()).encode())
        except BaseException:
            self._lock.release()
            raise
        return self

    def release(self) -> None:
        """Let the next one in; harmless if not held."""
        if self._lock.is_locked:
            with contextlib.suppress(OSError):
                self._pid_file.unlink()
            self._lock.release()

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
