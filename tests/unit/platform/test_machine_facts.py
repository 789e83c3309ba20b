"""What tells two PCs of one disk image apart."""

import os
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.fleet.keys import hardware_id
from fleetapp.platform import current, linux
from fleetapp.platform.smbios import system_uuid

UUID = uuid.UUID("4c4c4544-0042-3510-8054-b6c04f595731")


def structure(kind: int, body: bytes, *strings: bytes) -> bytes:
    text = b"".join(s + b"\0" for s in strings) + b"\0" if strings else b"\0\0"
    return bytes([kind, 4 + len(body)]) + b"\x01\x00" + body + text


def table(raw: bytes = UUID.bytes_le, kind: int = 1) -> bytes:
    return (
        structure(0, bytes(14), b"vendor", b"1.0")
        + structure(kind, b"\x01\x02\x03\x04" + raw + b"\x06", b"maker", b"model")
        + structure(127, b"")
    )


def test_the_uuid_of_the_system_is_found_behind_other_structures() -> None:
    assert system_uuid(table()) == str(UUID)


@pytest.mark.parametrize("raw", [bytes(16), b"\xff" * 16, b"", b"short"])
def test_one_that_is_not_set_is_none(raw: bytes) -> None:
    assert system_uuid(table(raw)) in ("",)


def test_a_table_without_one_has_none() -> None:
    assert system_uuid(table(kind=2)) == ""
    assert system_uuid(b"") == ""


@given(st.binary(max_size=400), st.integers(0, 100))
def test_no_bytes_make_it_fail(noise: bytes, cut: int) -> None:
    for data in (noise, table()[:cut], table()[:cut] + noise):
        assert isinstance(system_uuid(data), str)


def test_only_built_in_cards_with_their_own_address_count(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("a folder of Linux")
    buses = {"pci": tmp_path / "bus" / "pci", "usb": tmp_path / "bus" / "usb"}
    buses["virtio"] = tmp_path / "bus" / "virtio"
    for folder in buses.values():
        folder.mkdir(parents=True)
    for name, bus, kind, address in (
        ("eth0", "pci", "0", "00:00:00:00:00:01"),
        ("wlan0", "pci", "3", "00:00:00:00:00:02"),
        ("dock0", "usb", "0", "00:00:00:00:00:03"),
        ("ens3", "virtio", "0", "00:00:00:00:00:05"),
        ("docker0", "", "0", "00:00:00:00:00:04"),
    ):
        card = tmp_path / "net" / name
        (card / "device").mkdir(parents=True)
        if bus:
            (card / "device" / "subsystem").symlink_to(buses[bus])
        (card / "addr_assign_type").write_text(kind + "\n")
        (card / "address").write_text(address + "\n")
    assert linux._built_in_cards(tmp_path / "net") == {
        "00:00:00:00:00:01",
        "00:00:00:00:00:05",
    }
    assert linux._built_in_cards(tmp_path / "none") == set()


def test_this_machine_answers_the_same_twice_and_a_fleet_learns_only_a_hash() -> None:
    facts = current().machine_facts()
    assert facts == current().machine_facts()
    here, elsewhere = hardware_id(facts or ("x",), "fleet a"), hardware_id(facts or ("x",), "b")
    assert here != elsewhere
    assert len(here) == 32
    assert all(fact not in here for fact in facts)
    assert hardware_id((), "fleet a") == ""
