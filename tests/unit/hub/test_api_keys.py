import os
from pathlib import Path

import msgspec
import pytest

from fleetapp.errors import BadRequest, NotFound, StorageError, Unauthorized
from fleetapp.hub.keys import KeyBook
from fleetapp.platform import current


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "api-keys.json"


def book(file: Path) -> KeyBook:
    return KeyBook(file, current(), now=lambda: 1_700_000_000.0)


def test_a_key_is_shown_once_and_survives_a_restart(file: Path) -> None:
    made = book(file).create("editor")
    again = book(file)
    assert again.check(made.key).name == "editor"
    assert [k.key for k in again.list()] == [""]
    assert made.key not in file.read_text()
    if os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_revoked_key_is_refused_and_the_others_are_not(file: Path) -> None:
    keys = book(file)
    one, two = keys.create("one"), keys.create("two")
    keys.revoke(one.id)
    with pytest.raises(Unauthorized):
        keys.check(one.key)
    assert keys.check(two.key).id == two.id
    with pytest.raises(NotFound):
        keys.revoke(one.id)


@pytest.mark.parametrize("presented", ["", "x", "fleet-", "\udcff", "é" * 10_000])
def test_anything_else_is_refused(file: Path, presented: str) -> None:
    keys = book(file)
    with pytest.raises(Unauthorized):
        keys.check(presented)
    keys.create("one")
    with pytest.raises(Unauthorized):
        keys.check(presented)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[2J", "n" * 81])
def test_a_name_must_be_printable(file: Path, name: str) -> None:
    with pytest.raises(BadRequest):
        book(file).create(name)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema": 1}'])
def test_a_damaged_file_is_said_and_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        book(file)
    assert file.read_bytes() == content


def test_it_is_remembered_where_a_key_was_made(file: Path) -> None:
    keys = book(file)
    keys.create("editor", made_by="d1", made_on="DESK-1")
    assert [(k.made_by, k.made_on) for k in book(file).list()] == [("d1", "DESK-1")]


def test_a_file_from_before_that_was_remembered_loads(file: Path) -> None:
    made = book(file).create("editor")
    old = msgspec.json.decode(file.read_bytes())
    for key in old["keys"]:
        del key["made_by"], key["made_on"]
    file.write_bytes(msgspec.json.encode(old))
    (found,) = book(file).list()
    assert (found.id, found.made_by, found.made_on) == (made.id, "", "")
    assert book(file).check(made.key).name == "editor"
