import contextlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.errors import BadSignature, Malformed, NotAMember, NotFound, WrongFleet
from fleetapp.fleet import keys, membership
from fleetapp.fleet.control import Signed
from fleetapp.fleet.membership import Membership
from fleetapp.fleet.trust import TrustList


class Signer:
    """An authority's key without its certificate."""

    def __init__(self) -> None:
        self.key = keys.new_key()
        self.public = keys.public_der(self.key.public_key())
        self.spki = keys.spki_hash(self.public)
        self.fleet_id = keys.fleet_id_of(self.spki)

    def sign(self, payload: bytes) -> bytes:
        return keys.sign(self.key, payload)


AUTHORITY, OTHER = Signer(), Signer()
DEVICES = [Signer() for _ in range(4)]
IDS = [keys.device_id_of(d.spki) for d in DEVICES]


def fresh() -> Membership:
    return membership.new(AUTHORITY.fleet_id, "Büro")


def member(index: int, name: str = "pc") -> membership.Member:
    return membership.new_member(DEVICES[index].public, name, 1000.0)


def signed(value: Membership) -> Signed:
    return membership.sign_membership(value, AUTHORITY)


ONE_LIST = signed(membership.add(fresh(), member(0)))

changes = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 3), st.text(max_size=4)),
    st.tuples(st.just("revoke"), st.integers(0, 3), st.just("")),
    st.tuples(st.just("reinstate"), st.integers(0, 3), st.just("")),
    st.tuples(st.just("rename"), st.integers(0, 3), st.text(max_size=4)),
    st.tuples(st.just("set_roles"), st.integers(0, 3), st.sampled_from(["admin", "coordinator"])),
)


def apply(value: Membership, change: tuple[str, int, str]) -> Membership:
    name, index, text = change
    if name == "add":
        return membership.add(value, member(index, text))
    if name == "rename":
        return membership.rename(value, IDS[index], text)
    if name == "set_roles":
        return membership.set_roles(value, IDS[index], (text,))  # type: ignore[arg-type]
    return getattr(membership, name)(value, IDS[index])


@given(st.lists(changes, max_size=12))
def test_every_change_raises_the_epoch_by_one_and_nothing_else_does(changes: list) -> None:
    value = fresh()
    for change in changes:
        before = msgspec.json.encode(value)
        try:
            after = apply(value, change)
        except (NotFound, NotAMember):
            after = value
        assert msgspec.json.encode(value) == before, "a reducer changed its argument"
        assert after.epoch == value.epoch + (after.members != value.members)
        assert all(m.device_id == device for device, m in after.members.items())
        value = after


@given(st.lists(changes, max_size=12))
def test_a_revoked_device_is_out_until_reinstated(changes: list) -> None:
    value = fresh()
    out: set[str] = set()
    for change in changes:
        try:
            value = apply(value, change)
        except (NotFound, NotAMember):
            continue
        if change[0] == "revoke":
            out.add(IDS[change[1]])
        if change[0] == "reinstate":
            out.discard(IDS[change[1]])
        assert {d for d, m in value.members.items() if m.state == "revoked"} == out


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_in_whatever_order_lists_arrive_the_newest_stays(order: list[int], random) -> None:
    history = [fresh()]
    for number, index in enumerate(order):
        history.append(membership.add(history[-1], member(index, f"n{number}")))
    lists = [signed(value) for value in history]
    arriving = [random.choice(range(len(lists))) for _ in range(8)]
    trust = TrustList(AUTHORITY.public)
    highest = -1
    for which in arriving:
        newer = history[which].epoch > highest
        assert trust.update(lists[which]) is newer
        highest = max(highest, history[which].epoch)
        assert trust.epoch == highest


@settings(deadline=None)
@given(st.data())
def test_one_changed_byte_anywhere_is_noticed(data: st.DataObject) -> None:
    good = ONE_LIST
    part = data.draw(st.sampled_from(["payload", "signature"]))
    raw = bytearray(getattr(good, part))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadSignature):
        membership.verify_membership(
            msgspec.structs.replace(good, **{part: bytes(raw)}), AUTHORITY.public
        )


