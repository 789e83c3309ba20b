"""A second start raises the first; what a dead process left counts for nothing (trap T27)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QProcess, QProcessEnvironment
from pytestqt.qtbot import QtBot

from fleetapp.errors import ReadOnly
from ui.instance import SingleInstance

ROOT = Path(__file__).resolve().parents[2]
SLOW = 30_000

HOLD = """
import sys, pathlib
from PySide6.QtCore import QCoreApplication
from ui.instance import SingleInstance
app = QCoreApplication([])
instance = SingleInstance(pathlib.Path(sys.argv[1]))
print(instance.claim(), flush=True)
app.exec()
"""


def test_a_second_start_raises_the_first_and_ends_well(qtbot: QtBot, home: Path) -> None:
    first = SingleInstance(home)
    assert first.claim()
    environment = QProcessEnvironment.systemEnvironment()
    environment.insert("FLEETAPP_HOME", str(home))
    environment.insert("QT_QPA_PLATFORM", "offscreen")
    second = QProcess()
    second.setWorkingDirectory(str(ROOT))
    second.setProcessEnvironment(environment)
    with qtbot.waitSignals([first.raised, second.finished], timeout=SLOW):
        second.start(sys.executable, ["-m", "ui.app"])
    assert second.exitCode() == 0, second.readAllStandardError().data().decode()
    assert not (home / "logs").exists(), "it must not have started an agent"
    first.release()


def start_with_quit(home: Path, second: QProcess) -> None:
    environment = QProcessEnvironment.systemEnvironment()
    environment.insert("FLEETAPP_HOME", str(home))
    environment.insert("QT_QPA_PLATFORM", "offscreen")
    second.setWorkingDirectory(str(ROOT))
    second.setProcessEnvironment(environment)
    second.start(sys.executable, ["-m", "ui.app", "--quit"])


def test_an_installer_can_ask_the_first_to_quit(qtbot: QtBot, home: Path) -> None:
    first = SingleInstance(home)
    assert first.claim()
    first.quit_wanted.connect(first.release)
    second = QProcess()
    with qtbot.waitSignals([first.quit_wanted, second.finished], timeout=SLOW):
        start_with_quit(home, second)
    assert second.exitCode() == 0, second.readAllStandardError().data().decode()
    assert not (home / "logs").exists(), "it must not have started an agent"
    heir = SingleInstance(home)
    assert heir.claim(), "whoever asked must not keep the lock"
    heir.release()


def test_asking_nobody_to_quit_is_fine(qtbot: QtBot, home: Path) -> None:
    second = QProcess()
    with qtbot.waitSignal(second.finished, timeout=SLOW):
        start_with_quit(home, second)
    assert second.exitCode() == 0, second.readAllStandardError().data().decode()


def test_lock_and_socket_of_a_killed_app_are_ignored(qtbot: QtBot, home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "True"
        holder.kill()
        holder.wait(10)
    assert (home / "tray.lock").exists()
    heir = SingleInstance(home)
    assert heir.claim()
    heir.release()


def test_two_state_folders_have_an_app_each(qtbot: QtBot, tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    for folder in homes:
        folder.mkdir()
    instances = [SingleInstance(folder) for folder in homes]
    assert [instance.claim() for instance in instances] == [True, True]
    for instance in instances:
        instance.release()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="nothing is read-only to this user"
)
def test_a_read_only_state_folder_is_said(qtbot: QtBot, home: Path) -> None:
    home.chmod(0o500)
    with pytest.raises(ReadOnly):
        SingleInstance(home).claim()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is a screen")
@pytest.mark.parametrize(
    ("options", "code", "says"), [([], 2, "fleetapp agent"), (["--quit"], 0, "")]
)
def test_without_a_screen_it_says_so_and_quits_others(
    home: Path, options: list[str], code: int, says: str
) -> None:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    done = subprocess.run(
        [sys.executable, "-m", "ui.app", *options],
        cwd=ROOT,
        env={**environment, "FLEETAPP_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert says in done.stderr
