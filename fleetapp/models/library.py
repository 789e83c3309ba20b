"""Imported models and the stages made of them, below one folder. No OpenVINO in this process.

::

    library.lock            one process at a time changes anything
    imported/<model id>/    model.json, model.sig, openvino_model.xml|bin, tokenizer/
    stages/<digest>/        what ShardStore keeps: stages made so far, built on demand
    downloads/              files being fetched
    work/                   half-made things; whatever a dead process left is removed
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fleetapp.errors import (
    BadRequest,
    CorruptModel,
    NotFound,
)
from fleetapp.models import child
from fleetapp.models.disk import (
    DiskFree,
    disk_free,
    link_or_copy,
    make_folder,
    require_space,
    writing,
)
from fleetapp.models.importing import Prepared, prepare
from fleetapp.models.manifest import (
    SCHEMA,
    ModelManifest,
    Signer,
    StageManifest,
    decode_model,
    decode_stage,
    digest,
    encode,
    encode_signature,
)
from fleetapp.models.progress import Progress, ProgressFn, silent
from fleetapp.models.report import Report
from fleetapp.models.stagefiles import MANIFEST, SIGNATURE, TOKENIZER, damaged, stage_files
from fleetapp.models.store import ShardStore
from fleetapp.models.workshop import Workshop
from fleetapp.types import LayerRange

log = logging.getLogger(__name__)

MODEL_MANIFEST = "model.json"
MODEL_SIGNATURE = "model.sig"
MODEL_XML = "openvino_model.xml"
DETOKENIZER = "openvino_detokenizer"
LOCK_DEADLINE = 1800.0
"""Seconds to wait for another process that imports or splits."""


@dataclass(frozen=True, slots=True)
class StageFolder:
    """One stage, complete on disk, with its signed description."""

    path: Path
    manifest: StageManifest
    payload: bytes
    """Exact bytes of stage.json."""
    signature: bytes
    signer: str
    """Hex SHA-256 of the signer's SubjectPublicKeyInfo."""
    digest: str


