"""``fleetapp model remove`` while an agent runs: the agent knows whether the model is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetapp.errors import Busy
from tests.support.cli import Run
from tests.support.fake_agent import FakeAgent


@pytest.mark.usefixtures("running")
def test_the_agent_of_this_library_is_asked(run: Run, agent: FakeAgent, home: Path) -> None:
    agent.models_folder = str(home / "models")
    code, out, _ = run("model", "remove", "tiny")
    assert (code, out) == (0, "tiny is removed.\n")
    assert agent.asked == [("models",), ("remove_model", "tiny")]


@pytest.mark.usefixtures("running")
def test_what_it_refuses_is_refused(run: Run, agent: FakeAgent, home: Path) -> None:
    agent.models_folder = str(home / "models")
    agent.refuse = Busy("'tiny' is being served.", remedy="Stop it first.")
    code, _, err = run("model", "remove", "tiny")
    assert (code, err) == (Busy.exit_code, "Error: 'tiny' is being served.\n  Stop it first.\n")


@pytest.mark.usefixtures("running")
def test_the_agent_of_another_library_has_no_say(run: Run, agent: FakeAgent) -> None:
    code, _, err = run("model", "remove", "tiny")
    assert (code, agent.asked) == (2, [("models",)])
    assert "no model 'tiny' here" in err
