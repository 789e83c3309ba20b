"""Builds what Wine lacks, for the prefix of a test: never part of the product."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "packaging/shims"
COMPILER = "x86_64-w64-mingw32-gcc"
_SAME = ("cexp", "csin", "ccos", "ctan", "csinh", "ccosh", "ctanh", "cpow")
_REAL = ("cabs", "carg", "creal", "cimag")
_LIBRARIES = ("-lmingwex", "-lmsvcrt", "-lkernel32", "-static-libgcc")
OURS = frozenset(f"{name}{kind}" for name in _SAME + _REAL for kind in ("", "f", "l"))
_MARK = b"Wine builtin DLL"
_MARK_AT = 0x40


def build(wine_libraries: Path, target: Path) -> None:
    """Put ``ucrtbase.dll``, ``ucrtbasw.dll``, ``icuuc.dll`` and ``mscms.dll`` into ``target``.

    Args:
        wine_libraries: Wine's own x86_64-windows folder.
        target: system32 of a prefix.
    """
    own = wine_libraries / "ucrtbase.dll"
    data = bytearray(own.read_bytes())
    assert data[_MARK_AT : _MARK_AT + len(_MARK)] == _MARK
    # Wine would take a file with this mark for its own and look for it elsewhere.
    data[_MARK_AT : _MARK_AT + len(_MARK)] = bytes(len(_MARK))
    (target / "ucrtbasw.dll").write_bytes(data)
    definition = target / "ucrtbase.def"
    lines = ['LIBRARY "ucrtbase.dll"', "EXPORTS"]
    names = exports(own)
    lines += [_line(name) for name in names]
    lines += [f'  "{name}" = shim_{name}' for name in sorted(OURS - set(names))]
    definition.write_text("\n".join(lines) + "\n", encoding="ascii")
    (target / "ucrtbase.dll").unlink(missing_ok=True)  # may be a link into Wine's own folder
    _compile(
        ["-ffreestanding", "-fno-builtin", SOURCES / "complex.c", definition, *_LIBRARIES],
        target / "ucrtbase.dll",
    )
    definition.unlink()
    for name in ("icuuc", "mscms"):
        (target / f"{name}.dll").unlink(missing_ok=True)
        _compile(["-nostdlib", SOURCES / f"{name}.c"], target / f"{name}.dll")


def exports(library: Path) -> list[str]:
    """Names that a library exports."""
    said = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-p", library], capture_output=True, timeout=120, check=True
    ).stdout.decode("ascii", "replace")
    table = said.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    return re.findall(r"^\s*\[\s*\d+\]\s+(?:\+base\[\s*\d+\]\s+\S+\s+)?(\S+)$", table, re.MULTILINE)


def _line(name: str) -> str:
    return f'  "{name}" = shim_{name}' if name in OURS else f'  "{name}" = "ucrtbasw.{name}"'


def _compile(arguments: list[str | Path], target: Path) -> None:
    command = [COMPILER, "-O2", "-s", "-shared", "-nostartfiles", "-e", "DllMainCRTStartup"]
    subprocess.run([*command, "-o", target, *arguments], timeout=300, check=True)
