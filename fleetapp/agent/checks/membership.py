"""Checks of the running agent and of its fleet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from fleetapp.agent.checks.subject import State, Subject
from fleetapp.errors import AgentNotRunning, FleetError
from fleetapp.fleet.enrolment import FleetStore
from fleetapp.fleet.identity import Identity
from fleetapp.types import Finding

OVERDUE_SECONDS = 2 * 86400.0
"""A certificate that is due for so long has not been renewed for some reason; PCs do rest."""


def agent(subject: Subject) -> Finding:
    """Does the agent run, and what does it say?"""
    try:
        status = subject.agent.status()
    except AgentNotRunning as error:
        return Finding("Agent", "warn", error.message, error.remedy)
    except FleetError as error:
        return Finding("Agent", "fail", error.message, error.remedy or "Restart the agent.")
    state: State = "warn" if status.state == "attention" or status.warnings else "ok"
    said = " ".join((status.reason, *status.warnings))
    return Finding("Agent", state, f"It runs (version {status.version}). {said}")


def fleet(subject: Subject, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Finding:
    """Does this PC belong to a fleet, and how long is its certificate valid?"""
    paths = subject.paths
    join = "Join one with 'fleetapp fleet join CODE', or found one with 'fleetapp fleet create'."
    if not paths.fleet.is_dir() or not paths.device_key.exists():
        return Finding("Fleet", "warn", "This PC belongs to no fleet.", join)
    try:
        enrolment = FleetStore(paths, Identity.load_or_create(paths)).load()
    except FleetError as error:
        return Finding("Fleet", "fail", error.message, error.remedy or join)
    if enrolment is None:
        return Finding("Fleet", "warn", "This PC belongs to no fleet.", join)
    left = enrolment.leaf.not_valid_after_utc - now()
    overdue = now().timestamp() - enrolment.renew_at
    detail = (
        f"Member of '{enrolment.info.name}'; certificate valid until "
        f"{enrolment.leaf.not_valid_after_utc:%Y-%m-%d}."
    )
    if left < timedelta(0):
        return Finding("Fleet", "fail", f"{detail} It has expired.", "Start the agent to renew it.")
    if overdue > OVERDUE_SECONDS:
        return Finding(
            "Fleet", "warn", f"{detail} Its renewal is {overdue / 86400:.0f} days late.",
            "Keep the agent running where it reaches the coordinator.",
        )  # fmt: skip
    return Finding("Fleet", "ok", detail)
