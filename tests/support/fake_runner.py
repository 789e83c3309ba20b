"""Entry of a runner process that loads the fake executor instead of OpenVINO.

Everything else is the real runner. ``FAKE_RUNNER`` (JSON) tells what to do while loading:
``compile_seconds``, ``explode``, ``step_seconds``, ``print``, ``crash`` (in the first step).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetapp.engine import pipe, runner
from fleetapp.models.manifest import Architecture, Chunk, FileEntry, StageManifest, encode
from fleetapp.types import LayerRange
from tests.support.fake_executor import EOS, HIDDEN, LAYERS, VOCAB, FakeExecutor
from tests.support.fake_text import ByteText

MODEL = "f" * 64


def stage_folder(folder: Path, start: int, stop: int) -> Path:
    """A folder that passes verification and describes layers of the fake model."""
    folder.mkdir(parents=True)
    entries = []
    for name in ("stage.xml", "stage.bin"):
        content = f"{name} of layers {start}-{stop}".encode() * 1000
        (folder / name).write_bytes(content)
        sha = hashlib.sha256(content).hexdigest()
        size = len(content)
        entries.append(FileEntry(name, size, sha, (Chunk(sha, 0, size),)))
    manifest = StageManifest(
        schema=1,
        model_id="fake",
        model_digest=MODEL,
        architecture=Architecture(
            family="fake",
            layers=LAYERS,
            hidden_size=HIDDEN,
            vocab_size=VOCAB,
            kv_heads=(1,) * LAYERS,
            head_sizes=(1,) * LAYERS,
            context_length=256,
            eos_ids=(EOS,),
            bos_id=None,
            chat_template=None,
        ),
        layers=LayerRange(start, stop),
        first=start == 0,
        last=stop == LAYERS,
        files=tuple(entries),
    )
    (folder / "stage.json").write_bytes(encode(manifest))
    return folder


def load_fake(
    load: pipe.Load, manifest: StageManifest, progress: Callable[[pipe.Progress], None]
) -> runner.Engine:
    """A runner.Loader."""
    wishes: dict[str, Any] = json.loads(os.environ.get("FAKE_RUNNER", "{}"))
    progress(pipe.Progress("compiling", 0, 1))
    if wishes.get("print"):
        print("printed by python")
        sys.stdout.flush()
        os.write(1, b"printed by native code\n")
    if wishes.get("explode"):
        raise RuntimeError(wishes["explode"])
    time.sleep(wishes.get("compile_seconds", 0))

    def before(_: object) -> None:
        if wishes.get("crash"):
            os.abort()

    executor = FakeExecutor(
        manifest.layers.start,
        manifest.layers.stop,
        blocks=256,
        max_context=load.max_context or 256,
        before=before,
        step_seconds=wishes.get("step_seconds", 0),
    )
    return runner.Engine(executor, None, ByteText() if load.head else None)


if __name__ == "__main__":
    os._exit(runner.main(load_fake))
