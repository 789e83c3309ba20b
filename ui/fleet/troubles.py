"""Why the fleet view hears nothing new, and what happens next. Pure but for translations."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from fleetapp.errors import FleetError
from fleetapp.types import LocalStatus
from ui import agent_words
from ui.view import AgentView

translate = QCoreApplication.translate

PORT_TAKEN = "port_taken"
"""Code of the error of an agent whose port another program has; it tries again by itself."""


def of_agent(agent: AgentView) -> str:
    """Of a view without a status."""
    match agent.link:
        case "stopped" | "refused":
            return str(agent.problem or translate("Fleet", "The agent on this PC does not answer."))
        case _:
            return translate(
                "Fleet",
                "The agent on this PC is not there. It is being started; this takes some seconds.",
            )


def of_connection(status: LocalStatus) -> str:
    """Of an agent that is not connected to its coordinator."""
    reason = agent_words.said(status.reason)
    if status.removed:
        return reason  # what to do is a part of it
    if status.role == "coordinator":
        return translate(
            "Fleet",
            "The coordinator, this PC, is starting. {reason} The other PCs come back by "
            "themselves.",
        ).format(reason=reason)
    return translate(
        "Fleet",
        "The coordinator cannot be reached. {reason} This PC tries again by itself; until then it "
        "gets no answers, and nothing can be changed from here.",
    ).format(reason=reason)


def of_fleet(status: LocalStatus, problem: FleetError) -> str:
    """Of an agent that is connected, or coordinates, and yet tells nothing of the fleet."""
    if problem.code == PORT_TAKEN and status.role == "coordinator":
        return translate(
            "Fleet",
            "The coordinator, this PC, cannot work. {why} It tries again every few seconds; until "
            "then nobody in the fleet gets answers.",
        ).format(why=problem)
    return translate("Fleet", "{why} It is asked again by itself.").format(why=problem)
