"""The per-user installer, from native/fleetapp.nsi."""

from __future__ import annotations

import os
from typing import Literal

from installer import launchers, stage
from installer.authenticode import Certificate
from installer.paths import HERE, PRODUCT, ROOT, Work
from installer.run import tool

RUN_NAME = "fleetapp"
"""Of the value under Run: the same that the autostart setting writes."""
_PACKING: dict[str, list[str]] = {"small": [], "fast": ["-DFAST"], "none": ["-DSTORE"]}
_SPARE = 1.2
"""Room asked for beyond what the files take: clusters, and a log."""


Packing = Literal["small", "fast", "none"]


def build(work: Work, version: str, *, packing: Packing, certificate: Certificate) -> None:
    """Make ``work.setup``, unsigned; the uninstaller inside is signed by NSIS itself.

    Args:
        work: whose stage is packed.
        version: shown to people and to Windows.
        packing: LZMA for a release, zlib for tests, nothing where seconds count.
        certificate: for the uninstaller.
    """
    size = sum(p.stat().st_size for p in work.stage.rglob("*") if p.is_file())
    licence = work.objects / "licence.txt"
    licence.write_bytes((ROOT / "LICENSE").read_bytes().replace(b"\n", b"\r\n"))
    values = {
        "NAME": PRODUCT,
        "RUN_NAME": RUN_NAME,
        "VERSION": version,
        "QUAD": ".".join(map(str, launchers.quad(version))),
        "STAGE": str(work.stage),
        "OUT": str(work.setup),
        "ICON": str(work.objects / "fleetapp.ico"),
        "LICENSE": str(licence),
        "SIZE_KB": str(round(size / 1024)),
        "SIZE_MB": str(round(size * _SPARE / 2**20)),
        "SIGN": str(_signer(work, certificate)),
    }
    work.setup.unlink(missing_ok=True)
    defines = [f"-D{name}={value}" for name, value in values.items()]
    tool(
        ["makensis", "-V2", "-WX", *_PACKING[packing], *defines]
        + [str(HERE / "native/fleetapp.nsi")],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(stage.epoch())},
    )


def _signer(work: Work, certificate: Certificate) -> str:
    """A script that NSIS runs on the uninstaller it has made."""
    script = work.objects / "sign-uninstaller.sh"
    stamp = f"-ts '{certificate.timestamp_url}'" if certificate.timestamp_url else ""
    script.write_text(
        f"""#!/bin/sh
set -e
osslsigncode sign -h sha256 -n '{PRODUCT}' -certs '{certificate.chain}' -key '{certificate.key}' \\
  {stamp} -in "$1" -out "$1.signed" >/dev/null
mv "$1.signed" "$1"
""",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return str(script)
