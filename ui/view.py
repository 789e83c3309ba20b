"""What the desktop app knows at one moment, as one frozen value, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fleetapp.errors import FleetError
from fleetapp.types import AssignmentView, ContributionView, LocalStatus, Phase

Link = Literal["starting", "connected", "stopped", "refused"]
"""To the agent: being started, answering, not running, or there but of no use."""

IconName = Literal[
    "not_joined",
    "connecting",
    "ready",
    "contributing",
    "preparing",
    "paused",
    "attention",
    "off",
    "stopped",
]

UNDER_WAY = frozenset({"downloading", "verifying", "compiling", "loading"})
"""Phases of an assignment that end by themselves."""


@dataclass(frozen=True)
class AgentView:
    """The last status and whether it still holds."""

    link: Link = "starting"
    status: LocalStatus | None = None
    """None unless the link is connected."""
    problem: FleetError | None = None
    """Why the link is stopped or refused."""

    @property
    def joined(self) -> bool:
        return self.status is not None and bool(self.status.fleet_id)

    @property
    def admin(self) -> bool:
        """Whether the user of this PC runs the fleet, or helps to."""
        return self.joined and self.status is not None and self.status.role != "member"

    @property
    def contribution(self) -> ContributionView:
        return self.status.contribution if self.status is not None else ContributionView()

    @property
    def coordinates(self) -> bool:
        return self.joined and self.status is not None and self.status.role == "coordinator"

    @property
    def removed(self) -> bool:
        """Whether its fleet has put this PC out, or shut it out."""
        return self.status is not None and self.status.removed

    @property
    def icon(self) -> IconName:
        match self.link:
            case "starting":
                return "connecting"
            case "stopped":
                return "stopped"
            case "refused":
                return "attention"
            case "connected":
                return _icon_of(self.status) if self.status is not None else "connecting"

    @property
    def assignments(self) -> tuple[AssignmentView, ...]:
        return self.status.assignments if self.status is not None else ()

    @property
    def phase(self) -> Phase | None:
        """The earliest phase of the work under way; None if there is none."""
        phases = {a.phase for a in self.assignments}
        return next(
            (p for p in ("downloading", "verifying", "compiling", "loading") if p in phases), None
        )

    @property
    def standing_by(self) -> bool:
        """Whether all that it does for the fleet is to hold parts of models loaded and ready."""
        return bool(self.assignments) and all(a.phase == "ready" for a in self.assignments)

    @property
    def percent(self) -> int | None:
        """How much of the work under way is done, if its size is known."""
        running = [a for a in self.assignments if a.phase in UNDER_WAY and a.total > 0]
        if not running:
            return None
        return min(100, 100 * sum(a.done for a in running) // sum(a.total for a in running))

    @property
    def at_work(self) -> bool:
        """Whether others would notice if the agent ended now."""
        return any(a.phase not in ("waiting", "failed") for a in self.assignments)


def _icon_of(status: LocalStatus) -> IconName:
    """The agent tells a PC that works from one that does not; why it does not is shown as well."""
    contribution = status.contribution
    if status.removed:
        return "attention"
    if status.state in ("not_joined", "connecting", "attention") or contribution.on:
        return status.state
    match contribution.reason:
        case "not_consented" | "draining":
            return status.state
        case "managed":
            return "off"
        case _:
            return "paused"
