"""ECDSA P-256 keys and signatures, and the names derived from a public key.

A key's name is the SHA-256 of its SubjectPublicKeyInfo in DER: ``spki`` in hex where machines
compare it, its first 20 base32 characters where people read it (device and fleet ids).
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fleetapp.errors import BadSignature, Malformed
from fleetapp.types import DeviceId, FleetId

ID_LENGTH = 20
UNREADABLE = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)
"""What cryptography raises for certificates, requests and keys that are none."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh P-256 private key."""
    return ec.generate_private_key(ec.SECP256R1())


def public_der(key: ec.EllipticCurvePublicKey) -> bytes:
    """SubjectPublicKeyInfo in DER (91 bytes for P-256)."""
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def load_public(der: bytes) -> ec.EllipticCurvePublicKey:
    """The P-256 key in ``der``.

    Raises:
        Malformed: it is something else.
    """
    try:
        key = serialization.load_der_public_key(der)
    except UNREADABLE as exc:
        raise Malformed("A public key cannot be read.") from exc
    return require_p256(key)


def require_p256(key: object) -> ec.EllipticCurvePublicKey:
    """``key`` itself if it is on P-256, the only curve a fleet uses.

    Raises:
        Malformed: another kind of key.
    """
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Malformed("A key is not an ECDSA P-256 key, the only kind a fleet uses.")
    return key


def spki_hash(public_key: bytes) -> str:
    """Hex SHA-256 of a SubjectPublicKeyInfo in DER."""
    return hashlib.sha256(public_key).hexdigest()


def spki_of(cert_der: bytes) -> str:
    """``spki`` of the key inside a certificate in DER.

    Raises:
        Malformed: the bytes are no certificate.
    """
    try:
        key = x509.load_der_x509_certificate(cert_der).public_key()
    except UNREADABLE as exc:
        raise Malformed("A certificate cannot be read.") from exc
    return spki_hash(
        key.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _readable(spki: str) -> str:
    return base64.b32encode(bytes.fromhex(spki)).decode().lower()[:ID_LENGTH]


def device_id_of(spki: str) -> DeviceId:
    """The device id that belongs to ``spki``."""
    return DeviceId(_readable(spki))


def fleet_id_of(spki: str) -> FleetId:
    """The fleet id that belongs to an authority's ``spki``."""
    return FleetId(_readable(spki))


def hardware_id(facts: tuple[str, ...], fleet: str) -> str:
    """What a fleet may know of a PC: whether it is the same one as before, and nothing else.

    Args:
        facts: ``Platform.machine_facts()``.
        fleet: its id, so that two fleets cannot find out that they know the same PC.

    Returns:
        32 hex digits; empty without facts.
    """
    if not facts:
        return ""
    text = "\0".join(("fleetapp hardware", fleet, *facts))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def sign(key: ec.EllipticCurvePrivateKey, payload: bytes) -> bytes:
    """DER-encoded ECDSA P-256 SHA-256 signature over ``payload``."""
    return key.sign(payload, ec.ECDSA(hashes.SHA256()))


def verify(payload: bytes, signature: bytes, spki: str, public_key: bytes) -> None:
    """Return only if ``public_key`` (DER) is the key named ``spki`` and signed ``payload``.

    Raises:
        BadSignature: it is not that key, or that key did not sign these bytes.
    """
    if not hmac.compare_digest(spki_hash(public_key), spki):
        raise BadSignature("A signature names another key than the one given for it.")
    try:
        load_public(public_key).verify(signature, payload, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, Malformed) as exc:
        raise BadSignature(
            f"A document was not signed by {device_id_of(spki)}, or was changed afterwards."
        ) from exc
