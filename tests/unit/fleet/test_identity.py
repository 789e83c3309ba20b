import os
import re
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.errors import BadSignature, Malformed, StorageError
from fleetapp.fleet import keys
from fleetapp.fleet.identity import Identity, verify
from fleetapp.platform.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "José 測試 dir")


def test_the_first_start_makes_a_key_and_later_ones_keep_it(paths: Paths) -> None:
    first = Identity.load_or_create(paths)
    assert Identity.load_or_create(paths) == first
    assert re.fullmatch("[a-z2-7]{20}", first.device_id)
    assert keys.device_id_of(first.spki) == first.device_id
    assert keys.spki_hash(first.public_key) == first.spki
    if os.name != "nt":
        assert stat.S_IMODE(first.key_path.stat().st_mode) == 0o600
        assert stat.S_IMODE(paths.identity.stat().st_mode) == 0o700


def test_the_private_key_shows_in_no_representation(paths: Paths) -> None:
    assert "PrivateKey" not in repr(Identity.load_or_create(paths))


def test_the_self_signed_certificate_is_of_this_key_and_is_made_again_if_lost(paths: Paths) -> None:
    identity = Identity.load_or_create(paths)
    identity.cert_path.unlink()
    Identity.load_or_create(paths)
    certificate = x509.load_pem_x509_certificate(identity.cert_path.read_bytes())
    assert keys.spki_of(certificate.public_bytes(serialization.Encoding.DER)) == identity.spki
    certificate.verify_directly_issued_by(certificate)


@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\nAA\n"])
def test_a_damaged_key_is_named_and_kept(paths: Paths, content: bytes) -> None:
    paths.identity.mkdir(parents=True)
    paths.device_key.write_bytes(content)
    with pytest.raises(StorageError, match=r"device\.key"):
        Identity.load_or_create(paths)
    assert paths.device_key.read_bytes() == content


@pytest.mark.parametrize(
    "key", [ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)]
)
def test_a_key_of_another_kind_is_not_taken(paths: Paths, key) -> None:
    paths.identity.mkdir(parents=True)
    paths.device_key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(StorageError):
        Identity.load_or_create(paths)
    with pytest.raises(Malformed, match="P-256"):
        keys.require_p256(key.public_key())


def test_a_copied_state_gets_a_new_identity(paths: Paths) -> None:
    """Trap T18."""
    old = Identity.load_or_create(paths)
    new = Identity.fresh(paths)
    assert Identity.load_or_create(paths).spki != new.spki
    new.save()
    assert new.device_id != old.device_id
    assert Identity.load_or_create(paths) == new


ONE, TWO = keys.new_key(), keys.new_key()


@settings(deadline=None)
@given(st.binary(max_size=64), st.binary(max_size=64))
def test_a_signature_holds_for_its_bytes_and_key_only(payload: bytes, other: bytes) -> None:
    public, theirs = keys.public_der(ONE.public_key()), keys.public_der(TWO.public_key())
    spki = keys.spki_hash(public)
    signature = keys.sign(ONE, payload)
    verify(payload, signature, spki, public)
    with pytest.raises(BadSignature):
        verify(payload, signature, spki, theirs)
    with pytest.raises(BadSignature):
        verify(payload, signature, keys.spki_hash(theirs), theirs)
    with pytest.raises(BadSignature):
        verify(payload, other, spki, public)
    if other != payload:
        with pytest.raises(BadSignature):
            verify(other, signature, spki, public)


@pytest.mark.parametrize("garbage", [b"", b"x", b"\x30\x00"])
def test_garbage_instead_of_a_key_or_certificate_is_malformed(garbage: bytes) -> None:
    with pytest.raises(Malformed):
        keys.load_public(garbage)
    with pytest.raises(Malformed):
        keys.spki_of(garbage)
