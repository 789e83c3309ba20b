"""What an agent says of its own PC. No I/O."""

from __future__ import annotations

from typing import Literal

import msgspec

from fleetapp.types.basics import ContributionReason, DeviceClass, Role
from fleetapp.types.fleet import AssignmentView


class ContributionView(msgspec.Struct, frozen=True):
    """Whether this PC works for the fleet now, and why."""

    on: bool = False
    reason: ContributionReason = "not_consented"
    sentence: str = ""
    until: float | None = None
    """When that ends, in seconds since 1970, if it is known."""
    paused: bool = False
    """The user has asked for a pause, which may not have begun yet (``draining``)."""
    paused_until: float | None = None
    """Its end, in seconds since 1970; None: until somebody resumes, or no pause."""
    draining: bool = False
    """Running answers are finished, new ones are not begun; then the pause begins."""
    devices: dict[str, bool] = {}
    """Device class -> whether the user lends it."""
    may_pause: bool = True
    """False where a policy forbids pauses."""
    contribute_by: str = ""
    """Which policy has laid down whether this PC contributes; empty: its user says."""
    pause_by: str = ""
    """Which policy has laid down whether it may pause."""


class LocalStatus(msgspec.Struct, frozen=True):
    """What the agent says of this PC over the loopback API (``GET /local/v1/status``)."""

    version: str
    device_id: str
    name: str
    state: Literal["not_joined", "connecting", "ready", "contributing", "preparing", "attention"]
    reason: str
    """One sentence in words, for the tray's first line."""
    contribute: bool
    fleet_id: str = ""
    fleet_name: str = ""
    role: Role = "member"
    hub: str = ""
    api_url: str = ""
    """Base URL of the OpenAI-compatible API that this PC can use, or empty."""
    assignments: tuple[AssignmentView, ...] = ()
    warnings: tuple[str, ...] = ()
    """What somebody should look at although everything works still; a sentence or two each."""
    contribution: ContributionView = ContributionView()
    removed: bool = False
    """Its fleet does not count it as a member any more; the state is "connecting": it goes on
    asking, because an admin may let it in again."""
    joining: Literal["", "looking", "approval"] = ""
    """What an attempt to join a fleet is waiting for; empty if there is none.

    One with a code that this PC was deployed with goes on until a coordinator has answered.
    """


class AutostartView(msgspec.Struct, frozen=True):
    """Whether the desktop app starts with the user's session (``GET /local/v1/autostart``)."""

    on: bool
    where: str
    """The file or key that says so."""
    locked: bool = False
    """It was set up for all users of this PC, and only an administrator can change it."""


class BundleView(msgspec.Struct, frozen=True):
    """A support bundle that was written (``POST /local/v1/support-bundle``)."""

    path: str
    size: int
    """Bytes."""
    files: tuple[str, ...]
    """What is in it."""


class SearchView(msgspec.Struct, frozen=True):
    """What the search on the local network finds (``GET /local/v1/search``)."""

    peers: int
    """Other PCs that announce themselves, of any fleet."""
    coordinators: int
    """Of them."""
    why: tuple[str, ...] = ()
    """Why it finds less than it should, and what to do; empty if all seems well."""


CheckState = Literal["ok", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True):
    """What one check of this PC has found, and what to do about it."""

    name: str
    """For people."""
    state: CheckState
    detail: str
    remedy: str = ""
    key: str = ""
    """For programs; stays the same."""


class DeviceView(msgspec.Struct, frozen=True):
    """One device of this PC as OpenVINO and its maker call it."""

    id: str
    name: str
    kind: DeviceClass | Literal["other"]
    memory: int = 0
    """Bytes of its own; 0 if it does not say or shares the PC's."""
    for_stages: bool = False
    """Whether parts of models are computed on devices of this kind."""
    error: str = ""
    """Why it is there and yet cannot be used."""


class HardwareView(msgspec.Struct, frozen=True):
    """What this PC has to compute with (``GET /local/v1/hardware``). Bytes for memory and disk."""

    cpu: str
    cores: int
    memory_total: int
    memory_free: int
    memory_for_models: int
    """What the limits in the settings leave to the fleet now."""
    memory_held: int
    """What the agent and its runners take, as last seen."""
    disk_free: int
    billion_parameters: float
    """Of the largest model, in 4 bits, of which that memory holds all layers; rounded down."""
    devices: tuple[DeviceView, ...] = ()
    runtime: str = ""
    problem: str = ""
    """Why the devices could not be asked for."""
    remedy: str = ""
