"""A real agent gets, imports, serves and removes models, and leaves nothing behind when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fleetapp.errors import BadRequest, Busy, DiskFull, NotAModel, NotFound
from fleetapp.models.manifest import digest
from tests.support.agents import AgentProcess
from tests.support.file_server import FileServer
from tests.support.sample_model import sample_gguf
from tests.support.tiny_models import tiny_gguf

ADDRESS = "hf:owner/repo/Tiny.gguf"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a few megabytes."""
    folder = tmp_path_factory.mktemp("José 測試")
    return tiny_gguf(folder / "Tiny.gguf", "llama", 3, quant="Q8_0", seed=3).path


@pytest.fixture
def hub(gguf: Path) -> Iterator[FileServer]:
    data = gguf.read_bytes()
    with FileServer(data).running() as server:
        server.headers = {"X-Linked-ETag": f'"{digest(data)}"', "X-Linked-Size": str(len(data))}
        yield server


@pytest.fixture
def agent(tmp_path: Path, hub: FileServer) -> Iterator[AgentProcess]:
    with AgentProcess(tmp_path / "José home", hub_url=hub.url) as running:
        yield running


def job_of(agent: AgentProcess, model: str) -> dict[str, Any]:
    """The job that the view shows for a model."""
    (job,) = [j for j in agent.get("models")["jobs"] if j["model"] == model]
    return dict(job)


def until(agent: AgentProcess, model: str, state: str, deadline: float = 120.0) -> dict[str, Any]:
    """Wait until its job is over, and say that it ended like this."""
    agent.until(lambda a: job_of(a, model)["state"] != "running", deadline)
    job = job_of(agent, model)
    assert job["state"] == state, job
    return job


def wait_for(true: Callable[[], object], deadline: float = 30.0) -> None:
    end = time.monotonic() + deadline
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def below(agent: AgentProcess) -> list[psutil.Process]:
    return psutil.Process(agent.pid).children(recursive=True)


def names(view: Any) -> list[str]:
    return [model["id"] for model in view["library"]]


def test_a_model_is_got_served_and_removed(agent: AgentProcess, hub: FileServer) -> None:
    view = agent.get("models")
    assert (view["library"], view["jobs"]) == ([], [])
    assert view["folder"] == str(agent.home / "models")
    (entry,) = [c for c in view["catalog"] if c["default"]]
    assert (entry["id"], entry["in_library"]) == ("smollm2-135m-instruct", False)
    assert entry["licence"]["id"] == "Apache-2.0"
    assert entry["licence"]["url"].startswith("https://")
    agent.create()
    agent.post("contribute", on=True)

    begun = agent.post("models/get", model=ADDRESS)
    assert (begun["kind"], begun["model"], begun["state"]) == ("get", "tiny", "running")
    assert until(agent, "tiny", "done")["job"] == begun["job"]
    (model,) = agent.get("models")["library"]
    assert model | {"bytes": 0} == {
        "id": "tiny",
        "title": "tiny",
        "licence": {
            "id": "CC0-1.0",
            "url": "https://creativecommons.org/publicdomain/zero/1.0/",
            "accept": False,
        },
        "bytes": 0,
        "layers": 3,
        "context": 512,
        "architecture": "llama",
        "quantisation": "GGUF Q8_0",
        "source": "the model hub (owner/repo)",
        "chat": True,
    }
    asked = len(hub.requests)
    again = agent.post("models/get", model=ADDRESS)
    assert (again["state"], len(hub.requests)) == ("done", asked), "it is here already"

    agent.post("models/start", model="tiny")  # at once, no restart
    agent.until(lambda a: [c["state"] for c in a.get("fleet")["chains"]] == ["live"], 90.0)
    answer = agent.call("POST", "v1/completions", {"model": "tiny", "prompt": "a", "max_tokens": 3})
    assert answer["usage"]["completion_tokens"] >= 1
    with pytest.raises(Busy, match="'tiny' is being served") as refused:
        agent.post("models/remove", model="tiny")
    assert "unserve tiny" in refused.value.remedy
    code = command_line(agent, "remove", "tiny").returncode
    assert code == Busy.exit_code, "the command line asks the agent too"
    assert names(agent.get("models")) == ["tiny"]
    verified = agent.post("models/verify", model="tiny")
    assert verified["kind"] == "verify"
    assert "tiny is intact, 1 stages checked" in until(agent, "tiny", "done")["message"]
    agent.post("models/stop", model="tiny")
    agent.post("models/remove", model="tiny")
    assert names(agent.get("models")) == []
    assert list((agent.home / "models" / "imported").iterdir()) == []
    with pytest.raises(NotFound):
        agent.post("models/remove", model="tiny")