def test_what_was_signed_is_read_back() -> None:
    value = membership.set_roles(
        membership.add(fresh(), member(0, " Anna\n PC ")), IDS[0], ("admin", "coordinator")
    )
    back = membership.verify_membership(signed(value), AUTHORITY.public)
    assert back == value
    assert back.members[IDS[0]].name == "Anna PC"
    assert back.members[IDS[0]].role == "coordinator"
    assert membership.canonical(back) == membership.canonical(value)


def test_a_list_of_another_fleet_is_refused() -> None:
    theirs = membership.sign_membership(membership.new(OTHER.fleet_id, "x"), OTHER)
    with pytest.raises(WrongFleet):
        membership.verify_membership(theirs, AUTHORITY.public)
    misnamed = membership.sign_membership(membership.new(OTHER.fleet_id, "x"), AUTHORITY)
    with pytest.raises(WrongFleet):
        membership.verify_membership(misnamed, AUTHORITY.public)


def test_another_document_signed_by_the_authority_is_no_membership_list() -> None:
    payload = b'{"kind":"something else","fleet_id":"x","fleet_name":"","epoch":9,"members":{}}'
    document = Signed(payload, AUTHORITY.sign(payload), AUTHORITY.spki)
    with pytest.raises(Malformed):
        membership.verify_membership(document, AUTHORITY.public)


def test_a_list_that_gives_a_device_anothers_key_is_refused() -> None:
    crossed = msgspec.structs.replace(fresh(), members={IDS[0]: member(1)})
    with pytest.raises(Malformed, match=IDS[0]):
        membership.verify_membership(signed(crossed), AUTHORITY.public)


@pytest.mark.parametrize("spki", ["", "zz" * 32, "ab"])
def test_a_list_with_a_key_that_has_no_such_name_is_malformed(spki: str) -> None:
    wrong = msgspec.structs.replace(member(0), spki=spki)
    with pytest.raises(Malformed, match=IDS[0]):
        membership.verify_membership(
            signed(msgspec.structs.replace(fresh(), members={IDS[0]: wrong})), AUTHORITY.public
        )


def test_a_signed_nest_of_brackets_is_malformed() -> None:
    payload = b'{"kind":"fleetapp.membership.1","x":' + b"[" * 100_000
    with pytest.raises(Malformed):
        membership.verify_membership(
            Signed(payload, AUTHORITY.sign(payload), AUTHORITY.spki), AUTHORITY.public
        )


def test_a_quick_leave_and_rejoin_is_one_member_with_its_old_date() -> None:
    """Trap T17."""
    value = membership.add(fresh(), member(0))
    again = membership.add(value, membership.new_member(DEVICES[0].public, "new", 2000.0))
    assert list(again.members) == [IDS[0]]
    assert again.members[IDS[0]].joined == 1000.0
    assert again.members[IDS[0]].name == "new"


def test_a_revoked_device_does_not_come_back_with_another_code() -> None:
    value = membership.revoke(membership.add(fresh(), member(0)), IDS[0])
    with pytest.raises(NotAMember, match="removed"):
        membership.add(value, member(0))


def test_trust_follows_the_list() -> None:
    value = membership.add(membership.add(fresh(), member(0)), member(1))
    value = membership.set_roles(value, IDS[0], ("coordinator",))
    trust = TrustList(AUTHORITY.public, signed(value))
    assert trust.fleet_id == AUTHORITY.fleet_id
    assert trust.require(DEVICES[0].spki, "coordinator").device_id == IDS[0]
    assert [m.device_id for m in trust.coordinators()] == [IDS[0]]
    with pytest.raises(NotAMember, match="coordinator"):
        trust.require(DEVICES[1].spki, "coordinator", "admin")
    with pytest.raises(NotAMember, match="not in"):
        trust.require(DEVICES[2].spki)
    for nothing in (None, ""):
        with pytest.raises(NotAMember, match="no certificate"):
            trust.require(nothing)


def test_revoking_reaches_those_who_listen_and_shuts_out_at_once() -> None:
    value = membership.add(fresh(), member(0))
    trust = TrustList(AUTHORITY.public, signed(value))
    heard: list[int] = []
    stop = trust.subscribe(lambda new: heard.append(new.epoch))
    value = membership.revoke(value, IDS[0])
    trust.update(signed(value))
    assert heard == [value.epoch]
    assert not trust.allows(DEVICES[0].spki)
    with pytest.raises(NotAMember, match="removed"):
        trust.require(DEVICES[0].spki)
    stop()
    trust.update(signed(membership.reinstate(value, IDS[0])))
    assert heard == [value.epoch]
    assert trust.allows(DEVICES[0].spki)


