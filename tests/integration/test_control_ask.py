"""``fleetapp ask`` on a PC that is not the coordinator."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def in_the_middle(fleet: Served) -> Iterator[Callable[[], tuple[int, str]]]:
    """A long answer that has begun; the value waits for its end: exit code and what was said."""
    fleet.wait_live(2)
    asking = ask(fleet, "Write a very long story about a lighthouse.", "--max-tokens", "1500")
    assert asking.stdout is not None
    begun = asking.stdout.read(20)
    assert begun.strip(), "the answer had begun"
    # Read on, or the pipe would fill up and hold the answer back.
    reader = threading.Thread(target=asking.stdout.read)
    reader.start()

    def end() -> tuple[int, str]:
        assert asking.stderr is not None
        said = asking.stderr.read().decode("utf-8", "replace")
        return asking.wait(10), said

    try:
        yield end
    finally:
        asking.kill()
        asking.wait(10)
        reader.join(5)
        for pipe in (asking.stdout, asking.stderr):
            assert pipe is not None
            pipe.close()


def admin(fleet: Served, *line: str) -> str:
    """A command on the coordinator."""
    command = [sys.executable, "-m", "fleetapp.cli", *line, "--state", str(fleet.folder / "pc-1")]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True
    ).stdout


def test_whoever_is_shut_out_in_the_middle_is_told_so(fleet: Served) -> None:
    with in_the_middle(fleet) as end:
        admin(fleet, "fleet", "revoke", "pc-2", "--yes")
        code, said = end()
    admin(fleet, "fleet", "reinstate", "pc-2")
    assert code == 6, said
    assert "This PC was removed from the fleet" in said
    assert "fleetapp fleet leave" in said
    assert "coordinator" not in said


def test_an_agent_that_is_killed_in_the_middle_is_the_own_one(fleet: Served) -> None:
    with in_the_middle(fleet) as end:
        fleet.agents()["pc-2"].kill()
        code, said = end()
    assert code == 8, said
    assert "This PC's own agent ended" in said
    assert "coordinator" not in said


def test_a_coordinator_that_dies_in_the_middle_is_an_error_and_no_clean_end(fleet: Served) -> None:
    with in_the_middle(fleet) as end:
        fleet.agents()["pc-1"].kill()
        code, said = end()
    assert code == 8, said
    assert "coordinator" in said
    assert "Traceback" not in said
    fleet.wait_live(2)
    out, err = ask(fleet, "What is the capital of France?", "--max-tokens", "24").communicate(
        timeout=90
    )
    assert b"Paris" in out, err
