"""Who did what: JSON lines beside the hub's state, each with the hash of the line before it.

A line that is changed, removed or put in breaks the chain and :meth:`AuditLog.verify` names the
place. A chain alone cannot show that its end was cut off, nor that somebody who may write the whole
folder has written all of it anew: for that the newest hash has to be noted elsewhere and given to
``verify`` later. The idea of chaining entries is Schneier and Kelsey's ("Secure Audit Logs to
Support Computer Forensics", 1999); keys that are thrown away after each entry are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fleetapp.platform.files import storage_error
from fleetapp.types import AuditCheck, AuditEntry

PART_BYTES = 4 * 2**20
"""A part that has grown so large is set aside and a new one begun; parts are never deleted here."""
MAX_PROBLEMS = 20
_OWN = ("seq", "time", "actor", "action", "prev")


class AuditLog:
    """Appends one line per event; never rewrites. Secrets are not passed in, so none get out.

    Args:
        path: the newest part; older ones lie beside it, named after their first number.
        part_bytes: size at which a new part begins.
        clock: Unix seconds.
    """

    def __init__(
        self,
        path: Path,
        part_bytes: int = PART_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._part_bytes = part_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._end: tuple[int, str] | None = None
        """Number and hash of the last line, once they have been read."""

    def write(self, actor: str, action: str, **details: str | int | float | bool) -> None:
        """Record that ``actor`` (a device id, or "local") did ``action`` now; on disk on return.

        Raises:
            ReadOnly, DiskFull, StorageError: it could not be written down.
        """
        with self._lock:
            try:
                seq, prev = self._last()
                self._set_aside()
                entry = {"seq": seq + 1, "time": round(self._clock(), 3), "actor": actor,
                         "action": action, **details, "prev": prev}  # fmt: skip
                line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace")
                self._append(line)
            except OSError as exc:
                self._end = None
                raise storage_error(exc, self._path) from exc
            self._end = (seq + 1, _hash(line))

    def last(self, count: int) -> tuple[AuditEntry, ...]:
        """The newest ``count`` entries, oldest first; lines that cannot be read are left out."""
        found: list[AuditEntry] = []
        with self._lock:
            for part in reversed(self._parts()):
                entries = [e for e in map(_entry, _lines(part)) if e is not None]
                found = entries[-(count - len(found)) :] + found if count > len(found) else found
                if len(found) >= count:
                    break
        return tuple(found)

    def verify(self, noted: str = "") -> AuditCheck:
        """Follow the whole chain; reads every part from the disk.

        Args:
            noted: a hash that an earlier call gave as ``head``; it must still be in the chain.
        """
        with self._lock:
            parts = [(part.name, list(_lines(part))) for part in self._parts()]
        problems: list[str] = []
        count, first, seq, prev, seen = 0, 0, 0, "", not noted
        for name, lines in parts:
            for number, line in enumerate(lines, 1):
                where = f"Line {number} of {name}"
                fields = _fields(line)
                if fields is None:
                    problems.append(f"{where} cannot be read: half written, or damaged.")
                elif not first and fields.get("seq") != 1:
                    first = seq = _number(fields)  # older parts were taken away
                elif fields.get("prev") != prev or fields.get("seq") != seq + 1:
                    problems.append(
                        f"{where} does not follow from the one before it: a line was changed, "
                        "taken out or put in."
                    )
                    seq = _number(fields)
                else:
                    first, seq = first or 1, seq + 1
                count += fields is not None
                prev = _hash(line)
                seen = seen or prev == noted
        if not seen:
            problems.append("The hash noted earlier is not in the log: lines are missing.")
        return AuditCheck(count, first, seq, prev, tuple(problems[:MAX_PROBLEMS]))

    # ------------------------------------------------------------------ files

    def _parts(self) -> list[Path]:
        """Oldest first."""
        aside = self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}")
        return [*sorted(aside), *([self._path] if self._path.exists() else [])]

    def _last(self) -> tuple[int, str]:
        if self._end is None:
            seq, prev = 0, ""
            for part in reversed(self._parts()):
                lines = list(_lines(part))
                prev = prev or (_hash(lines[-1]) if lines else "")
                readable = [f for f in map(_fields, lines) if f is not None]
                if readable:
                    seq = _number(readable[-1])
                    break
            self._end = (seq, prev)
        return self._end

    def _set_aside(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < self._part_bytes:
            return
        first = next((_number(f) for f in map(_fields, _lines(self._path)) if f is not None), 0)
        self._path.rename(self._path.with_stem(f"{self._path.stem}-{first:010d}"))

    def _append(self, line: bytes) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        handle = os.open(self._path, flags, 0o600)
        with os.fdopen(handle, "r+b", buffering=0) as out:
            size = out.seek(0, os.SEEK_END)
            if size:
                out.seek(size - 1)
                # the end of a line that a crash has cut off, so that it spoils only itself
                line = line if out.read(1) == b"\n" else b"\n" + line
            out.write(line + b"\n")
            os.fsync(out.fileno())


def _lines(part: Path) -> Iterator[bytes]:
    yield from part.read_bytes().splitlines()


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _fields(line: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(fields: dict[str, object]) -> int:
    seq = fields.get("seq")
    return seq if isinstance(seq, int) else 0


def _entry(line: bytes) -> AuditEntry | None:
    fields = _fields(line)
    if fields is None:
        return None
    when = fields.get("time")
    return AuditEntry(
        seq=_number(fields),
        time=float(when) if isinstance(when, int | float) else 0.0,
        actor=str(fields.get("actor", "")),
        action=str(fields.get("action", "")),
        details={k: str(v) for k, v in fields.items() if k not in _OWN},
    )
