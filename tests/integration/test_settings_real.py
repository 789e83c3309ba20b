"""A real agent: a change acts at once, or says that it waits; autostart and the support bundle."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetapp.errors import BadSetting
from tests.support.agents import AgentProcess


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentProcess]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with AgentProcess(tmp_path / "José 測試", "desk") as running:
        yield running


def setting(agent: AgentProcess, name: str) -> dict[str, Any]:
    return next(s for s in agent.get("settings")["settings"] if s["name"] == name)


def reason(agent: AgentProcess) -> str:
    return str(agent.get("status")["contribution"]["reason"])


def test_a_changed_setting_acts_within_a_moment_and_survives_a_restart(
    agent: AgentProcess,
) -> None:
    assert reason(agent) == "not_consented"
    agent.post("settings", name="contribute", value=True)
    agent.until(lambda a: reason(a) == "contributing")
    # a day that is neither today nor yesterday, whose night may still run
    far = dt.datetime.now().astimezone() + dt.timedelta(days=3)
    agent.post("settings", name="schedule_days", value=f"{far:%a}".lower())
    assert reason(agent) == "outside_schedule", "the answer comes after the deed"
    agent.post("settings/reset", name="schedule_days")
    assert reason(agent) == "contributing"
    agent.post("settings", name="contribute_cpu", value=False)
    assert reason(agent) == "no_device"
    agent.stop()
    with agent:
        assert setting(agent, "contribute_cpu")["source"] == "user"
        assert reason(agent) == "no_device"


def test_what_cannot_act_at_once_waits_and_is_taken_over(agent: AgentProcess) -> None:
    answer = agent.post("settings", name="share_port", value=0)
    assert not answer["pending"], "it belongs to no fleet: nothing has been read yet"
    agent.create()
    answer = agent.post("settings", name="models_dir", value=str(agent.home / "elsewhere"))
    assert answer["pending"]
    assert setting(agent, "models_dir")["pending"]
    agent.stop()
    with agent:
        agent.until(lambda a: bool(a.get("status")["fleet_id"]))
        assert not setting(agent, "models_dir")["pending"]


def test_nonsense_is_refused_and_the_environment_goes_first(agent: AgentProcess) -> None:
    with pytest.raises(BadSetting, match="whole number"):
        agent.post("settings", name="cpu_limit", value=1000)
    with pytest.raises(BadSetting, match="comes from the environment"):
        agent.post("settings", name="node_name", value="other")
    assert setting(agent, "node_name")["source"] == "environment"


def test_autostart_is_a_desktop_entry(agent: AgentProcess, tmp_path: Path) -> None:
    entry = tmp_path / "config" / "autostart" / "fleetapp.desktop"
    assert not agent.get("autostart")["on"]
    assert agent.post("autostart", on=True) == {"on": True, "where": str(entry), "locked": False}
    assert "fleetapp-tray" in entry.read_text("utf-8")
    entry.write_text(entry.read_text("utf-8") + "Hidden=true\n", "utf-8")
    assert not agent.get("autostart")["on"]
    agent.post("autostart", on=False)
    assert not entry.exists()


def test_the_support_bundle_of_a_coordinator_has_none_of_its_secrets(
    agent: AgentProcess, tmp_path: Path
) -> None:
    code = agent.create("Büro Süd")
    key = agent.post("keys", name="editor")["key"]
    token = (agent.home / "api-token").read_text("ascii")
    answer = agent.post("support-bundle", path=str(tmp_path / "bundle.zip"))
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(answer["files"]) == set(found)
    everything = "\n".join(found.values())
    for secret in (code, key, token, code[6:17]):
        assert secret not in everything
    assert "PRIVATE KEY" not in everything
    assert json.loads(found["membership.json"])["fleet_name"] == "Büro Süd"
    assert json.loads(found["status.json"])["role"] == "coordinator"
    assert {row["key"] for row in json.loads(found["doctor.json"])} >= {"clock", "agent", "disk"}
    assert "agent" in "".join(name for name in found if name.startswith("logs/"))
