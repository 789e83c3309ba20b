"""What of each package is shipped. A list of what stays, so that nothing new slips in unseen."""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from pathlib import Path

NEVER_PACKAGES = (
    "openvino_telemetry*",  # nothing of ours reports anywhere; OpenVINO runs without it
    "msvc_runtime*",  # its libraries lie beside the interpreter
    "bin",
    "Scripts",
)
NEVER_FOLDERS = frozenset({"__pycache__", "tests", "test", "testing", "include", "cmake"})
_TESTING_STAYS = frozenset({"numpy"})  # numpy.testing is imported by numpy itself
NEVER_SUFFIXES = (
    ".pyi", ".lib", ".pdb", ".h", ".hpp", ".pxd", ".pyx", ".pc", ".cmake", ".qmltypes", ".c",
    ".cpp",
)  # fmt: skip
QT_TOP = (
    "__init__.py", "_config.py", "_git_pyside_version.py", "pyside6.abi3.dll",
    "Qt6Core.dll", "Qt6Gui.dll", "Qt6Widgets.dll", "Qt6Network.dll", "Qt6Svg.dll",
    "QtCore.pyd", "QtGui.pyd", "QtWidgets.pyd", "QtNetwork.pyd", "QtSvg.pyd",
    "plugins", "translations",
)  # fmt: skip
QT_PLUGINS = {
    "platforms": ("qwindows.dll", "qoffscreen.dll"),
    "styles": ("*.dll",),
    "imageformats": ("qico.dll", "qsvg.dll", "qjpeg.dll"),
    "iconengines": ("qsvgicon.dll",),
    "tls": ("qschannelbackend.dll", "qcertonlybackend.dll"),
    "networkinformation": ("qnetworklistmanager.dll",),
}
QT_LANGUAGES = ("qtbase_de.qm", "qtbase_en.qm")
SHIBOKEN = ("__init__.py", "_config.py", "_git_shiboken_module_version.py", "Shiboken.pyd",
            "shiboken6.abi3.dll")  # fmt: skip
OPENVINO_LIBS = (
    "openvino.dll",
    "openvino_ir_frontend.dll",
    "openvino_gguf_frontend.dll",
    "openvino_intel_cpu_plugin.dll",
    "openvino_intel_gpu_plugin.dll",
    "cache.json",  # what the GPU plugin has learnt about kernels
    "openvino_auto_plugin.dll",
    "openvino_auto_batch_plugin.dll",
    "openvino_hetero_plugin.dll",
    "tbb12.dll",
    "tbbmalloc.dll",
    "tbbbind_2_5.dll",
)
OPENVINO_NPU = ("openvino_intel_npu_*.dll",)
"""26 MB more in the installer; see docs/windows-build.md."""
OPENVINO_NEVER = ("tools", "torch")


def prune(packages: Path, *, npu: bool) -> None:
    """Cut a folder of installed packages down to what the app uses.

    Args:
        packages: site-packages of the staged tree.
        npu: keep the plug-in for neural processors.
    """
    for pattern in NEVER_PACKAGES:
        for found in packages.glob(pattern):
            _remove(found)
    for folder in [p for p in packages.rglob("*") if p.is_dir()]:
        if folder.exists() and _unwanted(folder.relative_to(packages)):
            _remove(folder)
    for file in [p for p in packages.rglob("*") if p.is_file()]:
        if file.suffix.lower() in NEVER_SUFFIXES:
            file.unlink()
    _keep(packages / "PySide6", QT_TOP)
    _keep(packages / "PySide6/plugins", tuple(QT_PLUGINS))
    for name, files in QT_PLUGINS.items():
        _keep(packages / "PySide6/plugins" / name, files)
    _keep(packages / "PySide6/translations", QT_LANGUAGES)
    _keep(packages / "shiboken6", SHIBOKEN)
    _keep(packages / "openvino/libs", OPENVINO_LIBS + (OPENVINO_NPU if npu else ()))
    for name in OPENVINO_NEVER:
        _remove(packages / "openvino" / name)
    for native in packages.glob("openvino/frontend/*/py_*_frontend*.pyd"):
        native.unlink()  # of front ends that are not shipped


def _unwanted(path: Path) -> bool:
    if path.name not in NEVER_FOLDERS:
        return False
    return not (path.name in ("tests", "testing") and path.parts[0] in _TESTING_STAYS)


def _keep(folder: Path, patterns: tuple[str, ...]) -> None:
    for entry in folder.iterdir():
        if not any(fnmatchcase(entry.name, pattern) for pattern in patterns):
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
