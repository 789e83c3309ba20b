"""The recovery file holds the fleet for whoever has its passphrase, and nothing for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.errors import BadRequest, Unsupported, WrongFleet
from fleetapp.fleet import recovery
from fleetapp.fleet.membership import (
    TERM,
    Member,
    Membership,
    hand_over,
    new_member,
    next_term,
    sign_membership,
)
from fleetapp.fleet.recovery import Bundle, seal, unseal
from fleetapp.fleet.trust import TrustList
from tests.support.fleet import TestFleet

PASSPHRASE = "korrekt Pferd 電池"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> TestFleet:
    made = TestFleet(tmp_path_factory.mktemp("fleet"))
    made.enrol("hub")
    made.enrol("anna")
    return made


@pytest.fixture(scope="module")
def bundle(fleet: TestFleet) -> Bundle:
    return Bundle(
        authority_key=fleet.authority.private_key,
        authority=fleet.authority.certificate_pem.decode(),
        membership=sign_membership(fleet.membership, fleet.authority),
        made=1.7e9,
        files={"keys.json": b'{"secret": 1}'},
    )


@pytest.fixture(scope="module")
def sealed(bundle: Bundle) -> bytes:
    return seal(bundle, PASSPHRASE)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many guesses in a short test; the cost is a test of its own."""
    monkeypatch.setattr(recovery, "_SCRYPT_N", 2)


def test_what_was_sealed_is_opened_with_the_passphrase_only(bundle: Bundle, sealed: bytes) -> None:
    assert unseal(sealed, PASSPHRASE) == bundle
    with pytest.raises(BadRequest, match="passphrase"):
        unseal(sealed, PASSPHRASE + " ")


def test_it_says_what_it_is_and_shows_no_secret(
    fleet: TestFleet, bundle: Bundle, sealed: bytes
) -> None:
    text = sealed.decode("ascii")
    assert fleet.authority.fleet_id in text
    assert "2023-11-14" in text
    assert "fleetapp fleet recovery use" in text
    assert "anna" not in text
    assert "PRIVATE KEY" not in text
    assert str(bundle.authority_key) not in repr(bundle)


def test_each_file_is_another(bundle: Bundle, sealed: bytes) -> None:
    again = seal(bundle, PASSPHRASE)
    assert again.splitlines()[6:9] != sealed.splitlines()[6:9], "salt and nonce are fresh"


def test_a_file_that_went_through_mail_still_opens(bundle: Bundle, sealed: bytes) -> None:
    assert unseal(b"\n" + sealed.replace(b"\n", b"\r\n") + b"\n\n", PASSPHRASE) == bundle


def test_a_short_passphrase_is_refused(bundle: Bundle) -> None:
    with pytest.raises(BadRequest, match="12"):
        seal(bundle, "short")


def test_a_newer_format_says_so(sealed: bytes) -> None:
    with pytest.raises(Unsupported, match="format 2"):
        unseal(sealed.replace(b"file 1", b"file 2"), PASSPHRASE)


@pytest.mark.usefixtures("cheap")
def test_any_changed_byte_is_noticed(bundle: Bundle) -> None:
    sealed = seal(bundle, PASSPHRASE)

    @settings(max_examples=150)
    @given(at=st.integers(0, len(sealed) - 80), byte=st.integers(33, 126))
    def changed(at: int, byte: int) -> None:
        if sealed[at] == byte or sealed[at : at + 1].isspace():
            return
        with pytest.raises((BadRequest, Unsupported)):
            unseal(sealed[:at] + bytes([byte]) + sealed[at + 1 :], PASSPHRASE)

    changed()


@pytest.mark.usefixtures("cheap")
@settings(max_examples=150)
@given(st.binary(max_size=200), st.booleans())
def test_any_other_bytes_are_no_recovery_file(data: bytes, titled: bool) -> None:
    with pytest.raises((BadRequest, Unsupported)):
        unseal((b"fleetapp recovery file 1\n" if titled else b"") + data, PASSPHRASE)


def test_parts_that_do_not_belong_together_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    other = TestFleet(tmp_path).authority.certificate_pem.decode()
    mixed = Bundle(bundle.authority_key, other, bundle.membership, 1.0, {})
    with pytest.raises(WrongFleet):
        seal(mixed, PASSPHRASE)


# ------------------------------------------------------------------ the list of a new coordinator


def member(fleet: TestFleet, name: str) -> Member:
    return next(m for m in fleet.membership.members.values() if m.name == name)


def office(fleet: TestFleet, to: str, draw: int = 0, revoke_old: bool = False) -> Membership:
    epoch = next_term(fleet.membership.epoch, draw)
    return hand_over(fleet.membership, member(fleet, to), epoch, revoke_old=revoke_old)


def test_there_is_one_coordinator_and_the_old_one_is_a_plain_member(fleet: TestFleet) -> None:
    first = office(fleet, "hub")
    second = hand_over(first, member(fleet, "anna"), next_term(first.epoch, 0), revoke_old=False)
    roles = {m.name: m.role for m in second.members.values()}
    assert roles == {"hub": "member", "anna": "coordinator"}
    shut_out = hand_over(first, member(fleet, "anna"), next_term(first.epoch, 0), revoke_old=True)
    assert {m.name: m.state for m in shut_out.members.values()} == {
        "hub": "revoked",
        "anna": "active",
    }


def test_a_pc_that_was_none_or_was_revoked_can_be_the_coordinator(
    fleet: TestFleet, tmp_path: Path
) -> None:
    stranger = new_member(TestFleet(tmp_path).authority.public_key, "new", 2.0)
    epoch = next_term(fleet.membership.epoch, 0)
    made = hand_over(fleet.membership, stranger, epoch, revoke_old=False)
    assert made.members[stranger.device_id].role == "coordinator"
    assert len(made.members) == 3


@given(st.integers(0, 10**6), st.integers(0, TERM // 2), st.integers(0, 10**6))
def test_a_new_term_is_above_all_that_the_old_coordinator_could_sign(
    epoch: int, draw: int, more: int
) -> None:
    assert next_term(epoch, draw) > epoch + more
    assert next_term(next_term(epoch, draw), 0) > next_term(epoch, TERM // 2)


def test_of_two_new_coordinators_the_higher_epoch_wins_everywhere(fleet: TestFleet) -> None:
    lists = [
        sign_membership(office(fleet, name, draw), fleet.authority)
        for name, draw in (("hub", 5), ("anna", 9))
    ]
    for order in (lists, lists[::-1]):
        trust = TrustList(fleet.authority.public_key)
        for signed in order:
            trust.update(signed)
        assert [m.name for m in trust.coordinators()] == ["anna"]


def test_an_epoch_that_is_not_later_is_refused(fleet: TestFleet) -> None:
    with pytest.raises(BadRequest):
        hand_over(fleet.membership, member(fleet, "anna"), fleet.membership.epoch, revoke_old=False)
