"""The worker process: what it finds, how it dies, and that it never stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from fleetapp.errors import CannotSplit, CorruptModel, NotAModel
from fleetapp.models import child
from fleetapp.models.child import Request, Watch, WorkerDied
from fleetapp.models.progress import Progress
from tests.support.tiny_models import TinyModel


def workers() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "fleetapp.models.worker" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def until(condition: Callable[[], object], deadline: float = 30.0) -> None:
    """Look until it is so; fails after the deadline."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_result_comes_back_and_nobody_stays(irs: dict[str, Path], tmp_path: Path) -> None:
    seen: list[Progress] = []
    found = child.examine(irs["llama"], tmp_path, seen.append)
    assert found.facts.layers == 3
    assert found.max_difference is not None
    assert found.max_difference <= 1e-6
    assert {p.phase for p in seen} == {"inspecting", "checking"}
    assert workers() == []


def test_an_error_keeps_its_class_sentence_and_remedy(irs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(CannotSplit, match="Layers 5-6 are not within the model's 0-2"):
        child.run(Request("split", str(irs["llama"]), str(tmp_path), 5, 7))
    (tmp_path / "x.xml").write_text("<html>")
    with pytest.raises(CorruptModel) as failure:
        child.run(Request("examine", str(tmp_path / "x.xml"), str(tmp_path)))
    assert failure.value.remedy == CorruptModel.default_remedy


def test_a_fault_nobody_foresaw_is_told_with_the_last_words(tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match=r"ended with code 1.*no such job") as failure:
        child.run(Request("dance", str(tmp_path / "x")))
    assert failure.value.exit_code == NotAModel.exit_code


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_is_killed_is_named_with_its_signal(
    tiny: dict[str, TinyModel], tmp_path: Path
) -> None:
    """As when a native library crashes or the system runs out of memory."""
    source = tmp_path / "model.gguf"
    source.symlink_to(tiny["llama"].path)

    def kill(_: Progress) -> None:
        for process in workers():
            process.send_signal(signal.SIGKILL)

    with pytest.raises(WorkerDied, match=r"'convert' of model\.gguf was ended by signal 9"):
        child.run(Request("convert", str(source), str(tmp_path)), kill)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_hangs_is_ended(tiny: dict[str, TinyModel], tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.symlink_to(tiny["llama"].path)

    def stop(_: Progress) -> None:
        for process in workers():
            process.suspend()

    began = time.monotonic()
    with pytest.raises(WorkerDied, match="no sign of life"):
        child.run(Request("convert", str(source), str(tmp_path)), stop, silence=0.6)
    assert time.monotonic() - began < 10
    assert workers() == []


def test_growing_files_are_a_sign_of_life_and_are_shown(
    tiny: dict[str, TinyModel], tmp_path: Path
) -> None:
    source = tmp_path / "model.gguf"
    source.symlink_to(tiny["llama"].path)
    seen: list[Progress] = []
    child.run(
        Request("convert", str(source), str(tmp_path)),
        seen.append,
        watch=Watch(tmp_path, "converting", 10_000_000),
    )
    grown = [p.done for p in seen if p.total == 10_000_000]
    assert grown
    assert grown == sorted(grown)


PARENT = """
import sys
from fleetapp.models import child
from fleetapp.models.progress import Progress
def show(p):
    print(p.phase, flush=True)
child.run(child.Request("examine", sys.argv[1], sys.argv[2]), show)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_worker_never_outlives_its_parent(
    irs: dict[str, Path], tmp_path: Path, how: signal.Signals
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(irs["llama"]), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"inspecting\n"
    worker = psutil.Process(parent.pid).children()[0]
    os.kill(parent.pid, how)
    parent.wait(timeout=30)
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
    parent.stdout.close()


def test_two_workers_at_once_do_not_mix_up_their_answers(
    irs: dict[str, Path], tmp_path: Path
) -> None:
    outcome: dict[str, str] = {}

    def work(arch: str, stop: int) -> None:
        folder = tmp_path / arch
        folder.mkdir()
        try:
            child.run(Request("split", str(irs[arch]), str(folder), 0, stop))
            outcome[arch] = "done"
        except CannotSplit as e:
            outcome[arch] = e.message

    threads = [
        threading.Thread(target=work, args=("llama", 2)),
        threading.Thread(target=work, args=("qwen2", 9)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert outcome["llama"] == "done"
    assert "0-8 are not within" in outcome["qwen2"]


def test_importing_models_reports_nothing_to_anybody() -> None:
    """OpenVINO would send usage to a web service, from a process forked for it."""
    code = (
        "import os, sys\n"
        "os.fork = lambda: sys.exit('forked')\n"
        "import fleetapp.models, openvino, openvino_genai\n"
        "assert sys.modules['openvino_telemetry'] is None\n"
        "import threading\n"
        "[t.join(2) for t in threading.enumerate() if t is not threading.main_thread()]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


LIGHT = ("manifest", "store", "library", "catalog", "fetch", "cuts", "chunking", "gguf_check")


@pytest.mark.parametrize("module", LIGHT)
def test_what_the_agent_imports_loads_no_native_inference_code(module: str) -> None:
    code = (
        f"import sys, fleetapp.models.{module}\n"
        "assert not [m for m in sys.modules if m.split('.')[0].startswith('openvino') "
        "and sys.modules[m]]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
