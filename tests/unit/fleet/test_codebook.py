import threading
from pathlib import Path

import pytest

from fleetapp.errors import (
    BadJoinCode,
    BadRequest,
    ExpiredJoinCode,
    NotFound,
    RevokedJoinCode,
    StorageError,
    TooManyAttempts,
    UsedUpJoinCode,
)
from fleetapp.fleet.codebook import WRONG_ALLOWED, WRONG_WINDOW, CodeBook
from fleetapp.fleet.joincode import decode
from fleetapp.platform.fake import FakePlatform
from fleetapp.types import DeviceId

SPKI = "cd" * 32
ANNA, BERT, CARL = DeviceId("anna"), DeviceId("bert"), DeviceId("carl")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> CodeBook:
    return reopen(tmp_path, clock)


def reopen(tmp_path: Path, clock: Clock) -> CodeBook:
    file = tmp_path / "hub" / "codes.json"
    return CodeBook(file, SPKI, FakePlatform(), clock=clock, monotonic=clock)


def secret(code: str) -> bytes:
    return decode(code).secret


def test_a_code_works_as_often_as_it_may(book: CodeBook) -> None:
    code = secret(book.create(uses=2).code)
    book.redeem(code, ANNA)
    book.redeem(code, BERT)
    with pytest.raises(UsedUpJoinCode):
        book.redeem(code, CARL)


def test_a_device_whose_answer_got_lost_may_ask_again_without_a_second_use(book: CodeBook) -> None:
    view = book.create(uses=1, approve=True)
    first = book.redeem(secret(view.code), ANNA)
    assert book.redeem(secret(view.code), ANNA) == first
    assert (first.code_id, first.approve) == (view.code_id, True)
    with pytest.raises(UsedUpJoinCode):
        book.redeem(secret(view.code), BERT)


def test_a_code_expires_by_the_wall_clock(book: CodeBook, clock: Clock) -> None:
    code = secret(book.create(hours=1).code)
    clock.now += 3600
    with pytest.raises(ExpiredJoinCode):
        book.redeem(code, ANNA)


def test_a_revoked_code_ends_at_once(book: CodeBook) -> None:
    view = book.create()
    assert book.revoke(view.code_id).revoked
    with pytest.raises(RevokedJoinCode):
        book.redeem(secret(view.code), ANNA)
    with pytest.raises(NotFound):
        book.revoke("none")


def test_an_unknown_secret_is_refused(book: CodeBook) -> None:
    book.create()
    with pytest.raises(BadJoinCode, match="does not know"):
        book.redeem(b"0123456789", ANNA)


def test_uses_survive_a_restart_and_the_file_holds_no_secret(
    book: CodeBook, tmp_path: Path, clock: Clock
) -> None:
    view = book.create(uses=1)
    book.redeem(secret(view.code), ANNA)
    stored = (tmp_path / "hub" / "codes.json").read_text()
    assert secret(view.code).hex() not in stored
    assert view.code not in stored
    again = reopen(tmp_path, clock)
    with pytest.raises(UsedUpJoinCode):
        again.redeem(secret(view.code), BERT)
    (shown,) = again.views()
    assert (shown.uses_left, shown.code) == (0, "")


def test_the_last_use_goes_to_one_of_many_at_once(book: CodeBook) -> None:
    code = secret(book.create(uses=3).code)
    start = threading.Barrier(16)
    won: list[int] = []

    def join(number: int) -> None:
        start.wait(30)
        try:
            book.redeem(code, DeviceId(f"device-{number}"))
        except UsedUpJoinCode:
            return
        won.append(number)

    threads = [threading.Thread(target=join, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 3


def test_a_use_that_could_not_be_written_down_is_not_granted(
    book: CodeBook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = book.create(uses=1)
    (tmp_path / "hub" / "codes.json").unlink()
    (tmp_path / "hub" / "codes.json").mkdir()
    with pytest.raises(StorageError):
        book.redeem(secret(view.code), ANNA)
    assert book.views()[0].uses_left == 1


def test_guessing_is_slowed_down_per_address_and_forgiven_later(
    book: CodeBook, clock: Clock
) -> None:
    good = secret(book.create(uses=9).code)
    for _ in range(WRONG_ALLOWED):
        with pytest.raises(BadJoinCode):
            book.redeem(b"0123456789", ANNA, "10.0.0.1")
    with pytest.raises(TooManyAttempts):
        book.redeem(good, ANNA, "10.0.0.1")
    book.redeem(good, BERT, "10.0.0.2")
    clock.now += WRONG_WINDOW
    book.redeem(good, ANNA, "10.0.0.1")


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf")])
def test_hours_that_make_no_sense_are_refused(book: CodeBook, hours: float) -> None:
    with pytest.raises(BadRequest):
        book.create(hours=hours)


@pytest.mark.parametrize("uses", [0, -1, 10**9])
def test_uses_that_make_no_sense_are_refused(book: CodeBook, uses: int) -> None:
    with pytest.raises(BadRequest):
        book.create(uses=uses)


def test_a_damaged_list_is_named_and_kept(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "hub" / "codes.json"
    file.parent.mkdir()
    file.write_text("{")
    with pytest.raises(StorageError, match=r"codes\.json"):
        reopen(tmp_path, clock)
    assert file.read_text() == "{"
