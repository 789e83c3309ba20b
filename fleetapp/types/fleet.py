"""What a fleet's coordinator tells people: PCs, chains, codes, the audit log. No I/O."""

from __future__ import annotations

from typing import Literal

import msgspec

from fleetapp.types.basics import Hardware, LayerRange, Phase, Precision, Role


class AssignmentView(msgspec.Struct, frozen=True):
    """One shard on one node, as shown to people. Bytes for done, total and from_cache."""

    device_id: str
    node: str
    model: str
    stage: int
    stages: int
    layers: LayerRange
    phase: Phase
    done: int = 0
    total: int = 0
    from_cache: int = 0
    message: str = ""
    device: str = ""
    """Kind of device that computes it; empty if the coordinator is too old to say."""


class NodeView(msgspec.Struct, frozen=True):
    """One member as the hub sees it."""

    device_id: str
    name: str
    role: Role
    state: Literal["pending", "online", "suspected", "offline", "revoked"]
    contribute: bool
    app: str = ""
    hardware: Hardware | None = None
    last_seen: float | None = None
    """Seconds since the last heartbeat."""
    drained: bool = False
    """An admin wants it to have no work."""
    reason: str = ""
    """A ContributionReason; empty while it is not connected."""
    temperature: float | None = None
    """Degrees Celsius of the hottest part of its processor, if it has a sensor."""
    certificate_ends: float | None = None
    """When its certificate expires, in seconds since 1970, if it has said so."""


class HopView(msgspec.Struct, frozen=True):
    """Application bytes that one stage has sent to the next since the chain went live."""

    from_device: str
    to_device: str
    bytes: int
    rtt: float = 0.0
    """Seconds there and back as members have measured it; 0 if nobody has."""
    bandwidth: float = 0.0
    """Bytes per second in this direction, or 0."""


class ChainLoad(msgspec.Struct, frozen=True):
    """What a chain has done lately, as its head has counted it. Seconds are of one mean step.

    A chain at rest makes no tokens; its times are those of the last steps that were seen.
    """

    tokens_per_second: float = 0.0
    """Of all its answers together, over about a second."""
    step: float = 0.0
    """Once around the chain: as long as each answer waits for its next token."""
    stages: tuple[float, ...] = ()
    """Of that, what each stage has spent."""
    wire: float = 0.0
    """Of that, between the stages."""
    width: float = 0.0
    """Answers in a step."""
    acceptance: float | None = None
    """Share of the guessed tokens that were right; None if none were guessed."""


class ChainView(msgspec.Struct, frozen=True):
    """One way through a model."""

    chain: str
    model: str
    precision: Precision
    epoch: int
    state: Literal["planning", "preparing", "linking", "live", "broken", "stopped"]
    reason: str
    plan: str = ""
    """Sentences that explain who holds which layers."""
    assignments: tuple[AssignmentView, ...] = ()
    hops: tuple[HopView, ...] = ()
    standbys: tuple[AssignmentView, ...] = ()
    """Copies of stages, held ready for when a PC leaves; told with a model's first chain."""
    running: int = 0
    waiting: int = 0
    load: ChainLoad | None = None
    """None until its head has been asked, which is done while somebody watches the fleet."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of its PCs, in stage order."""
        return tuple(a.node for a in sorted(self.assignments, key=lambda a: a.stage))


class FleetView(msgspec.Struct, frozen=True):
    """What ``fleetapp fleet status`` and the admin view show."""

    fleet_id: str
    name: str
    nodes: tuple[NodeView, ...]
    chains: tuple[ChainView, ...]
    warnings: tuple[str, ...] = ()
    """What the admin should look at, in sentences."""


class JoinCodeView(msgspec.Struct, frozen=True):
    """A code as the admin's list shows it; the secret itself is shown once, at creation."""

    code_id: str
    created: float
    expires: float
    uses_left: int
    approve: bool
    revoked: bool
    code: str = ""


class AuditEntry(msgspec.Struct, frozen=True):
    """One line of the hub's audit log."""

    seq: int
    time: float
    """Unix seconds."""
    actor: str
    """Device id of the PC whose user or program it was; "local" for the coordinator's own."""
    action: str
    details: dict[str, str] = {}


class AuditCheck(msgspec.Struct, frozen=True):
    """What following the chain of the audit log has shown; sound if there are no ``problems``."""

    entries: int
    first: int
    """Number of the oldest entry that is here; more than 1 if older parts were taken away."""
    last: int
    head: str
    """Hex hash of the newest line, to be noted elsewhere."""
    problems: tuple[str, ...] = ()
