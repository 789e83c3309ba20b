"""Free space, and the operating system's refusals as our errors."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetapp.errors import DiskFull, ReadOnly, StorageError
from fleetapp.platform import units

DiskFree = Callable[[Path], int]

MARGIN = 16 * 1024 * 1024
"""Bytes that are left alone: logs, journals and other programs need some too."""

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_WINDOWS_FULL = {39, 112}  # ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL


def disk_free(path: Path) -> int:
    """Bytes an ordinary user can still write where ``path`` is or will be."""
    at = path
    while not at.exists() and at != at.parent:
        at = at.parent
    return shutil.disk_usage(at).free


def require_space(path: Path, needed: int, what: str, free: DiskFree = disk_free) -> None:
    """Raise DiskFull unless ``needed`` bytes and a margin fit."""
    have = free(path)
    if have < needed + MARGIN:
        raise DiskFull(
            f"{what} needs {units.size(needed + MARGIN)} on the disk of {path}, "
            f"which has {units.size(have)} free."
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into DiskFull or ReadOnly, naming ``path``."""
    try:
        yield
    except OSError as e:
        if e.errno in _FULL or getattr(e, "winerror", None) in _WINDOWS_FULL:
            raise DiskFull(f"The disk of {path} is full.") from e
        if e.errno in _REFUSED:
            raise ReadOnly(f"{path} cannot be written: {e.strerror}.") from e
        raise StorageError(
            f"{path} cannot be written: {e.strerror or e}.", remedy="Check the disk and try again."
        ) from e


def make_folder(path: Path) -> Path:
    """Create a folder and its parents; ReadOnly or DiskFull if refused."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def link_or_copy(source: Path, target: Path) -> None:
    """Give an immutable file a second name, or copy it where links are not possible."""
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without hard links
        with writing(target):
            shutil.copyfile(source, target)
