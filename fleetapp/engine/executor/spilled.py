"""Kept sequences outside the cache: in host memory first, then in files without a name.

What people talked about can be computed back from keys and values, so the files have no name
(POSIX) or vanish with the process (Windows): nothing of them outlives it.
"""

from __future__ import annotations

import logging
import os
import tempfile
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

log = logging.getLogger(__name__)

Arrays = list[npt.NDArray[Any]]
"""One for each cache tensor: ``[blocks, ...]``."""


@dataclass(frozen=True)
class _OnDisk:
    file: IO[bytes]
    size: int
    kinds: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    checksum: int


class Spilled:
    """Saved sequences by number, within two budgets.

    Args:
        memory: bytes in host memory.
        disk: bytes in ``folder``; 0 never writes there.
        folder: where to make files, None for nowhere.
    """

    def __init__(self, memory: int = 0, disk: int = 0, folder: Path | None = None) -> None:
        self._memory = memory
        self._disk = disk if folder is not None else 0
        self._folder = folder
        self._in_memory: OrderedDict[int, Arrays] = OrderedDict()
        self._on_disk: OrderedDict[int, _OnDisk] = OrderedDict()
        self.memory_bytes = 0
        self.disk_bytes = 0

    def __len__(self) -> int:
        return len(self._in_memory) + len(self._on_disk)

    @property
    def capacity(self) -> int:
        """Bytes that fit in both places."""
        return self._memory + self._disk

    def save(self, number: int, arrays: Arrays) -> None:
        """Take a sequence in; the oldest ones move to disk or are forgotten to make room."""
        self.forget(number)
        size = _size(arrays)
        if size > self._memory:
            self._write(number, arrays)
            return
        while self.memory_bytes + size > self._memory:
            oldest, others = self._in_memory.popitem(last=False)
            self.memory_bytes -= _size(others)
            self._write(oldest, others)
        self._in_memory[number] = arrays
        self.memory_bytes += size

    def load(self, number: int) -> Arrays | None:
        """The same bytes again, or None if they are not there any more."""
        arrays = self._in_memory.get(number)
        if arrays is not None:
            self._in_memory.move_to_end(number)
            return arrays
        entry = self._on_disk.get(number)
        if entry is None:
            return None
        self._on_disk.move_to_end(number)
        try:
            return _read(entry)
        except (OSError, ValueError) as exc:
            log.warning("a spilled sequence is lost: %s", exc)
            self.forget(number)
            return None

    def forget(self, number: int) -> None:
        """Give its room back; a number that is not there is not an error."""
        arrays = self._in_memory.pop(number, None)
        if arrays is not None:
            self.memory_bytes -= _size(arrays)
        entry = self._on_disk.pop(number, None)
        if entry is not None:
            self.disk_bytes -= entry.size
            entry.file.close()

    def clear(self) -> None:
        """Forget everything."""
        for number in [*self._in_memory, *self._on_disk]:
            self.forget(number)

    def _write(self, number: int, arrays: Arrays) -> None:
        size = _size(arrays)
        if size > self._disk:
            return
        while self.disk_bytes + size > self._disk:
            self.forget(next(iter(self._on_disk)))
        try:
            file = tempfile.TemporaryFile(dir=self._folder, prefix="kv-")  # noqa: SIM115 (stays)
        except OSError as exc:
            log.warning("nothing is spilled to %s: %s", self._folder, exc)
            self._disk = 0
            return
        checksum = 0
        try:
            for array in arrays:
                view = array.reshape(-1).view(np.uint8).data
                checksum = zlib.crc32(view, checksum)
                file.write(view)
            file.flush()
        except OSError as exc:
            log.warning("nothing more is spilled to %s: %s", self._folder, exc)
            file.close()
            self._disk = 0
            return
        kinds = tuple((a.shape, a.dtype) for a in arrays)
        self._on_disk[number] = _OnDisk(file, size, kinds, checksum)
        self.disk_bytes += size


def _size(arrays: Arrays) -> int:
    return sum(a.nbytes for a in arrays)


def _read(entry: _OnDisk) -> Arrays:
    entry.file.seek(0, os.SEEK_SET)
    checksum = 0
    arrays: Arrays = []
    for shape, kind in entry.kinds:
        array = np.empty(shape, kind)
        view = array.reshape(-1).view(np.uint8).data
        if entry.file.readinto(view) != view.nbytes:  # type: ignore[attr-defined]
            raise ValueError("the file is shorter than what was written")
        checksum = zlib.crc32(view, checksum)
        arrays.append(array)
    if checksum != entry.checksum:
        raise ValueError("the file holds other bytes than were written")
    return arrays
