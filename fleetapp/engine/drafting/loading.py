"""Loading a draft model beside the head's shard."""

from __future__ import annotations

import logging
from pathlib import Path

from fleetapp.engine import pipe
from fleetapp.engine.drafting.model import check_vocabulary
from fleetapp.engine.executor import paged
from fleetapp.engine.executor.base import Executor
from fleetapp.engine.verify import read_manifest, verify_files
from fleetapp.errors import NoCapacity, Unsupported
from fleetapp.models.manifest import StageManifest

log = logging.getLogger("fleetapp.engine.drafting")


def load_draft(load: pipe.Load, target: StageManifest) -> Executor | None:
    """Verify and compile the draft model of a head.

    Returns:
        None if there is not enough memory for it: the answers are the same without.

    Raises:
        Unsupported: it is not whole, or its vocabulary is another.
        FleetError: it is damaged or cannot be compiled.
    """
    folder = Path(load.draft_dir)
    manifest = read_manifest(folder)
    if not (manifest.first and manifest.last):
        raise Unsupported("The draft model must be held whole by the head.")
    check_vocabulary(target.architecture, manifest.architecture)
    verify_files(folder, manifest, lambda *_: None)
    try:
        return paged.load(
            folder,
            precision=load.precision,
            device=load.device,
            threads=load.threads,
            kv_bytes=load.kv_bytes,
            max_context=load.max_context,
            cache_dir=Path(load.cache_dir) if load.cache_dir else None,
        )
    except NoCapacity as exc:
        log.warning("no draft model: %s", exc.message)
        return None
