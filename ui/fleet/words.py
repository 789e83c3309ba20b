"""What the fleet view says, in words: states, reasons, ages, rates."""

from __future__ import annotations

import math
import time

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from fleetapp.types import AssignmentView, ChainView, NodeView, Phase, Precision, Role
from ui.view import UNDER_WAY

translate = QCoreApplication.translate

NONE = "—"
"""Shown where nothing is known."""
DAY = 86_400.0


def state(node: NodeView, work: tuple[AssignmentView, ...] = ()) -> str:
    """How a PC stands, in a few words, with the reason if there is one."""
    match node.state:
        case "pending":
            return translate("Fleet", "Waits for approval")
        case "revoked":
            return translate("Fleet", "Shut out")
        case "offline":
            return translate("Fleet", "Offline")
        case "suspected":
            return translate("Fleet", "Does not answer")
        case "online":
            return _online(node, {a.phase for a in work})


def _online(node: NodeView, phases: set[Phase]) -> str:
    if node.drained:
        return translate("Fleet", "Drained by an admin")
    if not node.contribute:
        why = reason(node.reason)
        return (
            translate("Fleet", "Not working · {why}").format(why=why)
            if why
            else translate("Fleet", "Not working")
        )
    return _working(node, phases)


def _working(node: NodeView, phases: set[Phase]) -> str:
    if node.reason == "draining":
        return translate("Fleet", "Finishing, then pausing")
    if "failed" in phases:
        return translate("Fleet", "Could not load its part")
    if "linked" in phases:
        return translate("Fleet", "Working")
    if phases & UNDER_WAY:
        return translate("Fleet", "Getting ready")
    if "ready" in phases:
        return translate("Fleet", "Standing by")
    return translate("Fleet", "Ready to work")


def reason(code: str) -> str:
    """A ContributionReason in words; one that is not known here as it is."""
    known = {
        "contributing": "",
        "draining": translate("Fleet", "finishing"),
        "managed": translate("Fleet", "off by policy"),
        "not_consented": translate("Fleet", "its user has not agreed"),
        "no_device": translate("Fleet", "no device lent"),
        "paused": translate("Fleet", "paused"),
        "suspending": translate("Fleet", "going to sleep"),
        "outside_schedule": translate("Fleet", "outside its hours"),
        "on_battery": translate("Fleet", "on battery"),
        "battery_saver": translate("Fleet", "saving battery"),
        "battery_low": translate("Fleet", "battery low"),
        "metered": translate("Fleet", "metered network"),
        "full_screen": translate("Fleet", "a program fills the screen"),
        "exclusive_app": translate("Fleet", "a program wants the PC"),
        "hot": translate("Fleet", "too hot"),
        "memory_low": translate("Fleet", "memory low"),
        "disk_low": translate("Fleet", "disk full"),
        "cpu_busy": translate("Fleet", "processor busy"),
        "user_active": translate("Fleet", "in use"),
    }
    return known.get(code, code.replace("_", " "))


def role(value: Role) -> str:
    """What a member may do."""
    return {
        "member": translate("Fleet", "member"),
        "coordinator": translate("Fleet", "coordinator"),
        "admin": translate("Fleet", "admin"),
    }[value]


def work(assignments: tuple[AssignmentView, ...]) -> str:
    """What a PC holds."""
    return "; ".join(
        translate("Fleet", "{model} · {layers}").format(model=a.model, layers=a.layers)
        for a in assignments
    )


def chain_state(chain: ChainView) -> str:
    """How a chain stands."""
    return {
        "planning": translate("Fleet", "Being planned"),
        "preparing": translate("Fleet", "Being prepared"),
        "linking": translate("Fleet", "Being linked"),
        "live": translate("Fleet", "Live"),
        "broken": translate("Fleet", "Broken"),
        "stopped": translate("Fleet", "Stopped"),
    }[chain.state]


def precision(value: Precision) -> str:
    """How exactly it computes."""
    return {
        "exact": translate("Fleet", "exact (32 bits)"),
        "fast": translate("Fleet", "fast (16 bits)"),
    }[value]


def ago(seconds: float | None) -> str:
    """How long since; coarse, so that it does not flicker."""
    if seconds is None:
        return NONE
    if seconds < 5:
        return translate("Fleet", "now")
    if seconds < 90:
        return translate("Fleet", "{n} s ago").format(n=5 * round(seconds / 5))
    if seconds < 90 * 60:
        return translate("Fleet", "{n} min ago").format(n=round(seconds / 60))
    if seconds < 36 * 3600:
        return translate("Fleet", "{n} h ago").format(n=round(seconds / 3600))
    return translate("Fleet", "{n} days ago").format(n=round(seconds / DAY))


def ends(when: float | None, now: float) -> str:
    """How long a certificate still holds."""
    if when is None:
        return NONE
    left = when - now
    if left <= 0:
        return translate("Fleet", "expired")
    if left < 2 * DAY:
        return translate("Fleet", "{n} h").format(n=max(1, math.floor(left / 3600)))
    return translate("Fleet", "{n} days").format(n=math.floor(left / DAY))


def when(seconds: float) -> str:
    """A moment by the person's own clock and habits."""
    moment = QDateTime.fromSecsSinceEpoch(round(seconds))
    return QLocale().toString(moment, QLocale.FormatType.ShortFormat)


def clock(seconds: float) -> str:
    """The time of a day, with seconds."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def number(value: float | None) -> str:
    """With as many digits as mean something."""
    if value is None:
        return NONE
    return QLocale().toString(float(value), "f", 1 if 0 < value < 100 else 0)


def milliseconds(seconds: float | None) -> str:
    """Short times."""
    if not seconds:
        return NONE
    ms = seconds * 1000
    return translate("Fleet", "{n} ms").format(n=QLocale().toString(ms, "f", 1 if ms < 10 else 0))


def percent(share: float | None) -> str:
    """A share of one."""
    return NONE if share is None else translate("Fleet", "{n}%").format(n=round(100 * share))


def some(names: list[str], most: int = 4) -> str:
    """The first few names."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return translate("Fleet", "{names} and {n} more").format(
        names=", ".join(names[:most]), n=len(names) - most
    )
