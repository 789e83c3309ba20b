"""Trap T27: a second start fights for the port, or a stale lock keeps the first one out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetapp.errors import AlreadyRunning, ReadOnly, StorageError
from fleetapp.platform.lock import InstanceLock

HOLD = (
    "import sys; from pathlib import Path; from fleetapp.platform.lock import InstanceLock\n"
    "lock = InstanceLock(Path(sys.argv[1])).acquire(); print('held', flush=True)\n"
    "sys.stdin.read()\n"
)


def holder(lock: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"held"
    return process


def test_a_second_start_is_refused_and_names_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "José 測試" / "agent.lock"
    lock.parent.mkdir()
    process = holder(lock)
    try:
        with pytest.raises(AlreadyRunning, match=f"process {process.pid}"):
            InstanceLock(lock).acquire()
    finally:
        process.kill()
        process.communicate(timeout=30)


def test_the_lock_of_a_killed_process_is_ignored(tmp_path: Path) -> None:
    lock = tmp_path / "agent.lock"
    process = holder(lock)
    process.kill()
    process.communicate(timeout=30)
    with InstanceLock(lock) as mine:
        assert mine.owner() == os.getpid()


def test_left_over_files_lock_nobody_out(tmp_path: Path) -> None:
    lock = tmp_path / "agent.lock"
    lock.write_text("garbage")
    lock.with_name("agent.lock.pid").write_text("not a number")
    with InstanceLock(lock) as mine:
        assert mine.held


def test_within_one_process_too_only_one_holds_it_and_release_lets_the_next_in(
    tmp_path: Path,
) -> None:
    first, second = InstanceLock(tmp_path / "l"), InstanceLock(tmp_path / "l")
    first.acquire()
    with pytest.raises(AlreadyRunning):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/sys refuses even root")
def test_a_folder_that_cannot_be_written_is_said_to_be_so() -> None:
    with pytest.raises((ReadOnly, StorageError)):
        InstanceLock(Path("/sys/agent.lock")).acquire()
