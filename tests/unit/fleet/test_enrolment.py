from pathlib import Path

import pytest

from fleetapp.errors import BadRequest, BadSignature, Malformed, StorageError, WrongFleet
from fleetapp.fleet import membership
from fleetapp.fleet.control import Signed
from fleetapp.fleet.enrolment import FleetInfo, FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.platform.fake import FakePlatform
from fleetapp.platform.paths import Paths
from tests.support.fleet import TestFleet


@pytest.fixture
def fleet(tmp_path: Path) -> TestFleet:
    return TestFleet(tmp_path / "José 測試 dir")


def test_a_member_finds_everything_again_after_a_restart(fleet: TestFleet) -> None:
    member = fleet.enrol("anna")
    paths = Paths(fleet.root / "anna")
    again = FleetStore(paths, Identity.load_or_create(paths), FakePlatform()).load()
    assert again is not None
    assert again.info == member.enrolment.info
    assert again.membership == fleet.membership
    assert again.trust().allows(member.identity.spki)
    assert again.authority_public == fleet.authority.public_key
    assert again.credentials.leaf_path.exists()


def test_a_pc_without_a_fleet_has_no_enrolment(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    store = FleetStore(paths, Identity.load_or_create(paths), FakePlatform())
    assert store.load() is None
    store.remove()


def test_a_second_fleet_needs_leaving_the_first(fleet: TestFleet, tmp_path: Path) -> None:
    member = fleet.enrol("anna")
    other = TestFleet(tmp_path / "other")
    with pytest.raises(BadRequest, match="already"):
        member.store.save(
            FleetInfo(other.authority.fleet_id, "o", member.identity.device_id),
            other.authority.issue(member.identity.csr()),
            other.authority.certificate_pem,
            membership.sign_membership(other.membership, other.authority),
        )


def test_leaving_removes_everything_but_the_device_key(fleet: TestFleet) -> None:
    member = fleet.enrol("anna")
    paths = Paths(fleet.root / "anna")
    member.store.remove()
    assert member.store.load() is None
    assert sorted(p.name for p in paths.identity.iterdir()) == ["device.crt", "device.key"]


def test_material_that_does_not_belong_together_is_not_kept(
    fleet: TestFleet, tmp_path: Path
) -> None:
    other = TestFleet(tmp_path / "other")
    paths = Paths(tmp_path / "bert")
    identity = Identity.load_or_create(paths, FakePlatform())
    stranger = Identity.load_or_create(Paths(tmp_path / "carl"), FakePlatform())
    store = FleetStore(paths, identity, FakePlatform())
    info = FleetInfo(fleet.authority.fleet_id, "f", identity.device_id)
    leaf, root = fleet.authority.issue(identity.csr()), fleet.authority.certificate_pem
    signed = membership.sign_membership(fleet.membership, fleet.authority)
    theirs = membership.sign_membership(other.membership, other.authority)
    forged = Signed(signed.payload, other.authority.sign(signed.payload), signed.signer)
    cases = [
        (info, other.authority.issue(identity.csr()), root, signed, WrongFleet),
        (info, fleet.authority.issue(stranger.csr()), root, signed, Malformed),
        (info, leaf, root, theirs, WrongFleet),
        (info, leaf, root, forged, BadSignature),
        (
            FleetInfo(other.authority.fleet_id, "f", identity.device_id),
            leaf,
            root,
            signed,
            Malformed,
        ),
        (info, leaf, b"garbage", signed, Malformed),
    ]
    for *material, error in cases:
        with pytest.raises(error):
            store.save(*material)
        assert store.load() is None


@pytest.mark.parametrize("damage", ["leaf.crt", "authority.crt", "fleet.json", "membership.json"])
def test_damage_is_named_and_kept(fleet: TestFleet, damage: str) -> None:
    member = fleet.enrol("anna")
    file = Paths(fleet.root / "anna").fleet / damage
    file.write_bytes(b"{}")
    with pytest.raises(StorageError, match="damaged"):
        member.store.load()
    assert file.read_bytes() == b"{}"
    member.store.remove()


def test_a_crash_while_joining_leaves_no_half_membership(fleet: TestFleet, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "anna")
    identity = Identity.load_or_create(paths, FakePlatform())
    half = paths.identity / "fleet.new"
    half.mkdir()
    (half / "leaf.crt").write_text("half")
    store = FleetStore(paths, identity, FakePlatform())
    assert store.load() is None
    store.save(
        FleetInfo(fleet.authority.fleet_id, "f", identity.device_id),
        fleet.authority.issue(identity.csr()),
        fleet.authority.certificate_pem,
        membership.sign_membership(fleet.membership, fleet.authority),
    )
    assert not half.exists()


def test_newer_membership_leaf_and_hub_address_are_kept(fleet: TestFleet) -> None:
    member = fleet.enrol("anna")
    newer = membership.rename(fleet.membership, member.identity.device_id, "Anna")
    member.store.save_membership(membership.sign_membership(newer, fleet.authority))
    member.store.save_leaf(fleet.authority.issue(member.identity.csr()))
    info = FleetInfo(
        fleet.authority.fleet_id, "new name", member.identity.device_id, ("10.0.0.1:8485",)
    )
    member.store.save_info(info)
    loaded = member.store.load()
    assert loaded is not None
    assert (loaded.membership, loaded.info) == (newer, info)
    assert loaded.leaf != member.enrolment.leaf


def test_a_renewed_leaf_of_another_fleet_is_not_kept(fleet: TestFleet, tmp_path: Path) -> None:
    member = fleet.enrol("anna")
    with pytest.raises(WrongFleet):
        member.store.save_leaf(TestFleet(tmp_path / "o").authority.issue(member.identity.csr()))
    assert member.store.load() is not None
