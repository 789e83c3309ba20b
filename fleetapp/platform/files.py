"""Writing files so that a crash leaves the old or the new content, never half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fleetapp.errors import DiskFull, ReadOnly, StorageError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
# ERROR_DISK_FULL and ERROR_HANDLE_DISK_FULL, which Windows does not always map to ENOSPC
_FULL_WINDOWS = frozenset({112, 39})
_REPLACE_SECONDS = 2.0


def storage_error(exc: OSError, path: Path) -> StorageError:
    """Say in one sentence why ``path`` could not be written."""
    if exc.errno in _FULL or getattr(exc, "winerror", None) in _FULL_WINDOWS:
        return DiskFull(f"There is no room left to write {path}.")
    if exc.errno in _READ_ONLY:
        return ReadOnly(f"{path} cannot be written ({exc.strerror}).")
    return StorageError(
        f"{path} cannot be written ({exc.strerror or exc}).",
        remedy="Choose another folder with --state or FLEETAPP_HOME.",
    )


def _replace(source: Path, target: Path) -> None:
    """``os.replace`` that outlasts a virus scanner or indexer holding the target on Windows."""
    deadline = time.monotonic() + _REPLACE_SECONDS
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if os.name != "nt" or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as exc:
        # some network and FUSE file systems cannot sync a folder; the content is synced already
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def write_atomic(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o644,
    protect: Callable[[Path], None] | None = None,
) -> None:
    """Replace ``path`` by ``data`` at once; its folder must exist.

    Args:
        path: the file to write.
        data: its whole new content.
        mode: POSIX permission bits the file is created with.
        protect: called with the still empty temporary file, to restrict who may read it.

    Raises:
        DiskFull, ReadOnly, StorageError: the old content is untouched and nothing is left over.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(temporary, flags, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                if protect is not None:
                    protect(temporary)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)
    except OSError as exc:
        raise storage_error(exc, path) from exc


def unusable(folder: Path) -> str:
    """Why nothing could be kept in ``folder``, to stand after a colon; empty if it could.

    A folder that is missing is made and taken away again, with those above it that were made.
    """
    made: list[Path] = []
    try:
        for step in (*reversed(folder.parents), folder):
            if step.exists():
                if not step.is_dir():
                    return f"{step} is a file"
                continue
            step.mkdir()
            made.append(step)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as exc:
        return exc.strerror or str(exc)
    except ValueError as exc:  # a null character
        return str(exc)
    finally:
        for step in reversed(made):
            with contextlib.suppress(OSError):  # somebody has put something into it
                step.rmdir()
    return ""
