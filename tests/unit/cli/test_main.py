import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from fleetapp import cli, errors
from tests.support.cli import Run

ROOT = Path(__file__).parents[3]


def walk(cls: type[errors.FleetError]) -> list[type[errors.FleetError]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in walk(sub))]


def test_the_documented_exit_codes_are_those_of_the_error_tree() -> None:
    table = (ROOT / "docs/cli.md").read_text("utf-8").partition("## Exit codes")[2]
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    used = {e.exit_code for e in walk(errors.FleetError) if e.__module__ == "fleetapp.errors"}
    assert documented == used | {0, cli.BROKEN_PIPE}
    assert errors.UserError.exit_code == cli.USAGE
    assert errors.FleetError.exit_code == cli.INTERNAL


def test_every_command_is_documented_and_loads() -> None:
    text = (ROOT / "docs/cli.md").read_text("utf-8")
    context = click.Context(cli.root)
    assert isinstance(cli.root, cli.LazyGroup)
    names = cli.root.list_commands(context)
    assert {"ask", "chat", "fleet", "serve", "unserve", "contribute", "settings", "doctor"} <= set(
        names
    )
    for name in names:
        assert f"`fleetapp {name}" in text
        assert cli.root.get_command(context, name) is not None


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from fleetapp.cli import main; main(['--help']);"
        "heavy = {'aiohttp', 'rich', 'openvino', 'numpy', 'prompt_toolkit', 'PySide6', 'zeroconf'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert b"doctor" in done.stdout


def test_a_command_whose_file_is_missing_is_not_there(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = cli.Lazy("fleetapp.cli.nowhere", "x", "Never seen.")
    monkeypatch.setitem(cli.COMMANDS, "ghost", gone)
    assert "ghost" not in run("--help")[1]
    code, _, err = run("ghost")
    assert code == 2
    assert "ghost" in err


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("ask", "--nonsense"),
        ("serve",),
        ("contribute", "maybe"),
        ("pause", "2 weeks"),
    ],
)
def test_wrong_usage_is_2(run: Run, args: tuple[str, ...]) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_the_state_folder_may_stand_before_or_behind(run: Run, tmp_path: Path) -> None:
    for args in (
        ("--state", str(tmp_path / "a b"), "status"),
        ("status", "--state", str(tmp_path / "a b")),
    ):
        code, _, err = run(*args)
        assert code == errors.AgentNotRunning.exit_code
        assert "a b" in err
        assert os.environ["FLEETAPP_HOME"] == str(tmp_path / "a b")


@pytest.mark.parametrize("debug", [False, True])
def test_tracebacks_only_on_request(run: Run, monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    @click.command()
    def broken() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("fleetapp.cli.keys.keys", broken)
    code, _, err = run(*(["--debug"] if debug else []), "keys")
    assert code == 1
    assert ("Traceback" in err) is debug
    assert "Error: Something went wrong inside fleetapp (ZeroDivisionError: oops)." in err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), errors.Cancelled("Interrupted.")])
def test_an_interrupt_is_130(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    @click.command()
    def interrupted() -> None:
        raise error

    monkeypatch.setattr("fleetapp.cli.keys.keys", interrupted)
    code, _, err = run("keys")
    assert code == 130
    assert "Traceback" not in err


def test_a_broken_pipe_is_quiet(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as broken:
        done = subprocess.run(
            [sys.executable, "-m", "fleetapp.cli", "settings", "list", "--json"],
            stdout=broken,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env={**os.environ, "FLEETAPP_HOME": str(tmp_path)},
        )
    assert done.returncode == cli.BROKEN_PIPE
    assert done.stderr == b""
