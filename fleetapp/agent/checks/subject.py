"""What is examined: one PC's state folder, its system, and its agent if one runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fleetapp.engine import probe
from fleetapp.errors import AgentNotRunning
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings
from fleetapp.types import CheckState as State
from fleetapp.types import LocalStatus, SearchView

__all__ = ["AgentSide", "KnownAgent", "NoAgent", "State", "Subject"]


class AgentSide(Protocol):
    """What a running agent knows better than a look from outside. Every answer is bounded."""

    def runs(self) -> bool:
        """Whether there is one, as far as its files say."""
        ...

    def search(self) -> SearchView | None:
        """What its search has found; None if it does not answer."""
        ...

    def status(self) -> LocalStatus:
        """What it says of itself.

        Raises:
            AgentNotRunning: there is none.
            FleetError: it does not answer as it should.
        """
        ...


@dataclass(frozen=True)
class NoAgent:
    """Nobody is asked."""

    why: str = "This PC's agent is not running."

    def runs(self) -> bool:
        return False

    def search(self) -> SearchView | None:
        return None

    def status(self) -> LocalStatus:
        raise AgentNotRunning(self.why)


@dataclass(frozen=True)
class KnownAgent:
    """The agent that examines itself has said all of it before."""

    said: LocalStatus
    found: SearchView

    def runs(self) -> bool:
        return True

    def search(self) -> SearchView | None:
        return self.found

    def status(self) -> LocalStatus:
        return self.said


@dataclass(frozen=True)
class Subject:
    """``settings`` is None if they are broken, which a check of its own says."""

    paths: Paths
    settings: Settings | None
    agent: AgentSide = NoAgent()
    platform: Platform = field(default_factory=current)
    probe: Callable[[], probe.Probe] = field(default_factory=lambda: probe.run)
    """Which devices there are; blocks, and may raise a FleetError."""
