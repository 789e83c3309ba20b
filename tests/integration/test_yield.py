"""A user pauses a PC, and resumes, while the fleet computes on it. Real agents and runners."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import openai
import pytest

from tests.support.served import MODEL, Served

pytestmark = [pytest.mark.model, pytest.mark.slow]

RELEASE_AFTER = 3


def until(true: Callable[[], bool], deadline: float, what: str) -> float:
    """Seconds until it was so."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < deadline, what
        time.sleep(0.05)
    return time.monotonic() - begun


def reason(fleet: Served, name: str) -> str:
    """Why that PC contributes or not, as the hub sees it."""
    return str(next(n["reason"] for n in fleet.local("fleet")["nodes"] if n["name"] == name))


def answer(fleet: Served) -> str:
    found = fleet.openai(timeout=60).chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        max_tokens=16,
    )
    return found.choices[0].message.content or ""


def test_a_pc_yields_frees_its_memory_and_comes_back(library: Path) -> None:
    with Served(2, "exact", library, FLEETAPP_RELEASE_AFTER=str(RELEASE_AFTER)) as fleet:
        runner = fleet.runners()["pc-2"]
        before = answer(fleet)
        stream = fleet.openai().completions.create(
            model=MODEL, prompt="Once upon a time", max_tokens=2000, stream=True
        )
        next(iter(stream))
        fleet.local("pause", "pc-2", {"length": "1h"})
        until(lambda: reason(fleet, "pc-2") == "paused", 2.0, "the hub hears of it at once")
        until(lambda: not runner.is_running(), RELEASE_AFTER + 5, "its memory is free")
        stream.close()
        # As soon as the hub has dealt the layers to those who are left, it answers as before.
        begun = time.monotonic()
        while True:
            try:
                assert answer(fleet) == before
                break
            except openai.APIStatusError:
                assert time.monotonic() - begun < 60
        assert "pc-2" not in fleet.runners()
        status = fleet.local("status", "pc-2")
        assert status["reason"] == status["contribution"]["sentence"]
        fleet.local("resume", "pc-2", {})
        fleet.wait_live(2)
        assert answer(fleet) == before
