"""A PC that slept, or whose agent was stopped, is a member again by itself."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.agents import AgentProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP"),
    pytest.mark.timeout(300),
]


def stopped(agent: AgentProcess, seconds: float) -> None:
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(agent.pid, signal.SIGCONT)


def test_a_member_that_was_stopped_for_a_minute_comes_back(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "hub", "hub") as hub, AgentProcess(tmp_path / "pc", "pc") as pc:
        pc.post("fleet/join", code=hub.create())
        hub.until_member_is("pc", "online")
        device = pc.get("status")["device_id"]
        os.kill(pc.pid, signal.SIGSTOP)
        try:
            hub.until_member_is("pc", "offline")
            time.sleep(52)
        finally:
            os.kill(pc.pid, signal.SIGCONT)
        started = time.monotonic()
        hub.until_member_is("pc", "online")
        assert time.monotonic() - started < 10
        nodes = [n for n in hub.get("fleet")["nodes"] if n["name"] == "pc"]
        assert [n["device_id"] for n in nodes] == [device]


def test_a_coordinator_that_was_stopped_for_ten_seconds_evicts_nobody(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "hub", "hub") as hub, AgentProcess(tmp_path / "pc", "pc") as pc:
        pc.post("fleet/join", code=hub.create())
        hub.until_member_is("pc", "online")
        stopped(hub, 10)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            assert hub.members()["pc"] in ("online", "suspected")
            time.sleep(0.1)
        assert hub.members()["pc"] == "online"
        log = next((hub.home / "logs").glob("agent*")).read_text("utf-8")
        assert "gone silent" not in log
