"""What was built: signed, complete, pruned, described."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from installer import authenticode
from installer.inputs import pins
from installer.launchers import LAUNCHERS
from installer.paths import WHEELS_LOCK
from tests.packaging.conftest import Built


def test_signatures_hold_and_one_changed_byte_breaks_them(built: Built, tmp_path: Path) -> None:
    files = [built.setup, built.msi, *(built.stage / x.name for x in LAUNCHERS)]
    for file in [f for f in files if f.exists()]:
        assert authenticode.verify(file, built.certificate), file.name
        copy = tmp_path / file.name
        shutil.copy(file, copy)
        with copy.open("r+b") as damaged:
            damaged.seek(copy.stat().st_size // 2)
            byte = damaged.read(1)[0]
            damaged.seek(-1, 1)
            damaged.write(bytes([byte ^ 1]))
        assert not authenticode.verify(copy, built.certificate), file.name
        copy.unlink()


def test_another_certificate_does_not_do(built: Built, tmp_path: Path) -> None:
    stranger = authenticode.test_certificate(tmp_path)
    assert not authenticode.verify(built.stage / LAUNCHERS[0].name, stranger.chain)


def test_the_list_of_parts_names_everything_that_is_shipped(built: Built) -> None:
    bom = json.loads((built.stage / "sbom.cdx.json").read_text("utf-8"))
    listed = {_plain(c["name"]): c for c in bom["components"]}
    site = built.stage / "python/Lib/site-packages"
    shipped = {_plain(p.name.split("-")[0]) for p in site.glob("*.dist-info")}
    assert shipped <= set(listed)
    assert "cpython" in listed
    locked = {_plain(p.name): p for p in pins(WHEELS_LOCK)}
    for name in shipped:
        component = listed[name]
        assert component["version"] == locked[name].version
        assert component["hashes"][0]["content"] == locked[name].sha256
        assert component.get("licenses"), f"nobody knows the licence of {name}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_part_comes_with_its_licence(built: Built) -> None:
    index = (built.stage / "licenses/THIRD-PARTY.txt").read_text("utf-8")
    shown = (built.stage / "app/resources/licenses/THIRD-PARTY.txt").read_text("utf-8")
    assert shown == index, "the About box shows it"
    for line in index.splitlines():
        if line.startswith("    "):
            assert (built.stage / "licenses" / line.strip()).is_file(), line
    for name in ("CPython", "openvino", "numpy", "cryptography", "zeroconf", "pyside6-essentials"):
        assert f"\n{name} " in index, name


def test_nothing_is_shipped_that_nobody_needs(built: Built) -> None:
    names = {p.relative_to(built.stage).as_posix() for p in built.stage.rglob("*")}
    assert not any("openvino_telemetry" in n for n in names)
    assert not any(n.endswith((".pdb", ".lib", ".pyi", ".pyc")) for n in names)
    assert not any("Qt6Qml" in n or "Qt6Quick" in n or "designer" in n.lower() for n in names)
    assert not any(n.startswith(("app/tests", "app/installer")) for n in names)
    libraries = {n.rsplit("/", 1)[-1] for n in names if n.endswith((".exe", ".dll"))}
    assert "python.exe" not in libraries, "one program starts our code: ours"
    assert {"msvcp140.dll", "vcruntime140.dll", "openvino_intel_gpu_plugin.dll"} <= libraries


def test_launchers_say_who_they_are(built: Built) -> None:
    for launcher in LAUNCHERS:
        data = (built.stage / launcher.name).read_bytes()
        for text in ("fleetapp authors", launcher.about, launcher.name):
            assert text.encode("utf-16-le") in data, (launcher.name, text)
        assert b"longPathAware" in data
        assert b'level="asInvoker"' in data


def test_the_installer_asks_for_no_rights(built: Built) -> None:
    found = subprocess.run(
        ["strings", "-n", "8", built.setup], capture_output=True, check=True, timeout=120
    ).stdout
    assert b'level="asInvoker"' in found
    assert b"requireAdministrator" not in found


@pytest.mark.parametrize("part", ["fleetapp", "ui", "resources"])
def test_our_code_is_what_the_repository_holds(built: Built, part: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["git", "ls-files", "-z", part], cwd=root, capture_output=True, check=True, timeout=60
    )
    for name in filter(None, done.stdout.decode().split("\0")):
        assert (built.stage / "app" / name).is_file(), name
