"""Splitting a large model takes no more memory than splitting a small one."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from fleetapp.models import child
from tests.support.optimum_like import optimum_like, random_bytes

MB = 1_000_000


def anonymous(pid: int) -> int:
    """Bytes of a process that no file backs; mapped weights can be dropped at any time."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def peak_of_a_split(source: Path, folder: Path) -> int:
    """Largest anonymous memory of the worker that cuts layers 1 to 2 out."""
    folder.mkdir()
    peak, over = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.is_set():
            for process in psutil.Process().children():
                try:
                    if "fleetapp.models.worker" in process.cmdline():
                        peak = max(peak, anonymous(process.pid))
                except (psutil.Error, OSError):
                    continue
            time.sleep(0.005)  # a sampling interval, not a wait

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        child.run(child.Request("split", str(source), str(folder), 1, 3))
    finally:
        over.set()
        watcher.join()
    return peak


BIG = """
import sys
from pathlib import Path
import fleetapp.models
from tests.support.optimum_like import optimum_like, random_bytes
optimum_like(Path(sys.argv[1]), 4, hidden=1024, heads=8, kv_heads=8, ffn=15000, vocab=32000,
             weight=random_bytes(1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_of_a_split_does_not_grow_with_the_model(tmp_path: Path) -> None:
    small = optimum_like(tmp_path / "small", 4, weight=random_bytes(0))
    # in a process of its own: making it does take its size in memory
    subprocess.run([sys.executable, "-c", BIG, str(tmp_path / "big")], check=True, timeout=120)
    big = tmp_path / "big" / "openvino_model.xml"
    assert big.with_suffix(".bin").stat().st_size > 400 * MB
    baseline = peak_of_a_split(small, tmp_path / "a")
    peak = peak_of_a_split(big, tmp_path / "b")
    assert (tmp_path / "b" / "stage.bin").stat().st_size > 200 * MB
    assert peak < baseline + 32 * MB, f"{peak / MB:.0f} MB against {baseline / MB:.0f} MB"
    print(f"split of 464 MB: {peak / MB:.0f} MB anonymous; of 1 MB: {baseline / MB:.0f} MB")
