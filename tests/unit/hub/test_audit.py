"""What was written down stays, and whoever changes it afterwards is noticed."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetapp.errors import StorageError
from fleetapp.hub.audit import AuditLog


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk does is not what is tried here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def filled(path: Path, count: int = 5, **more: int) -> AuditLog:
    log = AuditLog(path, **more)
    for number in range(count):
        log.write("local", "revoked", device=f"pc{number}", name="José 測試")
    return log


def test_entries_are_read_back_newest_last(path: Path) -> None:
    log = filled(path)
    found = log.last(2)
    assert [(e.seq, e.actor, e.action) for e in found] == [
        (4, "local", "revoked"),
        (5, "local", "revoked"),
    ]
    assert found[-1].details == {"device": "pc4", "name": "José 測試"}
    assert len(log.last(100)) == 5
    assert log.last(0) == ()
    assert AuditLog(path.with_name("none.jsonl")).last(3) == ()


def test_an_untouched_log_is_sound_also_across_restarts(path: Path) -> None:
    filled(path)
    check = filled(path).verify()
    assert (check.entries, check.first, check.last, check.problems) == (10, 1, 10, ())
    assert AuditLog(path).verify() == check


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=st.integers(0, 3), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_any_changed_byte_before_the_last_line_is_noticed(
    path: Path, line: int, at: int, byte: int
) -> None:
    path.unlink(missing_ok=True)
    log = filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    changed = bytearray(lines[line])
    at %= len(changed)
    if changed[at] == byte:
        byte ^= 1
    changed[at] = byte
    path.write_bytes(b"".join([*lines[:line], bytes(changed), *lines[line + 1 :]]))
    assert log.verify().problems


@pytest.mark.parametrize("line", range(4))
def test_a_line_taken_out_put_in_or_moved_is_noticed(path: Path, line: int) -> None:
    log = filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    without = [*lines[:line], *lines[line + 1 :]]
    doubled = [*lines[: line + 1], *lines[line:]]
    moved = [*without[: line + 1], lines[line], *without[line + 1 :]]
    for tampered in (doubled, moved, *([without] if line else [])):
        path.write_bytes(b"".join(tampered))
        assert any("does not follow" in p for p in log.verify().problems)


def test_what_a_chain_cannot_show_a_hash_noted_elsewhere_does(path: Path) -> None:
    log = filled(path)
    head = log.verify().head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    cut = AuditLog(path)
    assert cut.verify().problems == ()
    assert any("missing" in p for p in cut.verify(head).problems)
    path.write_bytes(b"".join(lines))
    log = AuditLog(path)
    log.write("local", "approved")
    assert log.verify(head).problems == ()


def test_parts_are_set_aside_and_the_chain_goes_on(path: Path) -> None:
    log = filled(path, 40, part_bytes=1000)
    parts = sorted(path.parent.iterdir())
    assert len(parts) > 3
    assert all(p.stat().st_size < 1400 for p in parts)
    assert [e.seq for e in log.last(33)] == list(range(8, 41))
    assert AuditLog(path, part_bytes=1000).verify().problems == ()
    parts[0].unlink()
    check = log.verify()
    assert (check.problems, check.first > 1, check.last) == ((), True, 40)
    parts[2].unlink()
    assert log.verify().problems, "a part taken out of the middle"


def test_a_line_that_a_crash_has_cut_off_spoils_only_itself(path: Path) -> None:
    filled(path)
    with path.open("ab") as out:
        out.write(b'{"seq": 6, "ti')
    log = filled(path, 2)
    assert [e.seq for e in log.last(3)] == [5, 6, 7]
    (problem,) = log.verify().problems
    assert "Line 6" in problem
    assert "half written" in problem


def test_many_threads_make_one_chain(path: Path) -> None:
    log = AuditLog(path)
    threads = [threading.Thread(target=_burst, args=(log,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    check = log.verify()
    assert (check.entries, check.problems) == (40, ())


def _burst(log: AuditLog) -> None:
    for _ in range(10):
        log.write("local", "joined")


def test_text_that_is_no_text_is_written_all_the_same(path: Path) -> None:
    log = AuditLog(path)
    log.write("local", "approved", name="a\nb\ud800\x85 ")
    assert log.verify().problems == ()
    assert len(path.read_bytes().split(b"\n")) == 2
    assert json.loads(path.read_bytes())["actor"] == "local"


def test_only_its_owner_reads_it(path: Path) -> None:
    if os.name == "nt":
        pytest.skip("Windows has access lists instead of these bits")
    filled(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_cannot_be_written_down_is_said(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match="audit"):
        AuditLog(path).write("local", "approved")
