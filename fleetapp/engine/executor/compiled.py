"""Compiling a graph, with OpenVINO's cache of compiled blobs where that helps and is sound.

One folder per runtime, device and driver, in it one per stage and configuration. OpenVINO trusts
a blob it finds (https://github.com/openvinotoolkit/openvino/issues/37607), so this module keeps
a list of their hashes beside them and drops a folder that does not agree with its list. Whatever
goes wrong with the cache, the stage is compiled without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from pathlib import Path
from typing import Final

import openvino as ov

from fleetapp.engine.executor.device import core, runtime_key, runtime_version
from fleetapp.engine.precision import Config
from fleetapp.errors import NoCapacity, RunnerFailed

log = logging.getLogger(__name__)

_SUMS: Final = "sums.json"
_ROOM_FACTOR: Final = 2
"""Free space wanted before caching, in sizes of the stage: a blob holds all of its weights."""


def blobs_load(device: str) -> bool:
    """False where OpenVINO writes blobs of paged graphs and then cannot read them.

    The CPU plugin of 2026.4.1 exports one and fails to import it ("Runtime info k_head_size and
    num_k_heads are required for PagedAttention node"), then compiles and writes it again, every
    time: slower than no cache at all. The check came with
    https://github.com/openvinotoolkit/openvino/pull/36363; this can go when an import works.
    """
    return not device.startswith("CPU")


def compile_graph(
    model: ov.Model,
    device: str,
    config: Config,
    *,
    cache_dir: Path | None = None,
    key: str = "",
    size: int = 0,
) -> ov.CompiledModel:
    """Compile, from the cache if it has a sound blob.

    Args:
        model: the graph.
        device: where to.
        config: properties, see ``precision.device_config``.
        cache_dir: root of the cache, None for none.
        key: names the stage (a digest of its manifest).
        size: bytes of the stage's weights.

    Raises:
        NoCapacity: not enough memory.
        RunnerFailed: the device cannot compile it.
    """
    folder = _prepare(cache_dir, device, config, key, size) if cache_dir else None
    if folder is not None:
        for _ in range(2):  # what is in the folder, then an empty one
            try:
                cached: Config = {**config, "CACHE_DIR": str(folder)}
                compiled = core().compile_model(model, device, cached)
            except RuntimeError as e:
                log.warning("compiled blob of %s dropped: %s", key[:12], e)
                shutil.rmtree(folder, ignore_errors=True)
            else:
                _write_sums(folder)
                return compiled
    try:
        return core().compile_model(model, device, config)
    except (RuntimeError, MemoryError) as e:
        if "alloc" in str(e).lower() or isinstance(e, MemoryError):
            raise NoCapacity(f"{device} has not enough memory for this stage.") from e
        raise RunnerFailed(f"{device} cannot compile this stage: {e}") from e


def _prepare(root: Path, device: str, config: Config, key: str, size: int) -> Path | None:
    """The stage's folder, all blobs in it verified; None if there can be no cache."""
    setting = json.dumps([key, sorted(config.items())])
    name = hashlib.sha256(setting.encode()).hexdigest()[:32]
    folder = root / f"{runtime_version()}-{runtime_key(device)}" / name
    try:
        _drop_other_versions(root)
        if folder.exists() and not _sums_agree(folder):
            log.warning("compiled blob of %s is damaged: compiled again", key[:12])
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / "probe"
        probe.write_bytes(b"x")
        probe.unlink()
        if shutil.disk_usage(folder).free < size * _ROOM_FACTOR:
            log.warning("no room for a compiled blob in %s", root)
            return None
    except OSError as e:
        log.warning("no cache of compiled blobs in %s: %s", root, e)
        return None
    return folder


def _sums_agree(folder: Path) -> bool:
    try:
        expected = json.loads((folder / _SUMS).read_bytes())
    except (OSError, ValueError):
        return not any(folder.iterdir())
    return bool(expected == _sums(folder))


def _sums(folder: Path) -> dict[str, str]:
    sums: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name != _SUMS:
            with path.open("rb") as file:
                sums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def _write_sums(folder: Path) -> None:
    """Written last: a crash before it leaves a folder that does not agree, and is dropped."""
    try:
        # OpenVINO names blobs by its own hash of the graph; if that changed, the old one is waste.
        for old in sorted(folder.glob("*.blob"), key=lambda p: p.stat().st_mtime_ns)[:-1]:
            old.unlink()
        text = json.dumps(_sums(folder))
        path = folder / _SUMS
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    except OSError as e:
        log.warning("compiled blob not kept: %s", e)
        shutil.rmtree(folder, ignore_errors=True)


def _drop_other_versions(root: Path) -> None:
    """Blobs of another OpenVINO are never read again."""
    for folder in root.iterdir() if root.exists() else ():
        if folder.is_dir() and not folder.name.startswith(f"{runtime_version()}-"):
            shutil.rmtree(folder, ignore_errors=True)
