"""Whatever bytes come from outside, the answer is one of our own errors, soon.

Seconds in `make test`, minutes in `make test-slow`. A finding prints its input, which then becomes
a test of its own where that code is tested.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from fleetapp.fleet import recovery
from tests.support.fuzz import Failed, Outcome, fuzz
from tests.support.fuzz_targets import TARGETS
from tests.support.hubs import TestHub


def run(name: str, folder: Path, seconds: float, seed: int) -> Outcome:
    home = TestHub(folder)

    async def go() -> Outcome:
        target = TARGETS[name](home)
        return fuzz(target.run, target.seeds, target.allowed, seconds, target.words, seed)

    with asyncio.Runner() as runner:
        return runner.run(go())


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretching a passphrase is slow on purpose, and the file system is not what is tried."""
    monkeypatch.setattr(recovery, "_SCRYPT_N", 2)
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_of_strangers(name: str, tmp_path: Path) -> None:
    outcome = run(name, tmp_path, 0.25, 0)
    assert outcome.accepted, "the seeds are good"
    assert outcome.edges > 20, "and lead somewhere"


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_more_bytes_of_strangers(name: str, tmp_path: Path) -> None:
    run(name, tmp_path, 15.0, random.randrange(1 << 30))


# ------------------------------------------------------------------ the fuzzer itself


def test_it_finds_its_way_to_a_mistake_behind_several_doors(tmp_path: Path) -> None:
    """Blind bytes would need some 2**24 attempts for these three."""
    program = tmp_path / "fleetapp_victim.py"
    program.write_text(
        "def victim(data):\n"
        + "".join(
            f"    if data[{i}:{i + 1}] != {c!r}:\n        return\n"
            for i, c in enumerate((b"F", b"L", b"\x07"))
        )
        + "    data[99]\n"
    )
    names: dict[str, object] = {}
    exec(compile(program.read_text(), str(program), "exec"), names)
    with pytest.raises(Failed, match=r"IndexError.*FL"):
        fuzz(names["victim"], (b"....",), (), 30.0)


def test_what_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.fuzz.SLOW", -1.0)
    with pytest.raises(Failed, match="s for the input"):
        fuzz(lambda _: None, (b"x",), (), 0.0)
