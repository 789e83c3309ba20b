"""The key that makes a fleet a fleet. Only the coordinator has it."""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fleetapp.errors import BadRequest, Malformed, NotFound, StorageError
from fleetapp.fleet import certificates, keys
from fleetapp.fleet.secrets import Kept, SecretStore
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error, write_atomic
from fleetapp.platform.paths import Paths
from fleetapp.types import FleetId


@dataclass(frozen=True)
class Authority:
    """An opened authority; holding this object is holding the fleet.

    :meth:`create`, :meth:`open` and :meth:`restore` talk to the keyring and block for up to its
    time-out: call them in a thread.
    """

    fleet_id: FleetId
    spki: str
    public_key: bytes
    """SubjectPublicKeyInfo, DER."""
    certificate_pem: bytes
    kept: Kept | None
    """Where the passphrase went, at creation and restoring; ``None`` when opened."""
    _key: ec.EllipticCurvePrivateKey = field(repr=False, compare=False)
    _certificate: x509.Certificate = field(repr=False, compare=False)

    @classmethod
    def exists(cls, paths: Paths) -> bool:
        """Whether this PC is the coordinator of a fleet."""
        return _key_path(paths).exists()

    @classmethod
    def create(
        cls,
        paths: Paths,
        platform: Platform | None = None,
        secret_store: SecretStore | None = None,
    ) -> Authority:
        """Make a new fleet's authority and keep it encrypted in ``paths.hub``.

        Raises:
            BadRequest: there is one already.
            ReadOnly, DiskFull, StorageError: it could not be kept.
        """
        key = keys.new_key()
        certificate = certificates.authority_certificate(key, dt.datetime.now(dt.UTC))
        return cls._keep(key, certificate, paths, platform, secret_store)

    @classmethod
    def open(
        cls,
        paths: Paths,
        platform: Platform | None = None,
        secret_store: SecretStore | None = None,
    ) -> Authority:
        """Read the authority of ``paths.hub``.

        Raises:
            NotFound: this PC is no coordinator, or the passphrase is gone.
            StorageError: the files are damaged or the keyring is locked.
        """
        try:
            encrypted, pem = _key_path(paths).read_bytes(), _cert_path(paths).read_bytes()
        except FileNotFoundError as exc:
            raise NotFound("This PC is not the coordinator of a fleet.") from exc
        except OSError as exc:
            raise storage_error(exc, _key_path(paths)) from exc
        try:
            certificate = certificates.load_pem(pem)
        except Malformed as exc:
            raise _damaged(_cert_path(paths)) from exc
        store = secret_store or SecretStore(paths.hub, platform)
        passphrase = store.load(_secret_name(certificates.fleet_of(certificate)))
        try:
            key = _decrypt(encrypted, passphrase.encode())
        except ValueError as exc:
            raise _damaged(_key_path(paths)) from exc
        return cls._build(key, certificate, None)

    @classmethod
    def restore(
        cls,
        private_key: bytes,
        certificate_pem: bytes,
        paths: Paths,
        platform: Platform | None = None,
        secret_store: SecretStore | None = None,
    ) -> Authority:
        """Keep on this PC the authority of a fleet that another PC has coordinated.

        Args:
            private_key: as :attr:`private_key` gave it.
            certificate_pem: the certificate that belongs to it.
            paths: where to keep it.
            platform: the current one if left out.
            secret_store: the one of ``paths.hub`` if left out.

        Raises:
            BadRequest: there is an authority already.
            Malformed: no P-256 key, or not the certificate's.
            ReadOnly, DiskFull, StorageError: it could not be kept.
        """
        certificate = certificates.load_pem(certificate_pem)
        try:
            key = serialization.load_der_private_key(private_key, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
            raise Malformed("The authority's private key cannot be read.") from exc
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            keys.public_der(key.public_key()) != certificates.public_key_of(certificate)
        ):
            raise Malformed("The authority's key and certificate do not belong together.")
        return cls._keep(key, certificate, paths, platform, secret_store)

    @classmethod
    def remove(
        cls,
        paths: Paths,
        platform: Platform | None = None,
        secret_store: SecretStore | None = None,
    ) -> None:
        """Forget the authority of this PC for good; harmless if there is none."""
        store = secret_store or SecretStore(paths.hub, platform)
        try:
            fleet = certificates.fleet_of(certificates.load_pem(_cert_path(paths).read_bytes()))
        except (OSError, Malformed):
            fleet = None
        _key_path(paths).unlink(missing_ok=True)
        if fleet is not None:
            store.delete(_secret_name(fleet))
        _cert_path(paths).unlink(missing_ok=True)

    def sign(self, payload: bytes) -> bytes:
        """DER-encoded ECDSA P-256 SHA-256 signature over ``payload``."""
        return keys.sign(self._key, payload)

    def issue(self, csr: bytes, *, now: dt.datetime | None = None) -> bytes:
        """A leaf certificate (PEM) for the key in ``csr`` (PEM), valid for 30 days.

        Nothing else of the request is taken over. Whether that device *may* have one is for the
        caller to decide before.

        Raises:
            Malformed: no request, a wrong kind of key, or one the sender does not possess.
        """
        try:
            request = x509.load_pem_x509_csr(csr)
            valid, key = request.is_signature_valid, request.public_key()
        except keys.UNREADABLE as exc:
            raise Malformed("A certificate request cannot be read.") from exc
        public = keys.require_p256(key)
        if not valid:
            raise Malformed("A certificate request is not signed by the key it names.")
        leaf = certificates.leaf_certificate(
            public, self._key, self._certificate, now or dt.datetime.now(dt.UTC)
        )
        return certificates.pem_of(leaf)

    @property
    def private_key(self) -> bytes:
        """PKCS#8 in DER, not encrypted: only for a recovery file or the next coordinator."""
        return self._key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @classmethod
    def _keep(
        cls,
        key: ec.EllipticCurvePrivateKey,
        certificate: x509.Certificate,
        paths: Paths,
        platform: Platform | None,
        secret_store: SecretStore | None,
    ) -> Authority:
        if cls.exists(paths):
            raise BadRequest(
                "This PC is already the coordinator of a fleet.",
                remedy="Leave that fleet first.",
            )
        platform = current() if platform is None else platform
        platform.make_private_dir(paths.hub)
        store = secret_store or SecretStore(paths.hub, platform)
        passphrase = secrets.token_urlsafe(32)
        kept = store.store(_secret_name(certificates.fleet_of(certificate)), passphrase)
        write_atomic(_cert_path(paths), certificates.pem_of(certificate))
        # last: its presence is what makes this PC a coordinator
        platform.write_private(_key_path(paths), _encrypt(key, passphrase.encode()))
        return cls._build(key, certificate, kept)

    @classmethod
    def _build(
        cls, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, kept: Kept | None
    ) -> Authority:
        public = keys.public_der(key.public_key())
        if public != certificates.public_key_of(certificate):
            raise StorageError("The authority's key and certificate do not belong together.")
        spki = keys.spki_hash(public)
        pem = certificates.pem_of(certificate)
        return cls(keys.fleet_id_of(spki), spki, public, pem, kept, key, certificate)


def _key_path(paths: Paths) -> Path:
    return paths.hub / "authority.key"


def _cert_path(paths: Paths) -> Path:
    return paths.hub / "authority.crt"


def _secret_name(fleet: FleetId) -> str:
    return f"authority-{fleet}"


def _damaged(path: Path) -> StorageError:
    return StorageError(
        f"{path} is damaged.", remedy="Restore the fleet's authority from its recovery file."
    )


def _encrypt(key: ec.EllipticCurvePrivateKey, password: bytes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )


def _decrypt(pem: bytes, password: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password)
    except (TypeError, UnsupportedAlgorithm) as exc:
        raise ValueError(str(exc)) from exc
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an EC key")  # noqa: TRY004  (one kind for the caller)
    return key
