"""From a path somebody gave to the files of an imported model. No OpenVINO in this process."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fleetapp.errors import NotAModel
from fleetapp.models import child, gguf_check, ir_check, repair
from fleetapp.models.chunking import blocks, describe, file_sha256, tensor_spans
from fleetapp.models.disk import link_or_copy, make_folder, writing
from fleetapp.models.facts import Description, GraphFacts, architecture, safe_id
from fleetapp.models.manifest import SCHEMA, FileEntry, ModelManifest
from fleetapp.models.progress import Progress, ProgressFn, silent
from fleetapp.types import ModelId

XML, BIN, TOKENIZER = "openvino_model.xml", "openvino_model.bin", "tokenizer"
SPACE = 2.15
"""Bytes needed while importing, in parts of the source: an IR and the two halves of the check."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked source, ready to be converted or copied."""

    path: Path
    """The GGUF file, or the folder of the IR."""
    gguf: bool
    model_id: ModelId
    revision: str
    described: Description
    space: int
    """Bytes needed while importing."""
    rope: gguf_check.Rope | None = None
    """What the rotary frequencies of a GGUF file must be."""

    def fill(self, folder: Path, progress: ProgressFn) -> None:
        """Put ``openvino_model.xml|bin`` and ``tokenizer/`` into an empty folder."""
        if self.gguf:
            self._convert(folder, progress)
            made = folder
        else:
            made = self.path
        tokenizer = make_folder(folder / TOKENIZER)
        names = [n for n in ir_check.TOKENIZER_FILES if (made / n).is_file()]
        wanted = [(n, folder / n) for n in (XML, BIN)] if not self.gguf else []
        wanted += [(n, tokenizer / n) for n in names]
        total = sum((made / n).stat().st_size for n, _ in wanted)
        done = 0
        for name, target in wanted:
            progress(Progress("copying", done, total))
            with writing(target):
                if self.gguf:
                    (made / name).replace(target)
                else:
                    shutil.copyfile(made / name, target)
            done += target.stat().st_size
        repair.lift_truncation(tokenizer / "openvino_tokenizer.xml")
        if (rope := self.rope) is not None:
            repair.set_frequencies(folder / XML, rope.head_size, rope.base, rope.divisors)

    def _convert(self, folder: Path, progress: ProgressFn) -> None:
        # A plain name: the converter derives the others from it.
        source = folder / "model.gguf"
        try:
            source.symlink_to(self.path)
            source.open("rb").close()
        except OSError:  # no right to make symbolic links, or one that leads nowhere: Windows
            source.unlink(missing_ok=True)
            link_or_copy(self.path, source)
        watch = child.Watch(folder, "converting", self.path.stat().st_size)
        child.run(child.Request("convert", str(source), str(folder)), progress, watch=watch)
        source.unlink()
        for stem in ("openvino_model", *ir_check.GRAPHS):
            ir_check.check_graph(folder, stem)  # a full disk may have ended a file early

    def examine(self, folder: Path, work: Path, progress: ProgressFn) -> child.Examination:
        """Measure the graph and try whole against halves, in the worker."""
        found = child.examine(folder / XML, work, progress)
        shutil.rmtree(work, ignore_errors=True)
        return found

    def manifest(
        self, folder: Path, facts: GraphFacts, *, source: str, licence: str, progress: ProgressFn
    ) -> ModelManifest:
        """Describe what ``fill`` made."""
        files = _files(folder, progress)
        vocabulary = file_sha256(folder / TOKENIZER / "openvino_detokenizer.bin")
        described = ir_check.complete(self.described, folder)
        return ModelManifest(
            schema=SCHEMA,
            model_id=self.model_id,
            revision=self.revision,
            source=source or self.path.name,
            licence=licence or described.licence or "unknown",
            architecture=architecture(facts, described, vocabulary),
            quantization=described.quantization or ir_check.weight_type(facts),
            converter=ir_check.runtime(folder / XML),
            layer_bytes=facts.layer_bytes,
            embedding_bytes=facts.embedding_bytes,
            head_bytes=facts.head_bytes,
            files=files,
        )


def _files(folder: Path, progress: ProgressFn) -> tuple[FileEntry, ...]:
    names = [XML, BIN]
    names += [f"{TOKENIZER}/{p.name}" for p in sorted((folder / TOKENIZER).iterdir())]
    total = sum((folder / n).stat().st_size for n in names)
    done, entries = 0, []
    for name in names:
        progress(Progress("hashing", done, total))
        spans = tensor_spans(folder / XML) if name == BIN else ()
        entries.append(describe(folder, name, spans))
        done += entries[-1].size
    progress(Progress("hashing", total, total))
    return tuple(entries)


class Located(NamedTuple):
    """A GGUF file or the folder of an IR, not looked into yet."""

    path: Path
    gguf: bool

    @property
    def name(self) -> ModelId:
        """The model's id if nobody gives it another."""
        return safe_id(self.path.stem if self.gguf else self.path.name)

    @property
    def space(self) -> int:
        """Bytes needed while importing."""
        files = (self.path,) if self.gguf else (self.path / XML, self.path / BIN)
        return int(sum(f.stat().st_size for f in files if f.is_file()) * SPACE)


def locate(path: Path) -> Located:
    """Find what a path means.

    Raises:
        NotAModel: neither a file nor a folder with one GGUF file or an IR.
    """
    path = path.expanduser().absolute()
    if path.is_file() and path.name == XML:
        path = path.parent
    if path.is_dir():
        ggufs = sorted(path.glob("*.gguf"))
        if (path / XML).exists() or not ggufs:
            return Located(path, gguf=False)
        if len(ggufs) > 1:
            raise NotAModel(f"{path.name} holds {len(ggufs)} GGUF files.", remedy="Name one.")
        path = ggufs[0]
    if not path.is_file():
        raise NotAModel(f"There is no file or folder {path}.")
    return Located(path, gguf=True)


def prepare(path: Path, model_id: str | None, progress: ProgressFn = silent) -> Prepared:
    """Recognise and check what a path holds.

    Raises:
        NotAModel: neither a GGUF file nor a folder with an IR.
        CorruptModel, UnknownArchitecture: see :mod:`gguf_check` and :mod:`ir_check`.
    """
    located = locate(path)
    path = located.path
    if not located.gguf:
        return _prepare_ir(located, model_id, progress)
    size = path.stat().st_size
    info = gguf_check.read(path)
    gguf_check.require_convertible(info, path.name)
    return Prepared(
        path=path,
        gguf=True,
        model_id=safe_id(model_id) if model_id else located.name,
        revision=f"sha256:{file_sha256(path, _verifying(progress, size))}",
        described=gguf_check.describe(info),
        space=located.space,
        rope=gguf_check.rope(info, path.name, path),
    )


def _verifying(progress: ProgressFn, total: int) -> Callable[[int], None]:
    return lambda done: progress(Progress("verifying", min(done, total), total))


def _prepare_ir(located: Located, model_id: str | None, progress: ProgressFn) -> Prepared:
    path = located.path
    ir_check.check(path)
    whole, done = hashlib.sha256(), 0
    tell = _verifying(progress, sum((path / n).stat().st_size for n in (XML, BIN)))
    for name in (XML, BIN):
        with (path / name).open("rb") as file:
            for block in blocks(file, (path / name).stat().st_size):
                whole.update(block)
                done += len(block)
                tell(done)
    return Prepared(
        path=path,
        gguf=False,
        model_id=safe_id(model_id) if model_id else located.name,
        revision=f"sha256:{whole.hexdigest()}",
        described=ir_check.describe(path),
        space=located.space,
    )
