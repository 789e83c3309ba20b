"""A real agent and its hub: what its user says is what the fleet sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetapp.errors import BadRequest
from tests.support.agents import AgentProcess


def seen(agent: AgentProcess) -> tuple[bool, str]:
    """How the hub sees this only member."""
    (node,) = agent.get("fleet")["nodes"]
    return node["contribute"], node["reason"]


def test_a_pause_reaches_the_hub_survives_a_restart_and_ends(tmp_path: Path) -> None:
    def asked(agent: AgentProcess, path: str, **body: Any) -> dict[str, Any]:
        found: dict[str, Any] = agent.post(path, **body)["contribution"]
        return found

    with AgentProcess(tmp_path / "pc") as agent:
        agent.create()
        assert agent.get("status")["contribution"]["reason"] == "not_consented"
        assert asked(agent, "contribute", on=True)["reason"] == "contributing"
        agent.until(lambda a: seen(a) == (True, "contributing"))
        paused = asked(agent, "pause", length="1h")
        assert paused["sentence"].startswith("Paused until ")
        agent.until(lambda a: seen(a) == (False, "paused"), deadline=2.0)
        agent.stop()
        agent.start()
        assert agent.get("status")["contribution"] == paused
        assert agent.get("status")["reason"] in (paused["sentence"], "Looking for the coordinator.")
        agent.until(lambda a: seen(a) == (False, "paused"))
        assert asked(agent, "resume")["on"] is True
        agent.until(lambda a: seen(a) == (True, "contributing"), deadline=2.0)
        # A PC that holds nothing has nothing to finish.
        assert asked(agent, "pause", length="forever", finish_first=True)["reason"] == "paused"
        assert asked(agent, "lend", device="CPU", on=False)["reason"] == "no_device"
        with pytest.raises(BadRequest, match="'TPU'"):
            agent.post("lend", device="TPU", on=True)
