"""Pruning, icon, versions and the package's source, without building anything."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtGui import QImage

from installer import launchers, msi, prune
from installer.paths import ROOT

WIX = "{http://schemas.microsoft.com/wix/2006/wi}"


def make(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    make(
        tmp_path,
        "PySide6/Qt6Core.dll", "PySide6/Qt6Quick.dll", "PySide6/QtCore.pyd", "PySide6/QtCore.pyi",
        "PySide6/plugins/platforms/qwindows.dll", "PySide6/plugins/platforms/qminimal.dll",
        "PySide6/plugins/sqldrivers/qsqlite.dll", "PySide6/plugins/styles/any.dll",
        "PySide6/plugins/imageformats/qico.dll", "PySide6/plugins/iconengines/qsvgicon.dll",
        "PySide6/plugins/tls/qschannelbackend.dll", "PySide6/translations/qtbase_de.qm",
        "PySide6/plugins/networkinformation/qnetworklistmanager.dll",
        "PySide6/translations/qtbase_fr.qm", "PySide6/translations/qtbase_en.qm",
        "shiboken6/Shiboken.pyd", "shiboken6/msvcp140.dll",
        "openvino/libs/openvino.dll", "openvino/libs/openvino_onnx_frontend.dll",
        "openvino/libs/openvino_intel_npu_plugin.dll", "openvino/libs/openvino.lib",
        "openvino/tools/x.py", "openvino/torch/x.py", "openvino/__init__.py",
        "openvino/frontend/onnx/py_onnx_frontend.cp312-win_amd64.pyd",
        "openvino_telemetry/__init__.py", "openvino_telemetry-1.dist-info/METADATA",
        "numpy/testing/__init__.py", "numpy/tests/test_x.py", "other/tests/test_x.py",
        "other/__init__.py", "bin/tool.exe",
    )  # fmt: skip
    return tmp_path


def left(packages: Path) -> set[str]:
    return {p.relative_to(packages).as_posix() for p in packages.rglob("*") if p.is_file()}


def test_what_is_not_on_the_list_is_not_shipped(packages: Path) -> None:
    prune.prune(packages, npu=False)
    assert left(packages) == {
        "PySide6/Qt6Core.dll", "PySide6/QtCore.pyd", "PySide6/plugins/platforms/qwindows.dll",
        "PySide6/plugins/styles/any.dll", "PySide6/plugins/imageformats/qico.dll",
        "PySide6/plugins/iconengines/qsvgicon.dll", "PySide6/plugins/tls/qschannelbackend.dll",
        "PySide6/plugins/networkinformation/qnetworklistmanager.dll",
        "PySide6/translations/qtbase_de.qm", "PySide6/translations/qtbase_en.qm",
        "shiboken6/Shiboken.pyd", "openvino/__init__.py",
        "openvino/libs/openvino.dll", "numpy/testing/__init__.py", "numpy/tests/test_x.py",
        "other/__init__.py",
    }  # fmt: skip


def test_the_neural_processor_is_a_choice(packages: Path) -> None:
    prune.prune(packages, npu=True)
    assert "openvino/libs/openvino_intel_npu_plugin.dll" in left(packages)


def test_the_icon_has_every_size_windows_asks_for(qapp: object) -> None:
    data = launchers.icon(ROOT / "resources/icons/fleetapp.svg")
    _, kind, count = struct.unpack_from("<HHH", data)
    assert (kind, count) == (1, len(launchers.ICON_SIZES))
    for index, size in enumerate(launchers.ICON_SIZES):
        width, *_, length, offset = struct.unpack_from("<BBBBHHII", data, 6 + 16 * index)
        assert width == size % 256
        image = QImage.fromData(data[offset : offset + length])
        assert (image.width(), image.height()) == (size, size)
        middle = image.pixelColor(size // 2, round(size * 0.22))
        assert middle.alpha(), "something is drawn"


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.1.0", (0, 1, 0, 0)), ("1.2", (1, 2, 0, 0)), ("2.3.4.dev5", (2, 3, 4, 0))],
)
def test_versions_have_four_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert launchers.quad(version) == numbers


def document(tmp_path: Path, version: str) -> ET.Element:
    make(tmp_path, "FleetApp.exe", "app/ü & <b>.py", "python/python312.dll")
    return ET.fromstring(msi.document(tmp_path, version, "icon.ico"))


def test_the_package_names_every_file_once(tmp_path: Path) -> None:
    root = document(tmp_path, "0.1.0")
    names = sorted(f.get("Name", "") for f in root.iter(f"{WIX}File"))
    assert names == ["FleetApp.exe", "python312.dll", "ü & <b>.py"]
    ids = [e.get("Id") for e in root.iter() if e.get("Id") and not e.tag.endswith("ComponentRef")]
    assert len(ids) == len(set(ids))
    components = {c.get("Id") for c in root.iter(f"{WIX}Component")}
    assert {c.get("Id") for c in root.iter(f"{WIX}ComponentRef")} == components


def test_versions_are_the_same_product_to_be_upgraded(tmp_path: Path) -> None:
    one, two = (document(tmp_path, v)[0] for v in ("0.1.0", "0.2.0"))
    assert one.get("UpgradeCode") == two.get("UpgradeCode") == msi.UPGRADE_CODE
    assert one.get("Id") != two.get("Id")
    guids = [[c.get("Guid") for c in x.iter(f"{WIX}Component")] for x in (one, two)]
    assert guids[0] == guids[1], "a component is the same file in every version"
