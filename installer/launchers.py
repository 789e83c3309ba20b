"""The native programs: FleetApp.exe, fleetapp-cli.exe and fleetapp-worker.exe."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

from installer.paths import HERE, PRODUCT, PUBLISHER, ROOT
from installer.run import tool

NATIVE = HERE / "native"
ICON_SIZES = (16, 20, 24, 32, 40, 48, 64, 256)
COMPILER = "x86_64-w64-mingw32-gcc"


@dataclass(frozen=True)
class Launcher:
    """One program. ``script`` below app/, or nothing for the plain interpreter."""

    name: str
    script: str
    console: bool
    about: str


LAUNCHERS = (
    Launcher(f"{PRODUCT}.exe", "fleetapp_tray.py", console=False, about=PRODUCT),
    Launcher("fleetapp-cli.exe", "fleetapp_cli.py", console=True, about=f"{PRODUCT} command line"),
    Launcher("fleetapp-worker.exe", "", console=False, about=f"{PRODUCT} agent and runners"),
)


def icon(svg: Path) -> bytes:
    """An .ico with every size Windows asks for, each drawn from the vector."""
    drawn = [_png(svg, size) for size in ICON_SIZES]
    offset = 6 + 16 * len(drawn)
    head = struct.pack("<HHH", 0, 1, len(drawn))
    for size, png in zip(ICON_SIZES, drawn, strict=True):
        head += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(png), offset)
        offset += len(png)
    return head + b"".join(drawn)


def _png(svg: Path, size: int) -> bytes:
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(svg)).render(painter)
    painter.end()
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(data.data())


def quad(version: str) -> tuple[int, int, int, int]:
    """A version as Windows wants it: four numbers."""
    numbers = [int(part) for part in version.split(".") if part.isdecimal()][:3]
    return (*numbers, *[0] * (3 - len(numbers)), 0)  # type: ignore[return-value]


def resource(launcher: Launcher, version: str) -> str:
    """The resource script: icon, manifest and version."""
    numbers = ",".join(map(str, quad(version)))
    values = {
        "CompanyName": PUBLISHER,
        "FileDescription": launcher.about,
        "FileVersion": version,
        "InternalName": launcher.name.removesuffix(".exe"),
        "LegalCopyright": f"{PUBLISHER}. Apache-2.0.",
        "OriginalFilename": launcher.name,
        "ProductName": PRODUCT,
        "ProductVersion": version,
    }
    rows = "\n".join(f'      VALUE "{name}", "{value}"' for name, value in values.items())
    return f"""\
1 ICON "fleetapp.ico"
1 24 "launcher.manifest"
1 VERSIONINFO
FILEVERSION {numbers}
PRODUCTVERSION {numbers}
FILEOS 0x40004
FILETYPE 1
BEGIN
  BLOCK "StringFileInfo"
  BEGIN
    BLOCK "040904b0"
    BEGIN
{rows}
    END
  END
  BLOCK "VarFileInfo"
  BEGIN
    VALUE "Translation", 0x409, 1200
  END
END
"""


def build(version: str, objects: Path, stage: Path) -> list[Path]:
    """Compile all launchers into the staged tree."""
    objects.mkdir(parents=True, exist_ok=True)
    (objects / "fleetapp.ico").write_bytes(icon(ROOT / "resources/icons/fleetapp.svg"))
    (objects / "launcher.manifest").write_bytes((NATIVE / "launcher.manifest").read_bytes())
    built = []
    for launcher in LAUNCHERS:
        stem = launcher.name.removesuffix(".exe")
        script, compiled = objects / f"{stem}.rc", objects / f"{stem}.res"
        script.write_text(resource(launcher, version), encoding="utf-8")
        tool(["x86_64-w64-mingw32-windres", "-O", "coff", script.name, compiled.name], cwd=objects)
        target = stage / launcher.name
        subsystem = ["-mconsole", "-DCONSOLE"] if launcher.console else ["-mwindows"]
        tool(
            [COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", "-municode", *subsystem, "-s"]
            + ["-static-libgcc", "-Wl,--no-insert-timestamp,--dynamicbase,--nxcompat"]
            + ["-Wl,--high-entropy-va", f'-DENTRY=L"{launcher.script}"']
            + ["-o", str(target), str(NATIVE / "launcher.c"), str(compiled)]
        )
        built.append(target)
    return built
