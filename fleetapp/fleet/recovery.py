"""The file that brings a fleet back when its coordinator is gone for good.

A text with a readable head and an encrypted block: scrypt (RFC 7914) stretches the passphrase,
AES-256-GCM encrypts and covers the head too, so that nothing of it can be exchanged unnoticed.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
import textwrap

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from fleetapp.errors import BadRequest, FleetError, Unsupported
from fleetapp.fleet import certificates
from fleetapp.fleet.control import BROKEN_JSON, Signed
from fleetapp.fleet.membership import Membership, verify_membership

MIN_PASSPHRASE = 12
MAX_FILE = 16 * 2**20
_TITLE = "fleetapp recovery file "
_VERSION = "1"
_BEGIN, _END = "-----BEGIN FLEETAPP RECOVERY-----", "-----END FLEETAPP RECOVERY-----"
# 64 MiB and about a fifth of a second: once per recovery, per guess for a thief
_SCRYPT_N = 1 << 16
_SALT, _NONCE = 16, 12


class Bundle(msgspec.Struct, frozen=True, tag="fleetapp.recovery.1", tag_field="kind"):
    """All that makes a PC the coordinator of its fleet. Whoever holds one owns the fleet."""

    authority_key: bytes
    """PKCS#8, DER, not encrypted."""
    authority: str
    """Its certificate, PEM."""
    membership: Signed
    made: float
    """Unix seconds."""
    files: dict[str, bytes]
    """What the hub keeps beside the key, by file name: state, hashed join codes and API keys."""
    audit_head: str = ""
    """Hash of the newest line of the audit log, which stays behind."""

    def __repr__(self) -> str:
        return f"Bundle(made={self.made})"  # a key is not for logs

    def opened(self) -> Membership:
        """Its membership list.

        Raises:
            TrustError, Malformed: the parts do not belong together.
        """
        authority = certificates.load_pem(self.authority.encode())
        return verify_membership(self.membership, certificates.public_key_of(authority))


def seal(bundle: Bundle, passphrase: str) -> bytes:
    """The bundle as a text file; takes a fifth of a second.

    Raises:
        BadRequest: the passphrase is shorter than 12 characters.
    """
    if len(passphrase) < MIN_PASSPHRASE:
        raise BadRequest(
            f"The passphrase is shorter than {MIN_PASSPHRASE} characters.",
            remedy="Take a longer one: whoever opens the file owns the fleet.",
        )
    membership = bundle.opened()
    made = dt.datetime.fromtimestamp(bundle.made, dt.UTC)
    head = (
        f"{_TITLE}{_VERSION}\nFleet: {membership.fleet_id}\nMade: {made:%Y-%m-%d %H:%M} UTC\n"
        "Keep it offline. With its passphrase it makes any PC the coordinator:\n"
        "fleetapp fleet recovery use FILE\n\n"
    ).encode()
    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    secret = AESGCM(_stretch(passphrase, salt)).encrypt(nonce, msgspec.json.encode(bundle), head)
    lines = textwrap.wrap(base64.b64encode(salt + nonce + secret).decode(), 76)
    return head + "\n".join([_BEGIN, *lines, _END, ""]).encode()


def require_whole(data: bytes) -> None:
    """Look at a recovery file without its passphrase.

    Raises:
        BadRequest: it is none, or is cut short.
        Unsupported: made by a newer version.
    """
    _parts(data)


def unseal(data: bytes, passphrase: str) -> Bundle:
    """What :func:`seal` has packed; line ends may have been changed on the way.

    Raises:
        BadRequest: no recovery file, a damaged one, or the wrong passphrase.
        Unsupported: made by a newer version.
    """
    head, block = _parts(data)
    try:
        plain = AESGCM(_stretch(passphrase, block[:_SALT])).decrypt(
            block[_SALT : _SALT + _NONCE], block[_SALT + _NONCE :], head
        )
    except InvalidTag as exc:
        raise BadRequest(
            "The passphrase does not open this recovery file, or the file is damaged.",
            remedy="Try the passphrase that was chosen when it was exported.",
        ) from exc
    try:
        bundle = msgspec.json.decode(plain, type=Bundle)
        bundle.opened()
    except (*BROKEN_JSON, FleetError) as exc:
        raise _no_file() from exc
    return bundle


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """(head, salt + nonce + ciphertext)."""
    data = data.replace(b"\r\n", b"\n").lstrip()
    if len(data) > MAX_FILE or not data.startswith(_TITLE.encode()):
        raise _no_file()
    version = data[len(_TITLE) :].split(b"\n", 1)[0].strip()
    if version != _VERSION.encode():
        raise Unsupported(
            f"This recovery file has format {version[:8].decode('ascii', 'replace')}, "
            f"this version reads format {_VERSION}.",
            remedy="Update fleetapp on this PC.",
        )
    head, found, rest = data.partition(_BEGIN.encode())
    body, ended, _ = rest.partition(_END.encode())
    try:
        block = base64.b64decode(b"".join(body.split()), validate=True)
    except ValueError as exc:
        raise _no_file() from exc
    if not found or not ended or len(block) < _SALT + _NONCE + 16:
        raise _no_file()
    return head, block


def _no_file() -> BadRequest:
    return BadRequest(
        "This is not a recovery file of a fleet, or it is damaged.",
        remedy="Give the file that 'fleetapp fleet recovery export' has written.",
    )


def _stretch(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=_SCRYPT_N, r=8, p=1).derive(
        passphrase.encode("utf-8", "surrogatepass")
    )
