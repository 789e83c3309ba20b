"""Tiny models, converted once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import ARCHITECTURES, TinyModel, tiny_gguf

from fleetapp.models.library import Library


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