def command_line(agent: AgentProcess, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "fleetapp.cli", "model", *arguments, "--state", str(agent.home)]
    return subprocess.run(line, env=agent.env, capture_output=True, timeout=120, check=False)


def test_the_model_of_one_name_made_anew_is_served_as_it_is_now(
    agent: AgentProcess, gguf: Path, tmp_path: Path
) -> None:
    other = tiny_gguf(tmp_path / "other.gguf", "llama", 2, quant="Q8_0", seed=8).path
    agent.create()
    agent.post("contribute", on=True)
    for path, layers in ((gguf, 3), (other, 2)):
        agent.post("models/import", path=str(path), name="mine")
        until(agent, "mine", "done")
        agent.post("models/start", model="mine", stages=1)
        agent.until(lambda a: [c["state"] for c in a.get("fleet")["chains"]] == ["live"], 90.0)
        (assignment,) = agent.get("fleet")["chains"][0]["assignments"]
        assert assignment["layers"] == {"start": 0, "stop": layers}
        agent.call("POST", "v1/completions", {"model": "mine", "prompt": "a", "max_tokens": 2})
        agent.post("models/stop", model="mine")
        agent.post("models/remove", model="mine")


def stalled(agent: AgentProcess, hub: FileServer) -> dict[str, Any]:
    """A download that stands still after a part of the file has come."""
    hub.stall_after = len(hub.data) // 2
    job: dict[str, Any] = agent.post("models/get", model=ADDRESS)
    part = agent.home / "models" / "downloads" / f"{digest(hub.data)[:8]}-Tiny.gguf.part"
    wait_for(lambda: part.exists() and part.stat().st_size == len(hub.data) // 2)
    agent.until(lambda a: job_of(a, "tiny")["phase"] == "downloading")
    return job


def test_a_cancelled_download_goes_on_where_it_stopped(
    agent: AgentProcess, hub: FileServer, gguf: Path
) -> None:
    job = stalled(agent, hub)
    # what is shown comes a moment after what has come
    agent.until(lambda a: job_of(a, "tiny")["done"] == len(hub.data) // 2)
    assert job_of(agent, "tiny")["total"] == len(hub.data)
    assert agent.post("models/get", model=ADDRESS)["job"] == job["job"], "asked twice, done once"
    with pytest.raises(Busy, match="worked on"):
        agent.post("models/remove", model="tiny")
    with pytest.raises(Busy, match="worked on already"):
        agent.post("models/import", path=str(gguf), name="tiny")
    ended = agent.post("models/cancel", job=job["job"])
    assert ended["state"] == "cancelled"
    assert below(agent) == []
    hub.requests.clear()
    agent.post("models/get", model=ADDRESS)
    until(agent, "tiny", "done")
    ranges = [r for method, _, r in hub.requests if method == "GET"]
    assert ranges == [f"bytes={len(hub.data) // 2}-"]
    assert agent.post("models/cancel", job=job_of(agent, "tiny")["job"])["state"] == "done"
    assert agent.get("models")["jobs"] == [], "put away"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_an_agent_that_ends_leaves_nobody_behind_and_the_next_one_goes_on(
    agent: AgentProcess, hub: FileServer, how: str
) -> None:
    stalled(agent, hub)
    left = below(agent)
    assert left
    getattr(agent, how)()
    _, alive = psutil.wait_procs(left, timeout=10)
    assert alive == []
    agent.start()
    job = job_of(agent, "tiny")
    assert (job["state"], job["error"]["code"], job["asked"]) == ("failed", "interrupted", ADDRESS)
    hub.requests.clear()
    agent.post("models/get", model=job["asked"])
    until(agent, "tiny", "done")
    ranges = [r for method, _, r in hub.requests if method == "GET"]
    assert ranges == [f"bytes={len(hub.data) // 2}-"]
    agent.stop()
    agent.start()
    assert agent.get("models")["jobs"] == [], "what was done is not brought up again"


def test_refusals_come_before_anything_is_begun(
    agent: AgentProcess, gguf: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="The catalogue has no model 'nobody'"):
        agent.post("models/get", model="nobody")
    with pytest.raises(BadRequest, match="absolute"):
        agent.post("models/import", path="Tiny.gguf")
    with pytest.raises(NotAModel, match="There is no file or folder"):
        agent.post("models/import", path=str(tmp_path / "nothing.gguf"))
    with pytest.raises(NotFound):
        agent.post("models/verify", model="nobody")
    with pytest.raises(NotFound):
        agent.post("models/cancel", job="nothing")
    big = tmp_path / "big.gguf"
    with big.open("wb") as file:
        file.truncate(10 * 2**40)
    with pytest.raises(DiskFull, match=r"Importing big\.gguf needs"):
        agent.post("models/import", path=str(big))
    assert agent.get("models")["jobs"] == []
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"no model")
    agent.post("models/import", path=str(bad))
    failed = until(agent, "bad", "failed")
    assert failed["error"]["code"] in ("not_a_model", "corrupt_model")
    assert failed["error"]["message"].startswith("bad.gguf")


@pytest.mark.model
def test_an_import_that_is_cancelled_leaves_no_half_made_model(
    agent: AgentProcess, tmp_path: Path
) -> None:
    path = sample_gguf()
    job = agent.post("models/import", path=str(path), name="sample")
    work = agent.home / "models" / "work"
    wait_for(lambda: any(work.rglob("*.bin")) or job_of(agent, "sample")["state"] != "running", 90)
    assert agent.post("models/cancel", job=job["job"])["state"] == "cancelled"
    assert below(agent) == []
    wait_for(lambda: not work.exists(), 10)
    assert names(agent.get("models")) == []


def test_the_command_line_works_beside_it_and_is_seen(
    agent: AgentProcess, gguf: Path, hub: FileServer
) -> None:
    """Two processes after one model: one fetches it, the other waits and finds it there."""
    stalled(agent, hub)
    line = [sys.executable, "-m", "fleetapp.cli", "model", "get", ADDRESS]
    other = subprocess.Popen(
        [*line, "--state", str(agent.home)],
        env=agent.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert other.stderr is not None
    assert b"another fleetapp is fetching this model" in other.stderr.readline()
    agent.post("models/cancel", job=job_of(agent, "tiny")["job"])
    out, _ = other.communicate(timeout=120)
    assert other.returncode == 0
    assert out.startswith(b"tiny is ready")
    assert names(agent.get("models")) == ["tiny"]
    assert command_line(agent, "import", str(gguf), "--name", "second").returncode == 0
    assert names(agent.get("models")) == ["second", "tiny"]
    assert command_line(agent, "remove", "second").returncode == 0
    assert names(agent.get("models")) == ["tiny"]


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_sample_model_answers_after_its_import(agent: AgentProcess) -> None:
    agent.create()
    agent.post("contribute", on=True)
    agent.post("models/import", path=str(sample_gguf()), name="smollm2-135m-instruct")
    phases = set()

    def over(a: AgentProcess) -> bool:
        job = job_of(a, "smollm2-135m-instruct")
        phases.add(job["phase"])
        return str(job["state"]) != "running"

    agent.until(over, 240.0)
    until(agent, "smollm2-135m-instruct", "done")
    assert phases >= {"converting", "checking"}
    view = agent.get("models")
    assert view["library"][0]["title"].startswith("SmolLM2 135M Instruct")
    assert next(c for c in view["catalog"] if c["default"])["in_library"]
    agent.post("models/start", model="smollm2-135m-instruct")
    agent.until(lambda a: [c["state"] for c in a.get("fleet")["chains"]] == ["live"], 90.0)
    body = {
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "max_tokens": 24,
    }
    answer = agent.call("POST", "v1/chat/completions", body)
    assert "Paris" in answer["choices"][0]["message"]["content"]
