import base64
import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import verification

from fleetapp.errors import BadRequest, Malformed, NotFound, StorageError, WrongFleet
from fleetapp.fleet import certificates, keys
from fleetapp.fleet.authority import Authority
from fleetapp.fleet.identity import Identity, verify
from fleetapp.fleet.secrets import SecretStore
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "José 測試 dir")


def store(paths: Paths) -> SecretStore:
    return SecretStore(paths.hub, FakePlatform(), {"FLEETAPP_KEYRING": "off"})


def create(paths: Paths) -> Authority:
    return Authority.create(paths, FakePlatform(), store(paths))


def device(tmp_path: Path, name: str = "d") -> Identity:
    return Identity.load_or_create(Paths(tmp_path / name), FakePlatform())


def test_an_authority_is_opened_as_it_was_created(paths: Paths) -> None:
    assert not Authority.exists(paths)
    made = create(paths)
    opened = Authority.open(paths, FakePlatform(), store(paths))
    assert Authority.exists(paths)
    assert (opened.fleet_id, opened.spki, opened.certificate_pem) == (
        made.fleet_id,
        made.spki,
        made.certificate_pem,
    )
    verify(b"x", opened.sign(b"x"), made.spki, made.public_key)


def test_its_key_lies_encrypted_and_it_is_said_where_the_passphrase_is(paths: Paths) -> None:
    made = create(paths)
    pem = (paths.hub / "authority.key").read_bytes()
    assert b"ENCRYPTED PRIVATE KEY" in pem
    with pytest.raises(TypeError):
        serialization.load_pem_private_key(pem, password=None)
    assert made.kept is not None
    assert made.kept.place == "file"
    assert "FLEETAPP_KEYRING" in made.kept.statement
    assert "PrivateKey" not in repr(made)


def test_a_second_fleet_on_one_pc_is_refused(paths: Paths) -> None:
    create(paths)
    with pytest.raises(BadRequest, match="already"):
        create(paths)


def test_no_authority_is_told_apart_from_a_damaged_one(paths: Paths) -> None:
    with pytest.raises(NotFound):
        Authority.open(paths, FakePlatform(), store(paths))
    create(paths)
    (paths.hub / "authority.key").write_bytes(b"garbage")
    with pytest.raises(StorageError, match=r"authority\.key"):
        Authority.open(paths, FakePlatform(), store(paths))
    (paths.hub / "authority.crt").write_bytes(b"garbage")
    with pytest.raises(StorageError, match=r"authority\.crt"):
        Authority.open(paths, FakePlatform(), store(paths))


def test_a_removed_authority_leaves_no_key_and_no_passphrase(paths: Paths) -> None:
    create(paths)
    Authority.remove(paths, FakePlatform(), store(paths))
    assert not list(paths.hub.iterdir())
    Authority.remove(paths, FakePlatform(), store(paths))
    create(paths)


def test_a_strict_verifier_accepts_authority_and_leaf_for_both_ends(
    paths: Paths, tmp_path: Path
) -> None:
    """pyca's verifier follows RFC 5280 and the CA/B profile and knows no leniency."""
    authority, member = create(paths), device(tmp_path)
    root = certificates.load_pem(authority.certificate_pem)
    leaf = certificates.load_pem(authority.issue(member.csr()))
    policy = verification.PolicyBuilder().store(verification.Store([root]))
    name = certificates.hostname_of(member.device_id, authority.fleet_id)
    chain = policy.build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    assert chain == [leaf, root]
    assert policy.build_client_verifier().verify(leaf, []).chain == [leaf, root]
    with pytest.raises(verification.VerificationError):
        policy.build_server_verifier(x509.DNSName("x.fleet.internal")).verify(leaf, [])


def test_the_authoritys_extensions_are_what_rfc_5280_asks_of_a_ca(paths: Paths) -> None:
    root = certificates.load_pem(create(paths).certificate_pem)
    basic = root.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = root.extensions.get_extension_for_class(x509.KeyUsage)
    subject = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    issuer = root.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    assert basic.critical
    assert (basic.value.ca, basic.value.path_length) == (True, 0)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert issuer.value.key_identifier == subject.value.digest


def test_a_leaf_lasts_30_days_is_renewed_at_half_and_forgives_slow_clocks(
    paths: Paths, tmp_path: Path
) -> None:
    now = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
    leaf = certificates.load_pem(create(paths).issue(device(tmp_path).csr(), now=now))
    assert leaf.not_valid_after_utc - now == dt.timedelta(days=30)
    assert now - leaf.not_valid_before_utc == dt.timedelta(hours=26)
    half = dt.datetime.fromtimestamp(certificates.renew_at(leaf), dt.UTC)
    assert dt.timedelta(days=14) < half - now < dt.timedelta(days=16)