def test_two_lists_of_one_epoch_point_to_a_copied_hub() -> None:
    trust = TrustList(AUTHORITY.public, signed(membership.add(fresh(), member(0))))
    with pytest.raises(BadSignature, match="two different"):
        trust.update(signed(membership.add(fresh(), member(1))))
    assert trust.allows(DEVICES[0].spki)
    assert not trust.update(signed(membership.add(fresh(), member(0))))


def test_a_forged_list_leaves_the_present_one_in_force() -> None:
    trust = TrustList(AUTHORITY.public, signed(membership.add(fresh(), member(0))))
    forged = membership.add(membership.add(fresh(), member(0)), member(1))
    payload = membership.canonical(forged)
    with pytest.raises(BadSignature):
        trust.update(Signed(payload, OTHER.sign(payload), AUTHORITY.spki))
    assert not trust.allows(DEVICES[1].spki)


def test_a_document_is_believed_if_a_member_with_the_role_signed_it() -> None:
    value = membership.add(membership.add(fresh(), member(0)), member(1))
    trust = TrustList(
        AUTHORITY.public, signed(membership.set_roles(value, IDS[0], ("coordinator",)))
    )

    def by(device: Signer, payload: bytes = b"manifest") -> Signed:
        return Signed(b"manifest", device.sign(payload), device.spki)

    assert trust.verify(by(DEVICES[0]), "coordinator").device_id == IDS[0]
    with pytest.raises(NotAMember):
        trust.verify(by(DEVICES[1]), "coordinator")
    with pytest.raises(NotAMember):
        trust.verify(by(DEVICES[2]))
    with pytest.raises(BadSignature):
        trust.verify(by(DEVICES[0], b"another"))


def test_a_key_of_another_kind_is_no_member() -> None:
    with pytest.raises(Malformed):
        membership.new_member(b"garbage", "x", 0.0)


def test_the_name_rules() -> None:
    assert membership.clean_name("a\u202eb\tc  d") == "a b c d"
    assert len(membership.clean_name("測" * 500)) == 64
    assert membership.clean_name("\n") == ""


@given(st.lists(changes, max_size=5), st.lists(changes, max_size=5), st.booleans())
def test_a_difference_leads_to_exactly_the_list_that_was_signed(
    before: list[tuple[str, int, str]], after: list[tuple[str, int, str]], gone: bool
) -> None:
    old = membership.add(fresh(), member(0))
    for change in before:
        with contextlib.suppress(NotFound, NotAMember):
            old = apply(old, change)
    new = old
    for change in after:
        with contextlib.suppress(NotFound, NotAMember):
            new = apply(new, change)
    if gone:
        new = membership.remove(new, IDS[0])
    trust = TrustList(AUTHORITY.public, signed(old))
    whole = trust.advanced(membership.difference(old, new, signed(new)))
    assert whole.payload == membership.canonical(new)
    trust.update(whole)
    assert trust.membership == new


def test_a_difference_from_another_list_is_refused() -> None:
    old = membership.add(fresh(), member(0))
    new = membership.rename(old, IDS[0], "desk")
    newest = membership.rename(new, IDS[0], "window")
    trust = TrustList(AUTHORITY.public, signed(old))
    with pytest.raises(Malformed, match="starts at epoch 2"):
        trust.advanced(membership.difference(new, newest, signed(newest)))
    with pytest.raises(Malformed):
        TrustList(AUTHORITY.public).advanced(membership.difference(new, newest, signed(newest)))


def test_a_difference_that_somebody_else_made_changes_nothing() -> None:
    old = membership.add(fresh(), member(0))
    new = membership.revoke(old, IDS[0])
    forged = membership.difference(old, membership.rename(old, IDS[0], "x"), signed(new))
    trust = TrustList(AUTHORITY.public, signed(old))
    with pytest.raises(BadSignature):
        trust.update(trust.advanced(forged))
    assert trust.membership == old
    unreadable = msgspec.structs.replace(forged, change=b"[")
    with pytest.raises(Malformed):
        trust.advanced(unreadable)
