"""``fleetapp model …`` as a person or a script uses it."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from fleetapp.cli import main
from fleetapp.cli.model import model, showing
from fleetapp.errors import CorruptModel, LicenceNotAccepted, NotFound
from fleetapp.models import catalog, fetch
from fleetapp.models.catalog import Entry, HubSource
from fleetapp.models.manifest import digest
from fleetapp.models.progress import Progress
from fleetapp.types import ModelId
from tests.support.file_server import FileServer
from tests.support.tiny_models import TinyModel

Cli = Callable[..., Result]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command on a state folder of its own; FleetErrors come out as exceptions."""
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path / "José 測試 home"))

    def invoke(*arguments: object, fails: bool = False) -> Result:
        result = CliRunner().invoke(model, [str(a) for a in arguments])
        if result.exception is not None and not fails:
            raise result.exception
        return result

    return invoke


def test_a_model_from_import_to_removal(cli: Cli, tiny: dict[str, TinyModel]) -> None:
    done = cli("import", tiny["llama"].path, "--name", "Mine", "--json")
    assert json.loads(done.stdout) | {"bytes": 0} == {
        "id": "mine",
        "family": "llama",
        "layers": 3,
        "bytes": 0,
        "context_length": 512,
        "quantization": "GGUF Q8_0",
        "licence": "CC0-1.0",
        "source": "llama.gguf",
        "revision": json.loads(done.stdout)["revision"],
        "eos_ids": [2],
        "vocab_size": 269,
        "chat": True,
    }
    listed = cli("list")
    assert "mine" in listed.stdout
    assert "smollm2-135m-instruct" in listed.stderr
    assert "Apache-2.0" in listed.stderr
    assert [m["id"] for m in json.loads(cli("list", "--json").stdout)] == ["mine"]
    shown = cli("show", "mine").stdout
    assert "CC0-1.0" in shown
    assert "512 tokens" in shown
    assert json.loads(cli("show", "mine", "--json").stdout)["architecture"]["layers"] == 3
    assert "mine is intact, 0 stages checked" in cli("verify", "mine").stdout
    deep = json.loads(cli("verify", "mine", "--deep", "--json").stdout)
    assert deep["damaged"] == []
    assert deep["max_difference"] < 1e-3
    assert "is removed" in cli("remove", "mine").stdout
    assert json.loads(cli("list", "--json").stdout) == []


def test_damage_is_shown_and_is_an_error(
    cli: Cli, tiny: dict[str, TinyModel], tmp_path: Path
) -> None:
    cli("import", tiny["llama"].path)
    weights = next(tmp_path.rglob("imported/llama/openvino_model.bin"))
    weights.write_bytes(b"\0" + weights.read_bytes()[1:-1] + b"\0")
    result = cli("verify", "llama", "--json", fails=True)
    assert isinstance(result.exception, CorruptModel)
    assert "model remove llama" in result.exception.remedy
    assert json.loads(result.stdout)["damaged"] == ["openvino_model.bin"]


def test_get_from_a_hub(
    cli: Cli, tiny: dict[str, TinyModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny["qwen2"].path.read_bytes()
    with FileServer(data).running() as hub:
        hub.headers = {"X-Linked-ETag": f'"{digest(data)}"', "X-Linked-Size": str(len(data))}
        monkeypatch.setenv(fetch.HUB_VARIABLE, hub.url)
        got = cli("get", "hf:owner/repo/Tiny.gguf")
        assert "tiny is ready: qwen2, 3 layers" in got.stdout
        assert "downloading" in got.stderr
        assert "from the model hub (owner/repo)" in got.stderr
        assert "is ready" in cli("get", "hf:owner/repo/Tiny.gguf").stdout, "here already"


def test_terms_are_agreed_to_by_an_option(
    cli: Cli, tiny: dict[str, TinyModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny["llama"].path.read_bytes()
    source = HubSource("owner/repo", "main", "x.gguf")
    entry = Entry(ModelId("guarded"), "Guarded", "gemma", digest(data), len(data), (source,))
    monkeypatch.setattr(catalog, "find", lambda _: entry)
    with FileServer(data).running() as hub:
        monkeypatch.setenv(fetch.HUB_VARIABLE, hub.url)
        assert isinstance(cli("get", "guarded", fails=True).exception, LicenceNotAccepted)
        assert hub.requests == []
        assert "guarded is ready" in cli("get", "guarded", "--accept-licence").stdout


def test_a_name_nobody_knows(cli: Cli) -> None:
    for command in ("get", "show", "verify", "remove"):
        assert isinstance(cli(command, "nobody", fails=True).exception, NotFound)


@pytest.mark.parametrize("data", [b"", b"no model", b"GGUF\3\0\0\0"])
def test_bad_files_end_with_one_sentence_and_a_remedy(
    tmp_path: Path, data: bytes, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path / "home"))
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    assert main(["model", "import", str(path)]) == 4
    lines = capfd.readouterr().err.strip().splitlines()
    assert lines[0].startswith("Error: x.gguf")
    assert len(lines) == 2


def test_progress_has_phases_amounts_and_time_left() -> None:
    out = io.StringIO()
    with showing(Console(file=out, force_terminal=True, width=120)) as show:
        show(Progress("downloading", 0, 1 << 20, message="from a hub"))
        show(Progress("downloading", 1 << 19, 1 << 20))
        show(Progress("checking", 1, 4, "steps", "half [bold]way"))
    text = out.getvalue()
    assert "512.0 KiB of 1.0 MiB" in text
    assert "from a hub" in text
    assert "half [bold]way" in text, "what comes from elsewhere is no markup"
    assert "0:00:00" in text or "-:--:--" in text


def test_progress_in_a_pipe_is_a_line_a_phase() -> None:
    out = io.StringIO()
    with showing(Console(file=out)) as show:
        for done in range(0, 1001, 10):
            show(Progress("downloading", done, 1000))
        show(Progress("checking", 0, 4, "steps"))
    assert out.getvalue() == "downloading 1000 B\nchecking\n"
