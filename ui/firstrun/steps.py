"""One piece of the work at the end of the first run, as people see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from fleetapp.errors import FleetError
from ui.firstrun.choices import Way

StepName = Literal["limits", "create", "join", "model", "start"]
StepState = Literal["waiting", "running", "done", "failed"]

STEPS: dict[Way, tuple[StepName, ...]] = {
    "alone": ("limits", "create", "model", "start"),
    "create": ("limits", "create"),
    "join": ("limits", "join"),
}


@dataclass(frozen=True)
class Step:
    """Where a piece of work stands."""

    name: StepName
    state: StepState = "waiting"
    detail: str = ""
    """Phase, bytes and time left; or what is being waited for."""
    done: int = 0
    total: int = 0
    """0 while nobody knows."""
    error: FleetError | None = None

    @property
    def title(self) -> str:
        """What it does."""
        translate = QCoreApplication.translate
        return {
            "limits": translate("FirstRun", "Keep your limits"),
            "create": translate("FirstRun", "Create the fleet"),
            "join": translate("FirstRun", "Join the fleet"),
            "model": translate("FirstRun", "Get a model"),
            "start": translate("FirstRun", "Start the model"),
        }[self.name]
