"""What an agent says of its work, in one word and a sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fleetapp.agent.agent import Agent
from fleetapp.types import AssignmentView, LayerRange, Phase


def state(*phases: Phase) -> tuple[str, str]:
    views = [
        AssignmentView("a", "DESK-1", f"model-{n}", 0, 2, LayerRange(0, 12), phase)
        for n, phase in enumerate(phases)
    ]
    agent: Any = SimpleNamespace(
        _guest=SimpleNamespace(decision=SimpleNamespace(contribute=True, draining=False))
    )
    fleet: Any = SimpleNamespace(stages=SimpleNamespace(views=lambda: views))
    return Agent._state_of_work(agent, fleet)


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ((), ("ready", "Connected; waiting for work.")),
        (("ready",), ("ready", "Holds layers 0-11 of model-0 ready for the fleet.")),
        (("ready", "downloading"), ("preparing", "Downloading model-1.")),
        (("linked", "ready"), ("contributing", "Holds layers 0-11 of model-0.")),
    ],
)
def test_a_pc_that_only_holds_copies_is_ready_and_prepares_nothing(
    phases: tuple[Phase, ...], said: tuple[str, str]
) -> None:
    assert state(*phases) == said
