"""What the desktop app says, in words: states, phases, bytes, time left."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QLocale

from fleetapp.types import AssignmentView, Phase
from ui import agent_words
from ui.counts import counts
from ui.view import UNDER_WAY, AgentView

translate = QCoreApplication.translate

MENU_LENGTH = 72
"""Characters; longer menu lines make the menu wider than many panels allow."""
TOOLTIP_LENGTH = 127
"""Characters; Windows cuts the rest off."""


def headline(view: AgentView) -> str:
    """The state in one to three words."""
    if view.link == "starting":
        return translate("Words", "Starting")
    if view.removed:
        return translate("Words", "Removed from the fleet")
    if view.contribution.draining and view.icon == "contributing":
        return translate("Words", "Finishing")
    if view.icon == "preparing":
        return _preparing(view)
    if view.icon == "ready" and view.standing_by:
        return translate("Words", "Standing by")
    return {
        "not_joined": translate("Words", "Not in a fleet"),
        "connecting": translate("Words", "Connecting"),
        "ready": translate("Words", "Ready"),
        "contributing": translate("Words", "Contributing"),
        "paused": translate("Words", "Paused"),
        "attention": translate("Words", "Needs attention"),
        "off": translate("Words", "Off by policy"),
        "stopped": translate("Words", "Agent not running"),
    }[view.icon]


def _preparing(view: AgentView) -> str:
    doing = translate("Words", "Preparing") if view.phase is None else phase_name(view.phase)
    if view.percent is None:
        return doing
    return translate("Words", "{doing} {percent}%").format(doing=doing, percent=view.percent)


def managed(what: str, by: str) -> str:
    """A name of something that a policy has laid down, for where it is shown."""
    return translate("Words", "{what} (managed by {policy})").format(what=what, policy=by)


def your_settings() -> str:
    """What stands where a policy's name would, if it is none."""
    return translate("Words", "the settings")


def reason(view: AgentView) -> str:
    """Why, in one or two sentences."""
    if view.problem is not None:
        return str(view.problem)
    if view.status is not None:
        return agent_words.said(view.status.reason)
    return translate("Words", "The agent on this PC is starting.")


def status_line(view: AgentView, length: int = MENU_LENGTH) -> str:
    """State and reason on one line of at most ``length`` characters."""
    parts = (headline(view), reason(view))
    if view.icon == "paused":
        parts = ("", parts[1] or parts[0])  # the reason of a pause says that it is one
    line = " · ".join(part for part in parts if part)
    line = " ".join(line.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def size(count: int) -> str:
    """Bytes for people, in the units of the settings, the planner and the command line:
    ``12.3 MiB``.
    """
    return QLocale().formattedDataSize(
        count, 1 if count >= 2**20 else 0, QLocale.DataSizeFormat.DataSizeIecFormat
    )


def phase_name(phase: Phase) -> str:
    """The phase of a shard as a heading."""
    return {
        "waiting": translate("Words", "Waiting"),
        "downloading": translate("Words", "Downloading"),
        "verifying": translate("Words", "Verifying"),
        "compiling": translate("Words", "Compiling"),
        "loading": translate("Words", "Loading"),
        "ready": translate("Words", "Ready"),
        "linked": translate("Words", "In use"),
        "failed": translate("Words", "Failed"),
    }[phase]


def shard_name(assignment: AssignmentView) -> str:
    """Which part of the model this is; people count stages from one."""
    return translate("Words", "Stage {stage} of {stages} · layers {layers}").format(
        stage=assignment.stage + 1, stages=assignment.stages, layers=assignment.layers
    )


def progress_line(assignment: AssignmentView, seconds_left: float | None) -> str:
    """Phase, bytes and time left, as far as they are known."""
    parts = [phase_name(assignment.phase)]
    if assignment.phase in UNDER_WAY and assignment.total > 0:
        parts.append(
            translate("Words", "{done} of {total}").format(
                done=size(assignment.done), total=size(assignment.total)
            )
        )
        if assignment.from_cache > 0:
            parts.append(
                translate("Words", "{size} already here").format(size=size(assignment.from_cache))
            )
        if seconds_left is not None:
            parts.append(time_left(seconds_left))
    if assignment.message:
        parts.append(agent_words.said(assignment.message))
    return " · ".join(parts)


def time_left(seconds: float) -> str:
    """Rounded so that it does not flicker."""
    if seconds < 10:
        return translate("Words", "a few seconds left")
    if seconds < 90:
        return counts.seconds_left(10 * round(seconds / 10))
    minutes = round(seconds / 60)
    if minutes < 90:
        return counts.minutes_left(minutes)
    return counts.hours_left(round(minutes / 60))


@dataclass
class Pace:
    """Estimates time left from what one piece of work has done so far (pure; clock given).

    The rate is averaged with a time constant of about five seconds, so that one slow second does
    not double the estimate.
    """

    phase: Phase | None = None
    done: int = 0
    at: float = 0.0
    rate: float = 0.0
    samples: int = 0

    def seconds_left(self, assignment: AssignmentView, now: float) -> float | None:
        """Feed the newest state; None until it can be told."""
        if assignment.phase != self.phase or assignment.done < self.done:
            self.phase, self.done, self.at = assignment.phase, assignment.done, now
            self.rate, self.samples = 0.0, 0
            return None
        elapsed = now - self.at
        if elapsed >= 0.5:
            newest = (assignment.done - self.done) / elapsed
            weight = 1.0 if self.samples == 0 else min(1.0, elapsed / 5.0)
            self.rate += weight * (newest - self.rate)
            self.done, self.at = assignment.done, now
            self.samples += 1
        if self.samples < 2 or self.rate <= 0 or assignment.total <= 0:
            return None
        return (assignment.total - assignment.done) / self.rate
