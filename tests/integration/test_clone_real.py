"""Trap T18: a state folder copied to a second PC means two PCs, and both work at the end."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from fleetapp.fleet.discovery import Discovery
from fleetapp.fleet.identity import Identity
from fleetapp.platform.paths import Paths
from tests.support.agents import AgentProcess


def test_a_copied_state_folder_becomes_a_member_of_its_own(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "hub", "hub") as hub, AgentProcess(tmp_path / "anna", "anna") as a:
        a.post("fleet/join", code=hub.create())
        a.post("contribute", on=True)
        first = a.get("status")["device_id"]
        hub.post("fleet/role", device_id=first, role="admin")
        a.stop()
        for name in ("agent.lock", "agent.json"):
            (a.home / name).unlink(missing_ok=True)
        shutil.copytree(a.home, tmp_path / "copy")
        a.start()
        hub.until_member_is("anna", "online")
        with AgentProcess(tmp_path / "copy", "copied") as copy:
            hub.until_member_is("copied", "online")
            copy.until(lambda c: c.get("status")["state"] == "ready")
            a.until(lambda x: x.get("status")["state"] == "ready")
            second = copy.get("status")
            assert second["device_id"] != first
            assert (second["role"], second["contribute"]) == ("member", True), "settings are kept"
            assert (a.get("status")["device_id"], a.get("status")["role"]) == (first, "admin")
            view = hub.get("fleet")
            assert len(view["nodes"]) == 3
            assert first in view["warnings"][0]
            said = [e["action"] for e in hub.get("fleet/audit?last=9")]
            assert said[-2:] == ["copy_turned_away", "copy_renamed"]
        kept = Identity.load_or_create(Paths(tmp_path / "copy"))
        assert kept.device_id == second["device_id"], "for good"


def announced(device: str) -> bool:
    """Whether somebody who begins to search finds that PC as coordinator."""
    search = Discovery(("127.0.0.1",))
    search.start(20)
    try:
        return asyncio.run(
            search.wait_for(
                lambda peers: any(p.device_id == device and p.role == "coordinator" for p in peers),
                30,
            )
        )
    finally:
        search.stop()


@pytest.mark.slow
def test_a_copy_of_the_coordinator_becomes_a_plain_member(tmp_path: Path) -> None:
    with AgentProcess(tmp_path / "hub", "hub") as hub, AgentProcess(tmp_path / "anna", "anna") as a:
        a.post("fleet/join", code=hub.create())
        hub.stop()
        shutil.copytree(hub.home, tmp_path / "copy")
        hub.start()
        hub.until_member_is("anna", "online")
        assert announced(hub.get("status")["device_id"])
        with AgentProcess(tmp_path / "copy", "copied") as copy:
            hub.until_member_is("copied", "online")
            copy.until(lambda c: c.get("status")["role"] == "member")
            assert hub.get("status")["role"] == "coordinator"
            assert hub.members() == {"hub": "online", "anna": "online", "copied": "online"}
            assert not (copy.home / "hub" / "authority.key").exists()
            a.until(lambda x: x.get("status")["state"] == "ready")
            hub.code()  # and it still may change the fleet
            hub.stop()
            hub.start()
            hub.until_member_is("copied", "online")
            assert hub.get("status")["role"] == "coordinator", "a restart is no copy"
