"""`make windows-installer`: from the lock files to signed installers."""

from __future__ import annotations

import argparse
import re
import sys
import time

from installer import authenticode, inputs, launchers, msi, nsis, stage
from installer.paths import PRODUCT, ROOT, Work
from installer.run import BuildError, need, say

TOOLS = ("makensis", "wixl", "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-windres",
         "osslsigncode", "openssl", "git")  # fmt: skip
_MEGABYTE = 1_000_000


def version() -> str:
    """Of the program, as its source says."""
    text = (ROOT / "fleetapp/__init__.py").read_text("utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        raise BuildError("fleetapp/__init__.py names no version")
    return found[1]


def build(
    work: Work, *, packing: nsis.Packing, npu: bool, offline: bool, package: bool = True
) -> None:
    """Everything.

    Args:
        work: where.
        packing: small for people, quick for tests.
        npu: with the plug-in for neural processors.
        offline: download nothing.
        package: make the per-machine package too.
    """
    began = time.monotonic()
    need(*TOOLS)
    certificate = authenticode.chosen()
    if certificate is None:
        say("no certificate given: signing with one made for this build, which nobody trusts")
        certificate = authenticode.test_certificate(work.objects)
    number = version()
    stage.build(inputs.fetch(offline=offline), work, number, npu=npu)
    for launcher in launchers.LAUNCHERS:
        authenticode.sign(work.stage / launcher.name, certificate, PRODUCT)
    stage.settle(work.stage)
    say("per-user installer")
    nsis.build(work, number, packing=packing, certificate=certificate)
    work.msi.unlink(missing_ok=True)  # never one of another build
    if package:
        say("per-machine package")
        msi.build(work, number)
    for file in (work.setup, *([work.msi] if package else [])):
        authenticode.sign(file, certificate, PRODUCT)
        if not authenticode.verify(file, certificate.chain):
            raise BuildError(f"the signature of {file.name} does not verify")
        print(f"{file}  {file.stat().st_size / _MEGABYTE:.1f} MB  sha256 {inputs.sha256(file)}")
    say(f"done in {time.monotonic() - began:.0f} s")


def main() -> int:
    """Command line; 1 with one sentence if something is missing."""
    parser = argparse.ArgumentParser(prog="windows-installer", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="pack quickly instead of small")
    parser.add_argument("--store", action="store_true", help="do not pack at all")
    parser.add_argument("--npu", action="store_true", help="with the NPU plug-in (+26 MB)")
    parser.add_argument("--offline", action="store_true", help="download nothing")
    parser.add_argument("--no-msi", action="store_true", help="the per-user installer only")
    asked = parser.parse_args()
    try:
        build(
            Work(),
            packing="none" if asked.store else "fast" if asked.fast else "small",
            npu=asked.npu,
            offline=asked.offline,
            package=not asked.no_msi,
        )
    except BuildError as error:
        say(f"windows-installer: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
