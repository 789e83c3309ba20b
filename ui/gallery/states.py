"""Recorded states: what an agent could have said at one moment, as plain values."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication

from fleetapp.errors import Malformed
from fleetapp.types import (
    AssignmentView,
    ContributionReason,
    ContributionView,
    JoinCodeView,
    LayerRange,
    LocalStatus,
)
from ui.endpoint import not_running
from ui.view import AgentView

MOMENT = 1_772_538_180.0
"""A Tuesday in March 2026, seconds since 1970."""
CODE = "FLEET-7CCKG-JXJEG-64N9Z-RZWJG-M5NWZ-18DGP-70K1F-CRZV0-84C"
GB = 1_000_000_000
MODEL = "qwen3-8b-int4"


def lonely(**changes: Any) -> LocalStatus:
    """A PC in no fleet."""
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "device_id": "k3v7q2mxr8tb1hvnc5e3",
        "name": "DESK-12",
        "state": "not_joined",
        "reason": "This PC belongs to no fleet yet.",
        "contribute": False,
    }
    return LocalStatus(**(fields | changes))


def member(**changes: Any) -> LocalStatus:
    """A member of a fleet, at rest."""
    fields: dict[str, Any] = {
        "state": "ready",
        "reason": "Connected; waiting for work.",
        "contribute": True,
        "fleet_id": "q7d2mxr8tb1hvnck3v5e",
        "fleet_name": "Office Lisbon",
        "hub": "192.0.2.10:8485",
        "api_url": "http://127.0.0.1:8484/v1",
    }
    return lonely(**(fields | changes))


def shard(**changes: Any) -> AssignmentView:
    """The middle of three stages."""
    fields: dict[str, Any] = {
        "device_id": "k3v7q2mxr8tb1hvnc5e3",
        "node": "DESK-12",
        "model": MODEL,
        "stage": 1,
        "stages": 3,
        "layers": LayerRange(12, 24),
        "phase": "linked",
        "done": 1_600_000_000,
        "total": 1_600_000_000,
    }
    return AssignmentView(**(fields | changes))


def connected(status: LocalStatus) -> AgentView:
    """As the desktop app sees it."""
    return AgentView("connected", status)


def join_code(expires: float) -> JoinCodeView:
    """A fresh one."""
    return JoinCodeView("c4", expires - 86_400, expires, 20, False, False, CODE)


PREPARING = member(
    state="preparing",
    reason=f"Downloading {MODEL}.",
    assignments=(
        shard(phase="downloading", done=688_000_000, from_cache=120_000_000),
        shard(
            model="qwen3-0.6b-int8",
            stage=0,
            stages=1,
            layers=LayerRange(0, 28),
            phase="compiling",
            done=0,
            total=0,
        ),
    ),
)


def _contribution(reason: ContributionReason, **changes: Any) -> ContributionView:
    devices = {"CPU": True, "GPU": True, "NPU": False}
    return ContributionView(reason=reason, devices=devices, **changes)


def pc_states() -> dict[str, AgentView]:
    """Every state of this PC, in the language of the moment."""
    odd = QCoreApplication.translate(
        "EventStream", "This desktop app does not understand the agent: {why}."
    ).format(why="Object missing required field `state`")
    full = "The shard needs 1700 MB on the disk of D:, which has 400 MB free."
    return {
        "starting": AgentView(),
        "not-joined": connected(lonely()),
        "connecting": connected(member(state="connecting", reason="Looking for the coordinator.")),
        "ready": connected(member()),
        "contributing": connected(
            member(
                state="contributing",
                reason=f"Holds layers 12-23 of {MODEL}.",
                assignments=(shard(),),
            )
        ),
        "preparing": connected(PREPARING),
        "yielding": connected(
            member(
                reason="Paused while somebody uses this PC.",
                contribution=_contribution("user_active"),
            )
        ),
        "paused": connected(
            member(
                reason="Paused until you resume.",
                contribution=_contribution("paused", paused=True),
            )
        ),
        "off": connected(
            member(
                contribute=False,
                reason="Contributing is switched off by HKLM\\Software\\Policies\\fleetapp.",
                contribution=_contribution("managed"),
            )
        ),
        "not-contributing": connected(
            member(contribute=False, reason="This PC does not contribute.")
        ),
        "attention": connected(
            member(
                state="attention",
                reason=full,
                assignments=(shard(phase="failed", done=0, message=full),),
            )
        ),
        "standing-by": connected(
            member(
                reason=f"Holds layers 12-23 of {MODEL} ready for the fleet.",
                assignments=(shard(phase="ready"),),
            )
        ),
        "removed": connected(
            member(
                state="connecting",
                removed=True,
                hub="",
                reason="The coordinator does not count this PC as a member any more. If it was put "
                "out, 'fleetapp fleet leave' here and join with a code; if it was revoked, only an "
                "admin can let it in again.",
            )
        ),
        "coordinator": connected(
            member(
                name="DESK-01",
                role="coordinator",
                state="contributing",
                reason=f"Holds layers 0-11 of {MODEL}.",
                assignments=(shard(stage=0, layers=LayerRange(0, 12)),),
            )
        ),
        "stopped": AgentView("stopped", problem=not_running()),
        "refused": AgentView("refused", problem=Malformed(odd)),
    }
