"""Writes wheels.lock anew: every wheel the Windows app carries, by version and hash.

Run by a maintainer (`make windows-lock`) when a dependency is raised; needs `uv` on the PATH, which
resolves for Windows while it runs on Linux (pip evaluates markers for its own host).
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from installer.paths import ROOT, WHEELS_LOCK
from installer.run import BuildError, need, say, tool

PYTHON_VERSION = "3.12"
TARGET = ("--platform", "win_amd64", "--python-version", PYTHON_VERSION, "--implementation", "cp")
EXTRA = ("msvc-runtime",)
"""Nobody's dependency on paper: OpenVINO's wheel needs msvcp140.dll and does not bring it."""
HEADER = """\
# Every wheel of the Windows app (win_amd64, CPython 3.12). Made by `make windows-lock`.
"""


def resolve() -> list[str]:
    """``name==version`` of all that pyproject.toml's run-time dependencies need on Windows."""
    need("uv")
    command: list[str | Path] = ["uv", "pip", "compile", ROOT / "pyproject.toml", "--quiet"]
    command += ["--no-annotate", "--no-header", "--python-version", PYTHON_VERSION]
    said = tool([*command, "--python-platform", "x86_64-pc-windows-msvc"])
    return [line.strip() for line in said.splitlines() if "==" in line]


def lock(wheels: list[str], folder: Path) -> str:
    """Download what was resolved; the text of the lock file."""
    asked = folder / "asked.txt"
    asked.write_text("\n".join([*wheels, *EXTRA]) + "\n", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        + [*TARGET, "--dest", str(folder / "wheels"), "--requirement", str(asked)],
        check=True,
    )
    lines = []
    for wheel in sorted((folder / "wheels").glob("*.whl"), key=lambda w: w.name.lower()):
        name, version = wheel.name.split("-")[:2]
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name.replace('_', '-').lower()}=={version} --hash=sha256:{digest}")
    return HEADER + "\n".join(lines) + "\n"


def main() -> int:
    """Replace the lock file."""
    try:
        with tempfile.TemporaryDirectory() as work:
            text = lock(resolve(), Path(work))
    except BuildError as error:
        say(f"windows-lock: {error}")
        return 1
    WHEELS_LOCK.write_text(text, encoding="utf-8")
    say(f"{WHEELS_LOCK.name}: {len(text.splitlines()) - 1} wheels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
