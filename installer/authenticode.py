"""Signatures: those of the interpreter we did not build, and our own."""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from installer.paths import ROOTS
from installer.run import BuildError, tool

_ROOTS = (
    # file, SHA-256 of the certificate, a moment at which the certificates below it were valid
    (
        "microsoft-identity-2020.pem",
        "5367f20c7ade0e2bca790915056d086b720c33c1fa2a2661acf787e3292e1270",
        1738690000,  # February 2025: publishers' certificates below this root live for three days
    ),
    (
        "digicert-g4.pem",  # the libraries that come into CPython's build from elsewhere
        "552f7bdcf1a7af9e6ce672017f4f12abf77240c78e761ac203d1d9d20ac89988",
        1704067200,  # January 2024
    ),
)
_PUBLISHER = "CN=Python Software Foundation"
_OK = "Signature verification: ok"


@dataclass(frozen=True)
class Certificate:
    """What signs: PEM files, never a password on a command line."""

    chain: Path
    key: Path
    timestamp_url: str = ""


def chosen() -> Certificate | None:
    """From FLEETAPP_SIGN_CERT, FLEETAPP_SIGN_KEY and FLEETAPP_SIGN_TIMESTAMP_URL."""
    chain, key = os.environ.get("FLEETAPP_SIGN_CERT", ""), os.environ.get("FLEETAPP_SIGN_KEY", "")
    if not chain and not key:
        return None
    if not Path(chain).is_file() or not Path(key).is_file():
        raise BuildError("FLEETAPP_SIGN_CERT and FLEETAPP_SIGN_KEY must name PEM files, both")
    return Certificate(Path(chain), Path(key), os.environ.get("FLEETAPP_SIGN_TIMESTAMP_URL", ""))


def test_certificate(folder: Path) -> Certificate:
    """One made for this build that nobody trusts, so that the step is always exercised."""
    made = Certificate(folder / "test-certificate.pem", folder / "test-key.pem")
    if not made.chain.exists() or not made.key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        tool(
            ["openssl", "req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "30"]
            + ["-subj", "/CN=fleetapp test certificate, not for release"]
            + ["-addext", "extendedKeyUsage=codeSigning"]
            + ["-keyout", str(made.key), "-out", str(made.chain)]
        )
        made.key.chmod(0o600)
    return made


def sign(file: Path, certificate: Certificate, about: str) -> None:
    """Sign in place."""
    signed = file.with_name(f"{file.name}.signed")
    signed.unlink(missing_ok=True)
    command: list[str | Path] = ["osslsigncode", "sign", "-h", "sha256", "-n", about]
    command += ["-certs", certificate.chain, "-key", certificate.key]
    if certificate.timestamp_url:
        command += ["-ts", certificate.timestamp_url]
    tool([*command, "-in", file, "-out", signed])
    shutil.move(signed, file)


def verify(file: Path, root: Path) -> bool:
    """Whether a file's signature holds and leads to this root."""
    done = subprocess.run(
        ["osslsigncode", "verify", "-CAfile", root, *_known("-ignore-cdp"), "-in", file],
        capture_output=True,
        timeout=120,
        check=False,
    )
    return _OK.encode() in done.stdout


def verify_python(folder: Path) -> int:
    """Check every program file of an embeddable CPython; the number of files.

    Each must carry a signature of the Python Software Foundation that leads to one of two pinned
    roots. Only Microsoft's run-time library has another signer; it is replaced by the one that is
    pinned in wheels.lock.

    Raises:
        BuildError: names what is not signed.
    """
    for name, pinned, _ in _ROOTS:
        der = ssl.PEM_cert_to_DER_cert((ROOTS / name).read_text("ascii"))
        if hashlib.sha256(der).hexdigest() != pinned:
            raise BuildError(f"{name} is not the root certificate that was pinned")
    files = sorted(p for p in folder.iterdir() if p.suffix in (".exe", ".dll", ".pyd"))
    files = [p for p in files if not p.name.startswith("vcruntime")]
    options = [*_known("-ignore-cdp", "-ignore-crl"), "-ignore-timestamp"]
    bad = [f.name for f in files if not any(_signed(f, *root, options) for root in _ROOTS)]
    if bad or not files:
        raise BuildError(f"not signed by the Python Software Foundation: {', '.join(bad) or 'all'}")
    return len(files)


def _signed(file: Path, root: str, _pinned: str, when: int, options: list[str]) -> bool:
    done = subprocess.run(
        ["osslsigncode", "verify", *options, "-time", str(when)]
        + ["-CAfile", str(ROOTS / root), "-in", str(file)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    said = done.stdout.decode("utf-8", "replace")
    return _OK in said and _PUBLISHER in said


def _known(*options: str) -> list[str]:
    """Those that this release of osslsigncode has; older ones do without the network anyway."""
    said = subprocess.run(
        ["osslsigncode", "verify", "--help"], capture_output=True, timeout=60, check=False
    )
    text = (said.stdout + said.stderr).decode("utf-8", "replace")
    return [option for option in options if option in text]
