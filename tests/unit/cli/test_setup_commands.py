"""What the installer asks: only the installed app's processes are ended, only ours is removed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from fleetapp.cli import COMMANDS, main, setup
from fleetapp.fleet import secrets
from fleetapp.fleet.authority import Authority
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the installed app's; programs in it merely wait."""
    root = tmp_path / "José Müller-測試" / "Programs" / "FleetApp"
    (root / "python").mkdir(parents=True)
    for name in (setup.TRAY, "fleetapp-worker.exe"):
        shutil.copy2(shutil.which("sleep") or "", root / name)
    monkeypatch.setattr(sys, "executable", str(root / "fleetapp-worker.exe"))
    monkeypatch.setenv("FLEETAPP_HOME", str(tmp_path / "home"))
    return root


@pytest.fixture
def start(program: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def begin(name: str) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen([program / name, "60"]))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait(10)


def test_a_developers_processes_are_nobodys_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "stop"]) == 2
    assert main(["setup", "clean", "--data"]) == 2
    assert "installed Windows app only" in capsys.readouterr().err


def test_they_are_not_on_the_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "setup" in COMMANDS
    assert " setup" not in said


def test_nothing_running_is_nothing_to_do(program: Path) -> None:
    assert main(["setup", "stop"]) == 0


def test_what_hangs_is_ended_and_others_are_left_alone(
    program: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.end, "__defaults__", (0.2,))
    bystander = subprocess.Popen(["sleep", "60"])
    worker = start("fleetapp-worker.exe")
    try:
        assert main(["setup", "stop"]) == 0
        worker.wait(5)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait(5)


def test_the_installer_learns_that_the_desktop_app_ran(
    program: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.end, "__defaults__", (0.2,))
    start(setup.TRAY)
    # asked with --quit, `sleep` refuses at once; then the end is enforced
    assert main(["setup", "stop"]) == setup.TRAY_WAS_RUNNING


def fill(home: Path) -> None:
    kept = ("identity/device.key", "models/m.bin", "chats.db")
    made = ("cache/python/x.pyc", "logs/agent.jsonl", "api-token", "agent.json", "agent.lock.pid")
    for name in kept + made:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"x")


def test_cleaning_keeps_what_cannot_be_made_anew(program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    fill(home)
    assert main(["setup", "clean"]) == 0
    left = sorted(str(p.relative_to(home)) for p in home.rglob("*") if p.is_file())
    assert left == ["chats.db", "identity/device.key", "models/m.bin"]


def test_cleaning_all_leaves_nothing(program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    fill(home)
    assert main(["setup", "clean", "--data"]) == 0
    assert not home.exists()


def test_a_folder_in_which_nothing_was_kept_goes_too(program: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "cache").mkdir(parents=True)
    assert main(["setup", "clean"]) == 0
    assert not home.exists()


def test_a_coordinators_passphrase_leaves_the_credential_store(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Vault:
        kept: ClassVar[dict[tuple[str, str], str]] = {}

        def set_password(self, service: str, name: str, secret: str) -> None:
            self.kept[service, name] = secret

        def get_password(self, service: str, name: str) -> str | None:
            return self.kept.get((service, name))

        def delete_password(self, service: str, name: str) -> None:
            del self.kept[service, name]

    monkeypatch.delenv("FLEETAPP_KEYRING", raising=False)
    monkeypatch.setitem(secrets.SecretStore.__init__.__kwdefaults__ or {}, "backend", Vault)
    paths = Paths(tmp_path / "home")
    Authority.create(
        paths, FakePlatform(), secrets.SecretStore(paths.hub, environ={}, backend=Vault)
    )
    assert Vault.kept
    assert main(["setup", "clean"]) == 0
    assert Vault.kept, "what was kept must be of use"
    assert main(["setup", "clean", "--data"]) == 0
    assert not Vault.kept
