"""The wheel as pipx installs it: an environment of its own, both programs, all resources."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINUX = ROOT / "resources/linux"
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has an installer"),
]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin of a new environment with the wheel in it. Its dependencies are those of this one, which
    saves a gigabyte; `pipx install` with all of them is on the release checklist.
    """
    folder = tmp_path_factory.mktemp("José 測試")
    pip = [sys.executable, "-m", "pip"]
    built = subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "dist"), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"no wheel can be built here: {built.stderr[-300:]}")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=300)
    python = folder / "venv/bin/python"
    wheel = next((folder / "dist").glob("*.whl"))
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel],
        check=True,
        timeout=300,
    )
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python.parent


def run(program: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        cwd=program.parent,  # not the checkout, whose packages would be taken instead
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_both_programs_run(fresh: Path, tmp_path: Path) -> None:
    said = run(fresh / "fleetapp", "--version")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("fleetapp, version")
    tray = run(fresh / "fleetapp-tray", "--quit", FLEETAPP_HOME=str(tmp_path / "home"))
    assert tray.returncode == 0, tray.stderr


def test_its_code_is_its_own_and_complete(fresh: Path) -> None:
    code = "import fleetapp, ui, resources; print(fleetapp.__file__, ui.__file__)"
    assert str(fresh.parent) in run(fresh / "python", "-c", code).stdout
    listed = subprocess.run(
        ["git", "ls-files", "-z", "fleetapp", "ui", "resources"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout.decode()
    site = next((fresh.parent / "lib").glob("python*/site-packages"))
    for name in filter(None, listed.split("\0")):
        assert (site / name).is_file(), name
    assert not (site / "tests").exists()
    assert not (site / "installer").exists()


@pytest.mark.parametrize("name", ["fleetapp.desktop", "fleetapp-autostart.desktop"])
def test_desktop_entries_start_what_is_installed(name: str) -> None:
    entry = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    entry.optionxform = str  # type: ignore[assignment,method-assign]
    entry.read(LINUX / name, encoding="utf-8")
    section = entry["Desktop Entry"]
    assert section["Type"] == "Application"
    assert section["Exec"] == section["TryExec"] == "fleetapp-tray"
    assert section["Icon"] == "fleetapp"
    assert "Comment[de]" in section
    if program := shutil.which("desktop-file-validate"):
        subprocess.run([program, LINUX / name], check=True, timeout=30)


def test_the_service_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    unit = (LINUX / "fleetapp-agent.service").read_text("utf-8")
    assert "Restart=on-failure" in unit
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    here = tmp_path / "fleetapp-agent.service"
    here.write_text(unit.replace("%h/.local/bin/fleetapp", "/bin/true"), encoding="utf-8")
    said = subprocess.run(
        [program, "verify", "--user", here], capture_output=True, text=True, timeout=60, check=False
    )
    complaints = [line for line in said.stderr.splitlines() if "fleetapp-agent" in line]
    assert not complaints, complaints
