"""Tiny models, converted once for all tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetapp.models.library import Library
from tests.support.sample_model import NobodySigns, sample_library
from tests.support.tiny_models import ARCHITECTURES, TinyModel, tiny_gguf


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TinyModel]:
    """One GGUF file of each architecture, by its name; three layers, weights in 8 bits."""
    folder = tmp_path_factory.mktemp("gguf")
    return {
        arch: tiny_gguf(folder / f"{arch}.gguf", arch, 3, quant="Q8_0", seed=i)
        for i, arch in enumerate(ARCHITECTURES)
    }


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, tiny: dict[str, TinyModel]) -> Library:
    """A library that holds them, in a folder whose name has spaces and is not ASCII."""
    made = Library(tmp_path_factory.mktemp("José 測試 dir") / "models", NobodySigns())
    for arch, model in tiny.items():
        made.import_path(model.path, arch)
    return made


@pytest.fixture(scope="session")
def irs(library: Library) -> dict[str, Path]:
    """``openvino_model.xml`` of each architecture."""
    return {a: library.folder(a) / "openvino_model.xml" for a in ARCHITECTURES}


@pytest.fixture(scope="session")
def sample() -> Library:
    """The library with the real sample model."""
    return Library(sample_library(), NobodySigns())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a file system of so many megabytes; only where the tests may mount one."""
    mounted: list[Path] = []

    def mount(megabytes: int) -> Path:
        if sys.platform != "linux" or os.geteuid() != 0:
            pytest.skip("mounting a small file system needs root on Linux")
        where = tmp_path / "small"
        where.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(where)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("this machine does not let root mount a file system")
        mounted.append(where)
        return where

    yield mount
    for where in mounted:
        subprocess.run(["umount", str(where)], check=True)


@pytest.fixture
def freeze() -> Callable[[Path], None]:
    """Make a disk from ``small_disk`` read-only, for root too."""

    def remount(where: Path) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(where)], check=True)

    return remount
