"""Who this PC is: one key that never leaves it, made on first start."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fleetapp.errors import StorageError
from fleetapp.fleet import keys
from fleetapp.fleet.keys import verify
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.paths import Paths
from fleetapp.types import DeviceId

__all__ = ["Identity", "verify"]

_SELF_SIGNED_DAYS = 3650


@dataclass(frozen=True)
class Identity:
    """This device's key and the names derived from it. Satisfies what a signer has to offer."""

    device_id: DeviceId
    spki: str
    """Hex SHA-256 of the public key's SubjectPublicKeyInfo."""
    public_key: bytes
    """SubjectPublicKeyInfo, DER."""
    key_path: Path
    cert_path: Path
    """Self-signed certificate of this key; after joining the fleet's leaf is used instead."""
    _key: ec.EllipticCurvePrivateKey = field(repr=False, compare=False)

    @classmethod
    def load_or_create(cls, paths: Paths, platform: Platform | None = None) -> Identity:
        """The identity in ``paths``, made there if there is none.

        Raises:
            StorageError: the key file is damaged (it is kept), or nothing can be written.
        """
        platform = current() if platform is None else platform
        platform.make_private_dir(paths.home)
        platform.make_private_dir(paths.identity)
        try:
            pem = paths.device_key.read_bytes()
        except FileNotFoundError:
            return cls._create(paths, platform)
        except OSError as exc:
            raise storage_error(exc, paths.device_key) from exc
        identity = cls._from_key(_load_key(pem, paths.device_key), paths)
        if not paths.device_cert.exists():
            write_atomic(paths.device_cert, _self_signed(identity))
        return identity

    @classmethod
    def fresh(cls, paths: Paths) -> Identity:
        """A new identity that is on no disk yet: for a PC whose state was copied (trap T18)."""
        return cls._from_key(keys.new_key(), paths)

    def save(self, platform: Platform | None = None) -> None:
        """Make this the identity of its paths; a key that lay there before is destroyed.

        Whoever replaces one must also leave the fleet that knows the old one
        (:meth:`fleetapp.fleet.enrolment.FleetStore.remove`).

        Raises:
            ReadOnly, DiskFull, StorageError: it could not be kept.
        """
        platform = current() if platform is None else platform
        platform.make_private_dir(self.key_path.parent)
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        platform.write_private(self.key_path, pem)
        write_atomic(self.cert_path, _self_signed(self))

    @classmethod
    def _create(cls, paths: Paths, platform: Platform) -> Identity:
        identity = cls.fresh(paths)
        identity.save(platform)
        return identity

    @classmethod
    def _from_key(cls, key: ec.EllipticCurvePrivateKey, paths: Paths) -> Identity:
        public = keys.public_der(key.public_key())
        spki = keys.spki_hash(public)
        return cls(keys.device_id_of(spki), spki, public, paths.device_key, paths.device_cert, key)

    def sign(self, payload: bytes) -> bytes:
        """DER-encoded ECDSA P-256 SHA-256 signature over ``payload``."""
        return keys.sign(self._key, payload)

    def csr(self) -> bytes:
        """A PKCS#10 request in PEM that proves possession of this key.

        It asks for nothing else: the authority derives all names from the key.
        """
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.device_id)])
        request = x509.CertificateSigningRequestBuilder().subject_name(name)
        return request.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _load_key(pem: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        raise _damaged(path) from exc
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise _damaged(path)
    return key


def _damaged(path: Path) -> StorageError:
    return StorageError(
        f"The device key {path} is damaged.",
        remedy="Restore it from a backup, or delete it and join the fleet again as a new device.",
    )


def _self_signed(identity: Identity) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, identity.device_id)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(keys.load_public(identity.public_key))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_SELF_SIGNED_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(identity._key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)