def test_what_a_request_asks_for_beyond_its_key_is_not_granted(paths: Paths) -> None:
    key = keys.new_key()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "admin")])
    csr = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("other")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    authority = create(paths)
    leaf = certificates.load_pem(authority.issue(csr.public_bytes(serialization.Encoding.PEM)))
    device_id = certificates.device_of(leaf)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        f"{device_id}.{authority.fleet_id}.fleet.internal"
    ]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert "admin" not in leaf.subject.rfc4514_string()


def test_a_request_must_prove_its_key(paths: Paths, tmp_path: Path) -> None:
    authority = create(paths)
    der = bytearray(
        x509.load_pem_x509_csr(device(tmp_path).csr()).public_bytes(serialization.Encoding.DER)
    )
    der[-1] ^= 1
    forged = x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(Malformed, match="not signed"):
        authority.issue(forged)


def test_garbage_and_other_keys_get_no_certificate(paths: Paths) -> None:
    authority = create(paths)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = csr.sign(rsa.generate_private_key(65537, 2048), hashes.SHA256())
    for request in (b"", b"garbage", signed.public_bytes(serialization.Encoding.PEM)):
        with pytest.raises(Malformed):
            authority.issue(request)


def test_versions_that_do_not_exist_are_malformed(paths: Paths, tmp_path: Path) -> None:
    """The library has an error of its own for these."""
    authority = create(paths)
    request = x509.load_pem_x509_csr(device(tmp_path, "a").csr())
    der = request.public_bytes(serialization.Encoding.DER).replace(
        b"\x02\x01\x00", b"\x02\x01\x10", 1
    )
    with pytest.raises(Malformed):
        authority.issue(_pem(der, "CERTIFICATE REQUEST"))
    der = certificates.load_pem(authority.certificate_pem).public_bytes(serialization.Encoding.DER)
    der = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x10", 1)
    for read in (certificates.load_pem, lambda _: keys.spki_of(der)):
        with pytest.raises(Malformed):
            read(_pem(der, "CERTIFICATE"))


def _pem(der: bytes, kind: str) -> bytes:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n".encode()


def test_a_join_code_recognises_its_authority_and_no_other(paths: Paths, tmp_path: Path) -> None:
    mine, other = create(paths), create(Paths(tmp_path / "other"))
    prefix = bytes.fromhex(mine.spki)[:16]
    certificate = certificates.check_authority(mine.certificate_pem, prefix)
    assert certificates.fleet_of(certificate) == mine.fleet_id
    with pytest.raises(WrongFleet):
        certificates.check_authority(other.certificate_pem, prefix)
    with pytest.raises(WrongFleet):
        certificates.check_authority(mine.certificate_pem, b"")
    with pytest.raises(Malformed):
        certificates.check_authority(b"<html>", prefix)


def test_a_device_takes_only_its_own_leaf_of_that_authority(paths: Paths, tmp_path: Path) -> None:
    mine, other = create(paths), create(Paths(tmp_path / "other"))
    root = certificates.load_pem(mine.certificate_pem)
    a, b = device(tmp_path, "a"), device(tmp_path, "b")
    certificates.check_leaf(mine.issue(a.csr()), root, a.spki)
    with pytest.raises(Malformed, match="another device"):
        certificates.check_leaf(mine.issue(b.csr()), root, a.spki)
    with pytest.raises(WrongFleet):
        certificates.check_leaf(other.issue(a.csr()), root, a.spki)


def test_an_authority_is_restored_on_another_pc_and_nowhere_in_the_clear(
    paths: Paths, tmp_path: Path
) -> None:
    made, elsewhere = create(paths), Paths(tmp_path / "new pc")
    back = Authority.restore(
        made.private_key, made.certificate_pem, elsewhere, FakePlatform(), store(elsewhere)
    )
    assert back.spki == made.spki
    assert Authority.open(elsewhere, FakePlatform(), store(elsewhere)).spki == made.spki
    assert all(
        made.private_key not in f.read_bytes() for f in elsewhere.hub.iterdir() if f.is_file()
    )
    with pytest.raises(BadRequest, match="already"):
        Authority.restore(
            made.private_key, made.certificate_pem, elsewhere, FakePlatform(), store(elsewhere)
        )


def test_a_key_that_is_not_the_certificates_is_not_kept(paths: Paths, tmp_path: Path) -> None:
    made, other = create(paths), create(Paths(tmp_path / "other"))
    elsewhere = Paths(tmp_path / "new pc")
    for key in (other.private_key, b"", b"garbage", made.private_key[:-1]):
        with pytest.raises(Malformed):
            Authority.restore(
                key, made.certificate_pem, elsewhere, FakePlatform(), store(elsewhere)
            )
    assert not Authority.exists(elsewhere)
