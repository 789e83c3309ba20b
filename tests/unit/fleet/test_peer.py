import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.fleet.multicast import Situation, diagnose, usable
from fleetapp.fleet.peer import MAX_LABEL, Announcement, Peer, dns_label, parse
from fleetapp.platform.network import Address, nearest_first
from fleetapp.types import PROTOCOL_VERSION, SERVICE_TYPE

DEVICE, FLEET = "a2b3c4d5e6f7a2b3c4d5", "f7e6d5c4b3a2f7e6d5c4"
GOOD = {b"v": b"1", b"fleet": FLEET[:8].encode(), b"role": b"coordinator"}
NAME = f"{DEVICE}.{SERVICE_TYPE}"


@pytest.mark.parametrize("name", ["測" * 27, "a.b", "a\nb", "🖥️", "x" * 300, ""])
def test_any_name_becomes_one_label_cut_by_bytes(name: str) -> None:
    """Trap T19."""
    label = dns_label(name)
    assert 0 < len(label.encode()) <= MAX_LABEL
    assert "." not in label
    assert label.isprintable()


@given(st.text())
def test_no_text_makes_an_invalid_label(text: str) -> None:
    assert 0 < len(dns_label(text).encode()) <= MAX_LABEL


def test_what_is_announced_is_understood_and_names_nobody() -> None:
    said = Announcement(DEVICE, FLEET, "coordinator", 8485, ("10.0.0.1",))
    txt = {k.encode(): v.encode() for k, v in said.properties().items()}
    peer = parse(said.instance, said.port, txt, said.addresses)
    assert peer == Peer(DEVICE, FLEET[:8], "coordinator", PROTOCOL_VERSION, 8485, ("10.0.0.1",))
    assert peer.in_fleet(FLEET)
    assert not peer.in_fleet("x" + FLEET)
    assert set(said.properties()) == {"v", "fleet", "role"}


def test_a_node_without_a_fleet_belongs_to_none() -> None:
    peer = parse(NAME, 0, {**GOOD, b"fleet": b""}, ("10.0.0.1",))
    assert peer is not None
    assert not peer.in_fleet(FLEET)
    assert not peer.in_fleet("")


@pytest.mark.parametrize(
    "change",
    [
        {b"role": b"king"},
        {b"role": None},
        {b"v": b"-1"},
        {b"v": b"999999"},
        {b"v": "²".encode()},
        {b"fleet": b"short"},
        {b"fleet": b"\xff" * 8},
    ],
)
def test_records_that_make_no_sense_are_dropped(change: dict) -> None:
    assert parse(NAME, 1, {**GOOD, **change}, ("10.0.0.1",)) is None


def test_a_record_without_address_or_with_an_odd_name_is_dropped() -> None:
    assert parse(NAME, 1, GOOD, ()) is None
    assert parse(f"x.{SERVICE_TYPE}", 1, GOOD, ("10.0.0.1",)) is None


@given(st.text(), st.integers(), st.dictionaries(st.binary(), st.none() | st.binary()), st.text())
def test_nothing_that_somebody_sends_raises(name, port, properties, address) -> None:
    parse(f"{name}.{SERVICE_TYPE}", port, properties, (address,))
    parse(NAME, port, {**GOOD, **properties}, (address,))


def test_near_addresses_are_tried_first() -> None:
    own = (
        Address("wlan0", "192.168.1.5", "ordinary", 24),
        Address("tun0", "10.8.0.2", "tunnel", 24),
    )
    others = ["127.0.0.1", "169.254.1.1", "172.17.0.1", "10.8.0.9", "fd00::1", "192.168.1.9"]
    assert nearest_first(others, own) == (
        "192.168.1.9",
        "10.8.0.9",
        "172.17.0.1",
        "fd00::1",
        "169.254.1.1",
        "127.0.0.1",
    )


def test_an_address_that_both_have_is_tried_last() -> None:
    own = (
        Address("eth0", "192.168.1.5", "ordinary", 24),
        Address("docker0", "172.17.0.1", "bridge", 16),
    )
    others = ["172.17.0.1", "127.0.0.1", "10.0.0.3", "192.168.1.9"]
    assert nearest_first(others, own) == ("192.168.1.9", "10.0.0.3", "127.0.0.1", "172.17.0.1")
    here = ["172.17.0.1", "192.168.1.5"]
    assert nearest_first(here, own) == tuple(here), "two agents of one PC have only these"


def test_addresses_that_do_not_work_are_skipped_with_a_reason() -> None:
    good, bad = usable(["127.0.0.1", "203.0.113.7", "nonsense", "::1", "127.0.0.1"])
    assert good == ("127.0.0.1",)
    assert set(bad) == {"203.0.113.7", "nonsense"}
    assert all(bad.values())


def situation(**changes: object) -> Situation:
    usual: dict = {
        "started": True,
        "failure": "",
        "interfaces": ("10.0.0.1",),
        "kinds": frozenset({"ordinary"}),
        "peers": 2,
        "searching": 60.0,
        "announced": True,
        "heard_itself": True,
    }
    return Situation(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"started": False}, "not running"),
        ({"failure": "port taken"}, "port taken"),
        ({"interfaces": (), "kinds": frozenset()}, "no network"),
        ({"kinds": frozenset({"tunnel"})}, "VPN only"),
        ({"kinds": frozenset({"link_local"})}, "self-assigned"),
        ({"kinds": frozenset({"bridge", "tunnel"})}, "virtual"),
        ({"heard_itself": False}, "firewall"),
        ({"peers": 0}, "multicast"),
        ({"skipped": {"10.0.0.2": "No such device"}}, "10.0.0.2"),
    ],
)
def test_why_nothing_is_found_is_said_with_the_manual_way(changes: dict, said: str) -> None:
    sentences = diagnose(situation(**changes))
    assert said in sentences[0]
    assert "by hand" in sentences[-1]
    assert all(s.endswith(".") for s in sentences)


def test_if_all_is_well_nothing_is_said() -> None:
    assert diagnose(situation()) == ()
    assert diagnose(situation(peers=0, searching=0.5)) == ()
