"""A Windows PC alone: imports a model, splits it, founds a fleet and is the head of its chain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed import InstalledApp
from tests.support.sample_model import sample_gguf, sample_library
from tests.support.served import MODEL

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("one_core"),
]
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


def test_the_agent_imports_a_model_as_the_windows_of_the_app_ask_it_to(app: InstalledApp) -> None:
    """A job with pipes to the agent, which signs what it makes, verifies it and breaks it off."""
    gguf = app.windows.folder / "Über 測試.gguf"
    shutil.copy(sample_gguf(), gguf)
    models = app.windows.folder / "Modelle des Agenten ü"
    agent = app.start_agent(FLEETAPP_MODELS_DIR=app.windows.windows_path(models))
    path, phases = app.windows.windows_path(gguf), set()

    def job(number: str) -> dict[str, Any]:
        found: dict[str, Any] = next(j for j in agent.get("models")["jobs"] if j["job"] == number)
        phases.add(found["phase"])
        return found

    def ended(number: str) -> dict[str, Any]:
        agent.until(lambda _: job(number)["state"] != "running", 300)
        return job(number)

    begun = agent.post("models/import", path=path, name="broken-off")["job"]
    agent.until(lambda _: job(begun)["phase"] not in ("starting", "copying"), 120)
    assert agent.post("models/cancel", job=begun)["state"] == "cancelled"
    assert not agent.get("models")["library"]
    assert not [line for line in app.running() if "fleetapp.models" in line]

    phases.clear()
    imported = ended(agent.post("models/import", path=path, name=MODEL)["job"])
    assert imported["state"] == "done", imported
    assert len(phases) > 2, f"progress was told: {phases}"
    assert [m["id"] for m in agent.get("models")["library"]] == [MODEL]
    verified = ended(agent.post("models/verify", model=MODEL)["job"])
    assert verified["state"] == "done", verified
    assert gguf.exists(), "what was imported is the user's"

    nonsense = app.windows.folder / "nonsense.gguf"
    nonsense.write_bytes(b"GGUF" + bytes(1000))
    asked = app.windows.windows_path(nonsense)
    refused = ended(agent.post("models/import", path=asked, name="nonsense")["job"])
    assert refused["state"] == "failed"
    assert refused["error"]["message"]
    agent.post("quit")
    app.until_ended()
