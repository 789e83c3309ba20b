"""``fleetapp ask`` on a PC that is not the coordinator."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served import Served

pytestmark = [pytest.mark.model, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def fleet(library: Path) -> Iterator[Served]:
    with Served(2, "fast", library) as served:
        yield served


def ask(fleet: Served, question: str, *options: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "fleetapp.cli", "ask", question, *options]
    return subprocess.Popen(
        [*line, "--state", str(fleet.folder / "pc-2")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_a_member_asks_through_the_coordinator(fleet: Served) -> None:
    fleet.wait_live(2)
    out, err = ask(fleet, "What is the capital of France?", "--max-tokens", "24").communicate(
        timeout=60
    )
    assert b"Paris" in out, err


def test_a_coordinator_that_dies_in_the_middle_is_an_error_and_no_clean_end(fleet: Served) -> None:
    fleet.wait_live(2)
    asking = ask(fleet, "Write a very long story about a lighthouse.", "--max-tokens", "1500")
    assert asking.stdout is not None
    begun = asking.stdout.read(20)
    assert begun.strip(), "the answer had begun"
    # Read on, or the pipe would fill up and hold the answer back.
    reader = threading.Thread(target=asking.stdout.read)
    reader.start()
    fleet.agents()["pc-1"].kill()
    assert asking.stderr is not None
    said = asking.stderr.read().decode("utf-8", "replace")
    code = asking.wait(10)
    reader.join(5)
    asking.stderr.close()
    asking.stdout.close()
    assert code == 8, said
    assert "coordinator" in said
    assert "Traceback" not in said
    fleet.wait_live(2)
    out, err = ask(fleet, "What is the capital of France?", "--max-tokens", "24").communicate(
        timeout=90
    )
    assert b"Paris" in out, err