class Library:
    """Models on this PC.

    Args:
        root: folder of the library; made if missing. Several processes may share it.
        signer: vouches for what this process imports and splits.
        free: asks for free space.
        lock_deadline: seconds to wait for another process before giving up.
    """

    def __init__(
        self,
        root: Path,
        signer: Signer,
        *,
        free: DiskFree = disk_free,
        lock_deadline: float = LOCK_DEADLINE,
    ) -> None:
        self.root = make_folder(root)
        self._signer = signer
        self.free = free
        self._imported = make_folder(root / "imported")
        self._workshop = Workshop(root, lock_deadline)
        self.downloads = root / "downloads"
        self.shards = ShardStore(root / "stages", free)
        """Serves chunks of every stage made so far."""
        self._building = threading.RLock()

    # reading

    def models(self) -> tuple[ModelManifest, ...]:
        """Imported models by id; folders that cannot be read are logged and left out."""
        found = []
        for path in sorted(self._imported.glob(f"*/{MODEL_MANIFEST}")):
            try:
                found.append(decode_model(path.read_bytes()))
            except (msgspec.MsgspecError, OSError) as e:
                log.warning("%s is ignored: %s", path, e)
        return tuple(found)

    def stamp(self) -> tuple[tuple[str, int], ...]:
        """Another value whenever a model has come, gone or been made anew, in whatever process."""
        found = []
        for path in self._imported.glob(f"*/{MODEL_MANIFEST}"):
            with contextlib.suppress(FileNotFoundError):
                found.append((path.parent.name, path.stat().st_mtime_ns))
        return tuple(sorted(found))

    def get(self, model_id: str) -> tuple[ModelManifest, str]:
        """Return a model's manifest and the digest of its exact bytes.

        Raises:
            NotFound: no such model here.
            CorruptModel: its manifest cannot be read.
        """
        path = self._folder(model_id) / MODEL_MANIFEST
        try:
            payload = path.read_bytes()
            return decode_model(payload), digest(payload)
        except FileNotFoundError:
            known = ", ".join(m.model_id for m in self.models()) or "none yet"
            raise NotFound(
                f"There is no model '{model_id}' here (there are: {known}).",
                remedy="Get one with 'fleetapp model get' or 'fleetapp model import'.",
            ) from None
        except msgspec.MsgspecError as e:
            raise CorruptModel(
                f"The manifest of '{model_id}' cannot be read: {e}.",
                remedy=f"Remove it with 'fleetapp model remove {model_id}' and import it again.",
            ) from e

    def folder(self, model_id: str) -> Path:
        """Where an imported model lies: openvino_model.xml and .bin, and tokenizer/.

        Raises:
            NotFound: no such model here.
        """
        self.get(model_id)
        return self._folder(model_id)

    def _folder(self, model_id: str) -> Path:
        if not model_id or any(c in model_id for c in "/\\:\0") or model_id.startswith("."):
            raise NotFound(f"'{model_id}' cannot be the name of a model.")
        return self._imported / model_id

    # changing

    def import_path(
        self,
        path: Path,
        model_id: str | None = None,
        progress: ProgressFn = silent,
        *,
        source: str = "",
        licence: str = "",
    ) -> ModelManifest:
        """Import a GGUF file or a folder with an OpenVINO IR.

        Args:
            path: the file or folder; it is left as it is.
            model_id: name here; made from the file's name if not given.
            progress: told the phases ``checking``, ``converting``, ``copying``, ``hashing`` …
            source: where it came from, for the manifest; the path's name if empty.
            licence: if the file does not say.

        Raises:
            NotAModel, CorruptModel, UnknownArchitecture, CannotSplit: nothing was imported.
            DiskFull, ReadOnly: likewise.
            BadRequest: another model has that id.
        """
        prepared = prepare(path, model_id, progress)
        with self._building, self._workshop.locked(progress):
            target = self._folder(prepared.model_id)
            if (existing := self._existing(prepared, target)) is not None:
                return existing
            require_space(self.root, prepared.space, f"Importing {path.name}", self.free)
            with self._workshop.folder(prepared.space) as work:
                folder = make_folder(work / "model")
                prepared.fill(folder, progress)
                found = prepared.examine(folder, make_folder(work / "check"), progress)
                log.info("%s: difference %s", prepared.model_id, found.max_difference)
                manifest = prepared.manifest(
                    folder, found.facts, source=source, licence=licence, progress=progress
                )
                payload = encode(manifest)
                with writing(target):
                    (folder / MODEL_MANIFEST).write_bytes(payload)
                    signature = encode_signature(self._signer.sign(payload), self._signer.spki)
                    (folder / MODEL_SIGNATURE).write_bytes(signature)
                    folder.replace(target)
        return manifest

    def _existing(self, prepared: Prepared, target: Path) -> ModelManifest | None:
        if not target.exists():
            return None
        try:
            manifest, _ = self.get(prepared.model_id)
        except (NotFound, CorruptModel):
            shutil.rmtree(target, ignore_errors=True)
            return None
        if manifest.revision == prepared.revision:
            return manifest
        raise BadRequest(
            f"There is already another model named '{prepared.model_id}'.",
            remedy="Give this one a name with --name, or remove the other first.",
        )

    def remove(self, model_id: str) -> None:
        """Delete a model and every stage made of it.

        Raises:
            NotFound: no such model.
        """
        folder = self._folder(model_id)
        if not folder.is_dir():
            self.get(model_id)  # raises with the list of what is here
        with self._building, self._workshop.locked(silent):
            self.shards.refresh()
            for name, stage in self.shards.stages().items():
                if stage.model_id == model_id:
                    self.shards.discard(name)
            with writing(folder):
                shutil.rmtree(folder)

    def verify(self, model_id: str, progress: ProgressFn = silent, *, deep: bool = False) -> Report:
        """Hash a model and its stages again; with ``deep`` also run whole against halves.

        Raises:
            NotFound: no such model.
        """
        manifest, _ = self.get(model_id)
        folder = self._folder(model_id)
        bad = damaged(folder, manifest.files, progress)
        with self._building, self._workshop.locked(progress):
            self.shards.refresh()
            stages = {n: s for n, s in self.shards.stages().items() if s.model_id == model_id}
            dropped = [n for n in stages if self.shards.verify(n, progress)]
            for name in dropped:
                self.shards.discard(name)
            difference = None
            if deep and not bad:
                size = sum(f.size for f in manifest.files)
                with self._workshop.folder(size) as work:
                    found = child.examine(folder / MODEL_XML, work, progress)
                    difference = found.max_difference
        return Report(
            model_id=model_id,
            damaged=tuple(bad),
            stages=len(stages),
            dropped_stages=tuple(str(stages[n].layers) for n in dropped),
            max_difference=difference,
        )

    # stages

    def stage(
        self, model_id: str, layers: LayerRange, progress: ProgressFn = silent
    ) -> StageFolder:
        """Return layers ``[start, stop)`` as a stage folder, made now if it is not there yet.

        Raises:
            NotFound: no such model.
            CannotSplit: the model cannot be cut there.
            DiskFull: no room for the stage.
        """
        manifest, model_digest = self.get(model_id)
        with self._building:
            name = self._find(model_digest, layers)
            if name is None:
                with self._workshop.locked(progress):
                    self.shards.refresh()  # another process may have made it meanwhile
                    name = self._find(model_digest, layers) or self._make(
                        manifest, model_digest, layers, progress
                    )
        path = self.shards.path(name)
        if path is None:
            raise NotFound(f"The stage {layers} of '{model_id}' was removed meanwhile.")
        payload = (path / MANIFEST).read_bytes()
        return StageFolder(
            path=path,
            manifest=decode_stage(payload),
            payload=payload,
            # Signed anew: another fleet on this PC may have made the stage.
            signature=self._signer.sign(payload),
            signer=self._signer.spki,
            digest=name,
        )

    def tidy(self) -> None:
        """Remove what a process that was killed has left half made, unless one is at work now."""
        self._workshop.tidy()

    def release(self, keep: Iterable[str]) -> int:
        """Delete every stage whose digest is not in ``keep``; they are made again when needed.

        Returns:
            Bytes given back.
        """
        with self._building, self._workshop.locked(silent):
            self.shards.refresh()
            return self.shards.release(keep)

    def _find(self, model_digest: str, layers: LayerRange) -> str | None:
        return next(
            (
                name
                for name, stage in self.shards.stages().items()
                if stage.model_digest == model_digest
                and stage.layers == layers
                and (not stage.last or _has_vocabulary(stage))  # older ones lack it
                and (path := self.shards.path(name)) is not None
                and (path / MANIFEST).is_file()  # else another process has removed it
            ),
            None,
        )

    def _make(
        self, manifest: ModelManifest, model_digest: str, layers: LayerRange, progress: ProgressFn
    ) -> str:
        total = manifest.architecture.layers
        first, last = layers.start == 0, layers.stop == total
        size = sum(manifest.layer_bytes[layers.start : layers.stop])
        size += first * manifest.embedding_bytes + last * manifest.head_bytes
        require_space(self.root, int(size * 1.05), f"A stage of {manifest.model_id}", self.free)
        source = self._folder(manifest.model_id)
        with self._workshop.folder(size) as work:
            folder = make_folder(work / "stage")
            request = child.Request(
                "split", str(source / MODEL_XML), str(folder), layers.start, layers.stop
            )
            child.run(request, progress, watch=child.Watch(folder, "splitting", size))
            if first or last:
                make_folder(folder / TOKENIZER)
                # The last stage needs the vocabulary only, for grammars.
                wanted = "*" if first else f"{DETOKENIZER}.*"
                for path in sorted((source / TOKENIZER).glob(wanted)):
                    link_or_copy(path, folder / TOKENIZER / path.name)
            progress(Progress("hashing", 0, size))
            stage = StageManifest(
                schema=SCHEMA,
                model_id=manifest.model_id,
                model_digest=model_digest,
                architecture=manifest.architecture,
                layers=layers,
                first=first,
                last=last,
                files=stage_files(folder),
            )
            payload = encode(stage)
            with writing(folder):
                (folder / MANIFEST).write_bytes(payload)
                signature = encode_signature(self._signer.sign(payload), self._signer.spki)
                (folder / SIGNATURE).write_bytes(signature)
            self.shards.complete(folder, digest(payload), stage)
        return digest(payload)


def _has_vocabulary(stage: StageManifest) -> bool:
    return any(f.path.startswith(f"{TOKENIZER}/{DETOKENIZER}.") for f in stage.files)
