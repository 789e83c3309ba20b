"""Making and reading the two kinds of certificate a fleet has (RFC 5280).

Names carry ids derived from keys and nothing about people or PCs.
"""

from __future__ import annotations

import datetime as dt

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fleetapp.errors import Malformed, WrongFleet
from fleetapp.fleet import keys
from fleetapp.types import DeviceId, FleetId

LEAF_DAYS = 30
AUTHORITY_DAYS = 20 * 365
CLOCK_SLACK = dt.timedelta(hours=26)
"""How far a member's clock may be behind the coordinator's without refusing a new leaf: a day, as
when somebody has set the wrong date, or the wrong zone. Ahead it may be by half a leaf's life."""
DOMAIN = "fleet.internal"


def hostname_of(device: str, fleet: str) -> str:
    """The name inside a member's certificate, checked on every connection."""
    return f"{device}.{fleet}.{DOMAIN}"


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        # the authority's key also signs membership lists
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def authority_certificate(key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> x509.Certificate:
    """Self-signed certificate of a fleet's authority."""
    public = key.public_key()
    fleet = keys.fleet_id_of(keys.spki_hash(keys.public_der(public)))
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    return (
        x509.CertificateBuilder()
        .subject_name(_common_name(f"fleetapp authority {fleet}"))
        .issuer_name(_common_name(f"fleetapp authority {fleet}"))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + dt.timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )


def leaf_certificate(
    public: ec.EllipticCurvePublicKey,
    authority_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    now: dt.datetime,
) -> x509.Certificate:
    """A member's certificate for 30 days, for both ends of a connection."""
    device = keys.device_id_of(keys.spki_hash(keys.public_der(public)))
    fleet = fleet_of(authority)
    issuer = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        x509.CertificateBuilder()
        .subject_name(_common_name(device))
        .issuer_name(authority.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + dt.timedelta(days=LEAF_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
            ),
            critical=False,
        )
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(hostname_of(device, fleet))]),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )


def load_pem(pem: bytes) -> x509.Certificate:
    """One certificate with a P-256 key.

    Raises:
        Malformed: anything else.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        key = certificate.public_key()
    except keys.UNREADABLE as exc:
        raise Malformed("A certificate cannot be read.") from exc
    keys.require_p256(key)
    return certificate


def pem_of(certificate: x509.Certificate) -> bytes:
    """The certificate in PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def public_key_of(certificate: x509.Certificate) -> bytes:
    """SubjectPublicKeyInfo (DER) of its key."""
    return keys.public_der(keys.require_p256(certificate.public_key()))


def spki(certificate: x509.Certificate) -> str:
    """Hex SHA-256 of its SubjectPublicKeyInfo."""
    return keys.spki_hash(public_key_of(certificate))


def device_of(certificate: x509.Certificate) -> DeviceId:
    """The device id of its key."""
    return keys.device_id_of(spki(certificate))


def fleet_of(authority: x509.Certificate) -> FleetId:
    """The fleet id of an authority's certificate."""
    return keys.fleet_id_of(spki(authority))


def check_authority(pem: bytes, spki_prefix: bytes) -> x509.Certificate:
    """The authority's certificate that a join code speaks of, out of an unverified source.

    Args:
        pem: what the hub sent.
        spki_prefix: first bytes of the SHA-256 that the join code carries (16).

    Raises:
        Malformed: no certificate.
        WrongFleet: the authority of another fleet, or somebody in between.
    """
    certificate = load_pem(pem)
    if not bytes.fromhex(spki(certificate)).startswith(spki_prefix) or not spki_prefix:
        raise WrongFleet(
            "The hub that answered belongs to another fleet than the join code.",
            remedy="Check the hub's address, or ask the admin for a code of that fleet.",
        )
    return certificate


def check_leaf(pem: bytes, authority: x509.Certificate, spki_expected: str) -> x509.Certificate:
    """The leaf that an authority just issued to this device.

    Raises:
        Malformed: no certificate, or one for another key.
        WrongFleet: not signed by that authority.
    """
    leaf = load_pem(pem)
    if spki(leaf) != spki_expected:
        raise Malformed("The hub sent a certificate for another device's key.")
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as exc:
        raise WrongFleet("The hub sent a certificate that its authority did not sign.") from exc
    return leaf


def renew_at(leaf: x509.Certificate) -> float:
    """Wall-clock seconds since 1970 of its half-life, when a new one should be asked for."""
    issued, end = leaf.not_valid_before_utc + CLOCK_SLACK, leaf.not_valid_after_utc
    return (issued + (end - issued) / 2).timestamp()
