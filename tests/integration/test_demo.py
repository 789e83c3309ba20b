"""What a new user sees first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from tests.support.served import Served

pytestmark = pytest.mark.model


def demo(library: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fleetapp.cli", "demo", *args],
        env={**os.environ, "FLEETAPP_MODELS_DIR": str(library), **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=150,
        check=False,
    )


def marked(mark: str) -> list[psutil.Process]:
    """Processes that inherited FLEETAPP_TEST_MARK, whoever else runs demos on this machine."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FLEETAPP_TEST_MARK") == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_three_pcs_say_paris_and_leave_nothing(library: Path, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    done = demo(library, "--json", FLEETAPP_TEST_MARK=mark, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "Paris" in result["answer"]
    assert len(result["nodes"]) == 3
    assert len({n["device_id"] for n in result["nodes"]}) == 3, "three identities"
    assert result["plan"]["layers"][0][0] == 0
    assert result["plan"]["layers"][-1][1] == 30
    assert len(result["token_ids"]) > 0
    assert result["ttft_ms"] > 0
    assert result["tokens_per_second"] > 0
    assert len(result["bytes_per_hop"]) == 3
    assert all(h["bytes"] > 0 for h in result["bytes_per_hop"])
    assert list(tmp_path.glob("fleetapp-*")) == []
    assert marked(mark) == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--nodes", "0"), "--nodes must be between"),
        (("--nodes", "999"), "--nodes must be between"),
        (("--max-tokens", "0"), "--max-tokens must be 1 or more"),
        (("--max-tokens", "-1"), "--max-tokens must be 1 or more"),
        (("--prompt", "  "), "--prompt is empty"),
        (("--model", "no-such-model"), "no-such-model"),
    ],
)
def test_bad_options_say_what_is_wrong(library: Path, args: tuple[str, ...], says: str) -> None:
    done = demo(library, *args)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_no_process_and_no_file(library: Path) -> None:
    with Served(2, "fast", library) as fleet:
        folder = fleet.folder
        children = psutil.Process(fleet.process.pid).children(recursive=True)  # type: ignore[union-attr]
        assert len(children) == 4, "two agents with a runner each"
        assert fleet.stop() == 130
    assert not folder.exists()
    _, alive = psutil.wait_procs(children, timeout=3)
    assert alive == []


def test_a_killed_demo_takes_its_agents_with_it(library: Path) -> None:
    with Served(1, "fast", library) as fleet:
        assert fleet.process is not None
        children = psutil.Process(fleet.process.pid).children(recursive=True)
        folder = fleet.folder
        fleet.process.kill()
        _, alive = psutil.wait_procs(children, timeout=15)
        assert alive == []
    done = demo(library, "--nodes", "1", "--max-tokens", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert not folder.exists(), "the next demo sweeps what a killed one left"
