"""Shards on a node's disk, assembled from content-addressed chunks. No OpenVINO.

A shard is a folder named after the SHA-256 of its ``stage.json``. Chunks are not stored a second
time: the files of the folders *are* the chunks, one behind the other, and an index built when the
store opens says where each lies. A shard under construction grows in ``partial/``; a journal of
verified chunks lets it resume. Only hashes decide that something is complete.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec

from fleetapp.errors import CorruptModel, HashMismatch, NotFound, StorageError
from fleetapp.models.chunking import file_sha256
from fleetapp.models.disk import (
    DiskFree,
    disk_free,
    link_or_copy,
    make_folder,
    require_space,
    writing,
)
from fleetapp.models.manifest import (
    Chunk,
    FileEntry,
    StageManifest,
    decode_stage,
    digest,
    encode_signature,
)
from fleetapp.models.progress import Progress, ProgressFn, silent
from fleetapp.models.stagefiles import (
    JOURNAL,
    MANIFEST,
    SIGNATURE,
    Place,
    check_paths,
    damaged,
    read_place,
)

log = logging.getLogger(__name__)

_PARTIAL = "partial"
_NAME = 32
"""Characters of the digest in a folder's name; Windows paths are short."""


class ShardStore:
    """All complete shards below one folder. Methods may be called from several threads."""

    def __init__(self, root: Path, free: DiskFree = disk_free) -> None:
        self.root = make_folder(root)
        self._free = free
        self._lock = threading.RLock()
        self._stages: dict[str, tuple[Path, StageManifest]] = {}
        self._places: dict[str, list[Place]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read again what is on disk (another process may have added or removed shards)."""
        stages: dict[str, tuple[Path, StageManifest]] = {}
        for path in sorted(self.root.glob(f"*/{MANIFEST}")):
            payload = path.read_bytes()
            name = digest(payload)
            if path.parent.name != name[:_NAME]:
                log.warning("%s does not match its own name and is ignored", path.parent)
                continue
            try:
                stages[name] = (path.parent, decode_stage(payload))
            except msgspec.MsgspecError as e:
                log.warning("%s is ignored: %s", path.parent, e)
        with self._lock:
            self._stages, self._places = stages, {}
            for folder, manifest in stages.values():
                self._index(folder, manifest)

    def _index(self, folder: Path, manifest: StageManifest) -> None:
        for entry in manifest.files:
            for chunk in entry.chunks:
                place = Place(folder / entry.path, chunk.offset, chunk.size)
                self._places.setdefault(chunk.sha256, []).append(place)

    def stages(self) -> dict[str, StageManifest]:
        """Complete shards by digest."""
        with self._lock:
            return {name: manifest for name, (_, manifest) in self._stages.items()}

    def path(self, name: str) -> Path | None:
        """Folder of a complete shard, or None."""
        with self._lock:
            found = self._stages.get(name)
        return found[0] if found else None

    def has_chunk(self, sha256: str) -> bool:
        """Whether some complete shard contains the chunk."""
        with self._lock:
            return sha256 in self._places

    def read_chunk(self, sha256: str) -> bytes:
        """Read and check one chunk.

        Raises:
            NotFound: no shard here has it.
            HashMismatch: every copy is damaged; they are forgotten.
        """
        with self._lock:
            places = list(self._places.get(sha256, ()))
        if not places:
            raise NotFound(f"No shard here contains chunk {sha256[:12]}.")
        for place in places:
            data = read_place(place)
            if data is not None and digest(data) == sha256:
                return data
            log.warning("chunk %s in %s is damaged", sha256[:12], place.path)
            with self._lock:
                left = [p for p in self._places.get(sha256, ()) if p != place]
                if left:
                    self._places[sha256] = left
                else:
                    self._places.pop(sha256, None)
        raise HashMismatch(f"Chunk {sha256[:12]} is damaged on this disk.")

    def assembly(self, payload: bytes, signature: bytes, signer: str) -> Assembly:
        """Begin or resume a shard; chunks that other shards here contain are copied at once.

        Args:
            payload: exact bytes of stage.json, its signature already verified by the caller.
            signature: written beside it.
            signer: hex SHA-256 of the signer's SubjectPublicKeyInfo.

        Raises:
            CorruptModel: the manifest is malformed.
            DiskFull: what is missing does not fit; nothing was written.
        """
        try:
            manifest = decode_stage(payload)
        except msgspec.MsgspecError as e:
            raise CorruptModel(f"The shard's manifest is malformed: {e}.") from e
        check_paths(manifest)
        name = digest(payload)
        folder = self.root / _PARTIAL / name[:_NAME]
        return Assembly(self, manifest, folder, payload, encode_signature(signature, signer))

    def adopt(self, source: Path, payload: bytes, signature: bytes, signer: str) -> Path:
        """Take a complete shard folder of another store on this PC, by link where possible.

        Returns the folder here. The files are not hashed: the caller trusts ``source``.
        """
        name = digest(payload)
        if (have := self.path(name)) is not None:
            return have
        manifest = decode_stage(payload)
        check_paths(manifest)
        folder = self.root / _PARTIAL / name[:_NAME]
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        for entry in manifest.files:
            target = folder / entry.path
            make_folder(target.parent)
            link_or_copy(source / entry.path, target)
        with writing(folder):
            (folder / MANIFEST).write_bytes(payload)
            (folder / SIGNATURE).write_bytes(encode_signature(signature, signer))
        return self.complete(folder, name, manifest)

    def complete(self, folder: Path, name: str, manifest: StageManifest) -> Path:
        """Move a finished folder to its place and index it."""
        target = self.root / name[:_NAME]
        with self._lock:
            if name not in self._stages:
                with writing(target):
                    if target.exists():  # a damaged one of the same name
                        shutil.rmtree(target)
                    folder.replace(target)
                self._stages[name] = (target, manifest)
                self._index(target, manifest)
            elif folder != target:
                shutil.rmtree(folder, ignore_errors=True)
        return target

    def verify(self, name: str, progress: ProgressFn = silent) -> list[str]:
        """Hash a shard's files again.

        Returns:
            The files that are damaged or missing; empty if all is well.

        Raises:
            NotFound: no such shard.
        """
        with self._lock:
            found = self._stages.get(name)
        if found is None:
            raise NotFound(f"No shard {name[:12]} is stored here.")
        folder, manifest = found
        return damaged(folder, manifest.files, progress)

    def discard(self, name: str) -> None:
        """Delete one shard (after verify found damage, for example)."""
        with self._lock:
            found = self._stages.pop(name, None)
            if found is None:
                return
            self._places = {
                sha: kept
                for sha, places in self._places.items()
                if (kept := [p for p in places if not p.path.is_relative_to(found[0])])
            }
        shutil.rmtree(found[0], ignore_errors=True)

    def release(self, keep: Iterable[str]) -> int:
        """Delete every shard, also half-finished ones, whose digest is not in ``keep``.

        Returns:
            Bytes given back (links to other stores count too).
        """
        kept = set(keep)
        freed = 0
        for name, manifest in self.stages().items():
            if name not in kept:
                self.discard(name)
                freed += manifest.size
        names = {name[:_NAME] for name in kept}
        for folder in (self.root / _PARTIAL).glob("*"):
            if folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)
        return freed

    def free_bytes(self) -> int:
        """Free space where the store lies."""
        return self._free(self.root)


class Assembly:
    """One shard under construction. Methods may be called from several threads."""

    def __init__(
        self,
        store: ShardStore,
        manifest: StageManifest,
        folder: Path,
        payload: bytes,
        signature: bytes,
    ) -> None:
        self.manifest = manifest
        self.digest = digest(payload)
        self.total = manifest.size
        self.from_cache = 0
        """Bytes that were on this PC already: in the partial folder or in another shard."""
        self._store, self._folder = store, folder
        self._payload, self._signature = payload, signature
        self._lock = threading.RLock()
        self._wanted: dict[str, list[tuple[FileEntry, Chunk]]] = {}
        for entry in manifest.files:
            for chunk in entry.chunks:
                self._wanted.setdefault(chunk.sha256, []).append((entry, chunk))
        self._have: set[str] = set()
        if store.path(self.digest) is not None:
            self._have = set(self._wanted)
            self.from_cache = self.total
            return
        self._have = self._recall()
        require_space(store.root, self.total - self._bytes(self._have), "This shard", store._free)
        self._prepare()
        self._reuse()
        self.from_cache = self._bytes(self._have)

    @property
    def done(self) -> int:
        """Bytes verified and in place."""
        with self._lock:
            return self._bytes(self._have)

    def _bytes(self, chunks: Iterable[str]) -> int:
        return sum(chunk.size for sha in chunks for _, chunk in self._wanted[sha])

    def missing(self) -> tuple[Chunk, ...]:
        """Chunks still to be fetched, each once, in the order of the files."""
        with self._lock:
            return tuple(
                places[0][1] for sha, places in self._wanted.items() if sha not in self._have
            )

    def _part(self, entry: FileEntry) -> Path:
        return self._folder / f"{entry.path}.part"

    def _recall(self) -> set[str]:
        """Read the journal; a line counts only if its files have their full size."""
        try:
            lines = (self._folder / JOURNAL).read_text("ascii", "replace").splitlines()
        except FileNotFoundError:
            return set()
        for entry in self.manifest.files:
            part, final = self._part(entry), self._folder / entry.path
            if final.exists() and not part.exists():
                final.replace(part)  # a finish that was interrupted between its renames
            if not part.exists() or part.stat().st_size != entry.size:
                return set()
        return {line for line in lines if line in self._wanted}

    def _prepare(self) -> None:
        with writing(self._folder):
            for entry in self.manifest.files:
                part = self._part(entry)
                part.parent.mkdir(parents=True, exist_ok=True)
                with part.open("ab") as file:
                    file.truncate(entry.size)
            if not self._have:
                (self._folder / JOURNAL).unlink(missing_ok=True)

    def _reuse(self) -> None:
        for sha in list(self._wanted):
            if sha in self._have or not self._store.has_chunk(sha):
                continue
            try:
                self.write(sha, self._store.read_chunk(sha))
            except (HashMismatch, NotFound) as e:
                log.warning("not reused: %s", e)  # fetched like any other

    def write(self, sha256: str, data: bytes) -> None:
        """Check one chunk and put it where it belongs.

        Raises:
            HashMismatch: the bytes are not that chunk; nothing was written.
            NotFound: the shard has no such chunk.
            DiskFull: the disk filled up meanwhile; what was written before is kept.
        """
        places = self._wanted.get(sha256)
        if places is None:
            raise NotFound(f"Chunk {sha256[:12]} does not belong to this shard.")
        if len(data) != places[0][1].size or hashlib.sha256(data).hexdigest() != sha256:
            raise HashMismatch(f"Chunk {sha256[:12]} of {self.manifest.model_id} arrived damaged.")
        with self._lock, writing(self._folder):
            if sha256 in self._have:
                return
            for entry, chunk in places:
                with self._part(entry).open("r+b") as file:
                    file.seek(chunk.offset)
                    file.write(data)
            with (self._folder / JOURNAL).open("a", encoding="ascii") as journal:
                journal.write(f"{sha256}\n")
            self._have.add(sha256)

    def finish(self, progress: ProgressFn = silent) -> Path:
        """Hash every file whole, move the shard to its place and return its folder.

        Raises:
            StorageError: chunks are still missing.
            HashMismatch: a file is damaged on disk; its bad chunks are missing again.
        """
        with self._lock:
            if (done := self._store.path(self.digest)) is not None:
                return done
            if left := self.missing():
                raise StorageError(f"{len(left)} chunks of this shard are still missing.")
            size = 0
            for entry in self.manifest.files:
                progress(Progress("verifying", size, self.total))
                if file_sha256(self._part(entry)) != entry.sha256:
                    self._drop_bad(entry)
                    raise HashMismatch(f"'{entry.path}' of {self.manifest.model_id} is damaged.")
                size += entry.size
            with writing(self._folder):
                for entry in self.manifest.files:
                    self._part(entry).replace(self._folder / entry.path)
                (self._folder / MANIFEST).write_bytes(self._payload)
                (self._folder / SIGNATURE).write_bytes(self._signature)
                (self._folder / JOURNAL).unlink(missing_ok=True)
            path = self._store.complete(self._folder, self.digest, self.manifest)
            progress(Progress("verifying", self.total, self.total))
            return path

    def _drop_bad(self, entry: FileEntry) -> None:
        bad = {
            chunk.sha256
            for chunk in entry.chunks
            if (data := read_place(Place(self._part(entry), chunk.offset, chunk.size))) is None
            or digest(data) != chunk.sha256
        }
        if not bad:
            raise CorruptModel(f"The manifest's hashes of '{entry.path}' contradict one another.")
        self._have -= bad
        with writing(self._folder):
            text = "".join(f"{sha}\n" for sha in sorted(self._have))
            (self._folder / JOURNAL).write_text(text, "ascii")
