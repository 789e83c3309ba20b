"""A Windows PC alone: imports a model, splits it, founds a fleet and is the head of its chain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installed import InstalledApp
from tests.support.sample_model import sample_gguf, sample_library
from tests.support.served import MODEL

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
ASKED = ("demo", "--nodes", "2", "--precision", "exact", "--draft", "off", "--max-tokens", "32",
         "--prompt", "Name three colours and say where one meets them.", "--json")  # fmt: skip


@pytest.fixture(scope="module")
def reference() -> list[int]:
    """The tokens of the same fleet on Linux."""
    done = subprocess.run(
        [sys.executable, "-m", "fleetapp.cli", *ASKED],
        env={**os.environ, "FLEETAPP_MODELS_DIR": str(sample_library())},
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    ids: list[int] = json.loads(done.stdout)["token_ids"]
    return ids


def test_it_imports_a_model_and_answers_as_linux_does(
    app: InstalledApp, reference: list[int], tmp_path: Path
) -> None:
    models = app.windows.folder / "Modelle ü"
    gguf = app.windows.folder / "Größe 測試.gguf"
    shutil.copy(sample_gguf(), gguf)
    env = {"FLEETAPP_MODELS_DIR": app.windows.windows_path(models)}
    app.cli("model", "import", app.windows.windows_path(gguf), "--name", MODEL, **env)
    gguf.unlink()
    assert MODEL in app.cli("model", "list", **env)
    app.cli("model", "verify", MODEL, **env)
    said = app.cli(*ASKED, **env).strip().splitlines()[-1]
    assert json.loads(said)["token_ids"] == reference
    assert not app.running()
    leftovers = (app.windows.local / "Temp").glob("fleetapp-demo-*")
    assert not list(leftovers)
