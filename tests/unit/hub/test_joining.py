"""Who gets in, who waits, and who is told no; every answer is on disk before it is given."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleetapp.agent.joining import proof_of_key
from fleetapp.errors import (
    BadJoinCode,
    BadRequest,
    ExpiredJoinCode,
    Malformed,
    NotAMember,
    NotFound,
    RevokedJoinCode,
    StorageError,
    TooManyAttempts,
    UsedUpJoinCode,
)
from fleetapp.fleet import certificates, joincode
from fleetapp.fleet.control import JoinRequest
from fleetapp.fleet.membership import reinstate, revoke, verify_membership
from fleetapp.types import PROTOCOL_VERSION
from tests.support.hubs import TestHub


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


def code(home: TestHub, *, hours: float = 1.0, uses: int = 5, approve: bool = False) -> str:
    return home.codes.create(hours=hours, uses=uses, approve=approve).code


def audit(home: TestHub) -> list[str]:
    lines = (home.folder / "audit.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["action"] for line in lines]


def test_a_good_code_makes_a_member_with_a_certificate_of_its_own_key(home: TestHub) -> None:
    anna = home.newcomer("anna")
    reply = home.ask(anna, code(home), name="ANNA-PC")
    assert not reply.pending
    assert reply.fleet_name == "office"
    authority = certificates.load_pem(home.fleet.authority.certificate_pem)
    certificates.check_leaf(reply.leaf.encode(), authority, anna.spki)
    assert reply.membership is not None
    members = verify_membership(reply.membership, home.fleet.authority.public_key).members
    assert members[anna.device_id].name == "ANNA-PC"
    assert members[anna.device_id].roles == ("member",), "a code makes nobody an admin"
    assert audit(home) == ["joined"]
    home.restart()
    assert anna.device_id in home.members


def test_the_coordinator_says_whose_name_to_expect(home: TestHub) -> None:
    reply = home.hub.gate.authority_reply()
    assert reply.hub_device == home.me.identity.device_id
    certificates.check_authority(reply.authority.encode(), joincode.decode(code(home)).spki_prefix)


def test_an_unknown_code_is_refused_and_nothing_changes(home: TestHub) -> None:
    before = home.trust.epoch
    stranger = joincode.encode(joincode.new(home.fleet.authority.spki))
    with pytest.raises(BadJoinCode, match="does not know"):
        home.ask(home.newcomer("anna"), stranger)
    assert home.trust.epoch == before
    assert len(home.members) == 1


@pytest.mark.parametrize("at", [6, 20, -1])
def test_a_mistyped_code_is_found_out_before_anybody_is_asked(home: TestHub, at: int) -> None:
    text = code(home)
    wrong = "Z" if text[at] != "Z" else "Y"
    mistyped = text[:at] + wrong + (text[at + 1 :] if at != -1 else "")
    with pytest.raises(BadJoinCode, match="mistyped"):
        joincode.decode(mistyped)


def test_an_expired_code_says_so(home: TestHub) -> None:
    text = code(home, hours=1.0)
    home.clock.now += 3600
    with pytest.raises(ExpiredJoinCode, match="expired"):
        home.ask(home.newcomer("anna"), text)


def test_a_code_of_one_use_takes_one_pc(home: TestHub) -> None:
    text = code(home, uses=1)
    home.ask(home.newcomer("anna"), text)
    with pytest.raises(UsedUpJoinCode):
        home.ask(home.newcomer("ben"), text)
    assert len(home.members) == 2


def test_a_revoked_code_says_so(home: TestHub) -> None:
    text = code(home)
    home.codes.revoke(home.codes.views()[0].code_id)
    with pytest.raises(RevokedJoinCode):
        home.ask(home.newcomer("anna"), text)


def test_guessing_is_slowed_down_for_the_guesser_alone(home: TestHub) -> None:
    good, anna = code(home), home.newcomer("anna")
    for _ in range(5):
        with pytest.raises(BadJoinCode):
            home.ask(anna, joincode.encode(joincode.new(home.fleet.authority.spki)))
    with pytest.raises(TooManyAttempts):
        home.ask(anna, good)
    home.ask(home.newcomer("ben"), good, source="192.0.2.2")
    home.clock.now += 61
    home.ask(anna, good)


@pytest.mark.parametrize("secret", ["zz", "0", "aé", "00" * 9])
def test_a_secret_that_is_none_is_refused(home: TestHub, secret: str) -> None:
    csr = home.newcomer("anna").csr().decode()
    with pytest.raises((BadRequest, BadJoinCode)):
        home.hub.gate.request(JoinRequest(PROTOCOL_VERSION, secret, csr, "a"), "192.0.2.1")
    assert len(home.members) == 1


@pytest.mark.parametrize("csr", ["", "no request", "-----BEGIN CERTIFICATE REQUEST-----\nAA\n"])
def test_a_broken_signing_request_spends_no_use(home: TestHub, csr: str) -> None:
    text = code(home, uses=1)
    secret = joincode.decode(text).secret.hex()
    with pytest.raises(Malformed):
        home.hub.gate.request(JoinRequest(PROTOCOL_VERSION, secret, csr, "a"), "192.0.2.1")
    home.ask(home.newcomer("anna"), text)


@pytest.mark.parametrize("name", ["", "   ", "\n\x1b[31m", "x" * 500, "José 測試"])
def test_any_name_will_do(home: TestHub, name: str) -> None:
    anna = home.newcomer("anna")
    home.ask(anna, code(home), name=name)
    shown = home.members[anna.device_id].name
    assert shown
    assert shown.isprintable()
    assert len(shown) <= 64


def test_a_member_that_asks_again_gets_a_new_certificate_and_spends_nothing(home: TestHub) -> None:
    text, anna = code(home, uses=1), home.newcomer("anna")
    first = home.ask(anna, text)
    epoch = home.trust.epoch
    again = home.ask(anna, text)
    assert not again.pending
    assert again.leaf != first.leaf
    assert home.trust.epoch == epoch
    # The key is proof enough: its code may have run out long ago.
    home.clock.now += 10 * 3600
    assert home.ask(anna, text).leaf


def test_a_key_without_a_code_renews_and_admits_nobody(home: TestHub) -> None:
    anna, stranger = home.enrol("anna"), home.newcomer("stranger")
    reply = home.hub.gate.request(proof_of_key(anna.identity, "anna"), "192.0.2.1")
    assert anna.store.save_leaf(reply.leaf.encode()).not_valid_after_utc
    for _ in range(20):  # it is not taken for guessing a code, either
        with pytest.raises(NotAMember, match="no member"):
            home.hub.gate.request(proof_of_key(stranger, "stranger"), "192.0.2.1")
    home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
    with pytest.raises(NotAMember, match="removed"):
        home.hub.gate.request(proof_of_key(anna.identity, "anna"), "192.0.2.1")
    assert stranger.device_id not in home.members


def test_a_revoked_pc_is_not_let_in_again_by_any_code(home: TestHub) -> None:
    text, anna = code(home), home.newcomer("anna")
    home.ask(anna, text)
    home.hub.change_membership(lambda m: revoke(m, anna.device_id))
    with pytest.raises(NotAMember, match="removed from the fleet"):
        home.ask(anna, text)
    with pytest.raises(NotAMember):
        home.ask(anna, code(home))
    home.hub.change_membership(lambda m: reinstate(m, anna.device_id))
    assert home.ask(anna, text).leaf


def test_two_pcs_that_join_at_once_both_get_in(home: TestHub) -> None:
    # The HTTP layer asks the gate on the event loop, one after the other; what must not happen is
    # that the second extends a list that lacks the first.
    text = code(home, uses=2)
    replies = [home.ask(home.newcomer(n), text) for n in ("anna", "ben")]
    epochs = [
        verify_membership(r.membership, home.fleet.authority.public_key).epoch
        for r in replies
        if r.membership is not None
    ]
    assert epochs[1] == epochs[0] + 1
    assert len(home.members) == 3
    home.restart()
    assert len(home.members) == 3


def test_a_code_of_one_use_is_spent_once_even_by_two_threads(home: TestHub) -> None:
    secret = joincode.decode(code(home, uses=1)).secret
    barrier = threading.Barrier(8)

    def redeem(number: int) -> bool:
        barrier.wait(5)
        try:
            home.codes.redeem(secret, home.newcomer(f"pc{number}").device_id)
        except UsedUpJoinCode:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(redeem, range(8))) == 1


# ------------------------------------------------------------------ with the admin's yes


def test_with_approval_a_pc_waits_until_the_admin_says_yes(home: TestHub) -> None:
    text, anna = code(home, approve=True, uses=1), home.newcomer("anna")
    assert home.ask(anna, text, name="ANNA-PC").pending
    assert anna.device_id not in home.members
    waiting = [n for n in home.hub.view().nodes if n.state == "pending"]
    assert [(n.device_id, n.name) for n in waiting] == [(anna.device_id, "ANNA-PC")]
    reply = home.ask(anna, text)
    assert (reply.pending, reply.leaf, reply.membership) == (True, "", None)
    home.hub.gate.approve(anna.device_id)
    reply = home.ask(anna, text)
    assert reply.leaf
    assert home.members[anna.device_id].name == "ANNA-PC"
    assert [n for n in home.hub.view().nodes if n.state == "pending"] == []
    assert audit(home) == ["join_asked", "approved", "certificate_issued"]


def test_asking_every_two_seconds_makes_one_entry(home: TestHub) -> None:
    text, anna = code(home, approve=True), home.newcomer("anna")
    for _ in range(5):
        home.ask(anna, text)
    assert home.state.value is not None
    assert len(home.state.value.pending) == 1
    assert audit(home) == ["join_asked"]


def test_who_waits_goes_on_waiting_when_the_code_runs_out_or_the_hub_restarts(
    home: TestHub,
) -> None:
    text, anna = code(home, approve=True, hours=1), home.newcomer("anna")
    home.ask(anna, text)
    home.clock.now += 2 * 3600
    home.restart()
    assert home.ask(anna, text).pending
    home.hub.gate.approve(anna.device_id)
    assert home.ask(anna, text).leaf


def test_a_declined_pc_does_not_come_back_by_asking_on(home: TestHub) -> None:
    text, anna = code(home, approve=True), home.newcomer("anna")
    home.ask(anna, text)
    home.hub.gate.decline(anna.device_id)
    with pytest.raises(NotAMember, match="declined"):
        home.ask(anna, text)
    home.restart()
    with pytest.raises(NotAMember, match="declined"):
        home.ask(anna, text)
    assert [n for n in home.hub.view().nodes if n.state == "pending"] == []
    # Another code is another question, and nobody else is concerned.
    assert home.ask(anna, code(home, approve=True)).pending
    assert home.ask(home.newcomer("ben"), text).pending


def test_yes_or_no_to_somebody_who_does_not_wait_is_said(home: TestHub) -> None:
    with pytest.raises(NotFound, match="nobody"):
        home.hub.gate.approve("nobody")
    with pytest.raises(NotFound):
        home.hub.gate.decline("nobody")


# ------------------------------------------------------------------ the state on disk


def test_epochs_of_membership_and_chains_only_rise_across_restarts(home: TestHub) -> None:
    text = code(home)
    seen, chains = [home.trust.epoch], [home.hub.models.next_epoch()]
    for name in ("anna", "ben", "cora"):
        home.ask(home.newcomer(name), text)
        seen.append(home.trust.epoch)
        home.restart()
        seen.append(home.trust.epoch)
        chains.append(home.hub.models.next_epoch())
    assert seen == sorted(seen)
    assert len(set(seen)) == 4
    assert chains == sorted(set(chains))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"\xff\xfe", b'{"fleet_id": 3}', b'{"fleet_id": "a"}']
)
def test_a_damaged_state_is_named_and_kept(home: TestHub, content: bytes) -> None:
    file = home.folder / "state.json"
    file.write_bytes(content)
    with pytest.raises(StorageError, match="damaged") as caught:
        home.state.load()
    assert str(file) in caught.value.message
    assert caught.value.remedy
    assert file.read_bytes() == content
