"""What member and hub say to each other over the mutually authenticated control connection.

A WebSocket carries these as JSON, one message a text frame. Blobs travel beside it as plain GETs.
"""

from __future__ import annotations

import msgspec

from fleetapp.types import Hardware, LayerRange, Phase, Precision

MAX_MESSAGE = 8 * 1024 * 1024
BROKEN_JSON = (msgspec.MsgspecError, RecursionError)
"""What decoding raises; the second for thousands of brackets in a field that nobody knows."""
HEARTBEAT_SECONDS = 0.5
SUSPECT_AFTER = 3.0
GONE_AFTER = 5.8
"""Within six seconds, looking included; an agent that was stopped for five seconds right before a
heartbeat is not gone. Who cannot be reached at all is noticed by ``platform.keepalive`` sooner.
"""


class Signed(msgspec.Struct, frozen=True):
    """Exact bytes and a detached ECDSA P-256 SHA-256 signature over them."""

    payload: bytes
    signature: bytes
    signer: str
    """Hex SHA-256 of the signer's SubjectPublicKeyInfo."""


class AuthorityReply(msgspec.Struct, frozen=True):
    """What anybody may fetch before trusting anything (``GET /join/authority``)."""

    authority: str
    """PEM; its SPKI hash must be the join code's."""
    hub_device: str


class JoinRequest(msgspec.Struct, frozen=True):
    """``POST /join/request``, over a connection that trusts only the code's authority."""

    protocol: int
    secret: str
    """Hex of the code's secret bytes."""
    csr: str
    name: str


class JoinReply(msgspec.Struct, frozen=True):
    """``leaf`` and ``membership`` are empty while the admin has not approved yet."""

    pending: bool
    fleet_name: str
    leaf: str = ""
    membership: Signed | None = None


class Reissue(msgspec.Struct, frozen=True, tag="fleetapp.reissue.1", tag_field="kind"):
    """What the copied key signs: a copy's wish for a key of its own."""

    device_id: str
    """Whose copy it is."""
    fleet_id: str
    instance: str
    """As in the hello that was turned away."""
    csr: str
    """For the new key, PEM."""


class ReissueRequest(msgspec.Struct, frozen=True):
    """``POST /join/reissue``, answered with a JoinReply."""

    protocol: int
    wish: Signed
    """A :class:`Reissue`, signed by the copied key."""
    name: str


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    seq: int
    memory_free: int
    disk_free: int
    contribute: bool
    sent_bytes: dict[str, int] = {}
    """Assignment id -> bytes its runner has sent to the next hop."""
    reason: str = ""
    """A ContributionReason: why it contributes or not. Newer members may know more of them."""
    lends: tuple[str, ...] = ("CPU",)
    draining: bool = False
    """It finishes what runs and wants nothing new; then it stops contributing."""
    shards: dict[str, str] | None = None
    """As in the hello, if that has changed."""
    hosts: tuple[str, ...] | None = None
    """As in the hello, if that has changed."""
    certificate_ends: float | None = None
    """As in the hello, if that has changed."""
    temperature: float | None = None
    """Whole degrees Celsius of the hottest part of the processor; None if there is no sensor."""
    devices: tuple[str, ...] | None = None
    """Names of the devices, as in the hello, if they have changed: a driver may take its time to
    tell them, and the greeting does not wait for it.
    """


class StageStatus(msgspec.Struct, frozen=True, tag="stage_status"):
    """Where an assignment stands; ``epoch`` is set for ``linked``."""

    assignment: str
    phase: Phase
    done: int = 0
    total: int = 0
    message: str = ""
    code: str = ""
    remedy: str = ""
    epoch: int = 0
    port: int = 0
    blocks: int = 0
    block_size: int = 0
    spill_blocks: int = 0
    """Blocks that fit outside the cache."""
    max_context: int = 0
    runtime: str = ""
    from_cache: int = 0
    """Bytes that were already on this PC."""


class Held(msgspec.Struct, frozen=True):
    """A shard that a member has loaded when it connects; the hub adopts or releases it."""

    assignment: str
    model: str
    stage: int
    stages: int
    layers: LayerRange
    weight_bytes: int
    device: str
    head: bool
    precision: Precision
    manifest: str
    """Digest of the stage's signed manifest."""
    lookup: bool
    draft: str
    """Digest of the draft model's manifest, or empty."""
    status: StageStatus
    """What it said when it became ready."""


class MemberHello(msgspec.Struct, frozen=True, tag="hello"):
    protocol: int
    app: str
    device_id: str
    name: str
    hardware: Hardware
    contribute: bool
    hosts: tuple[str, ...]
    """Addresses on which this node's runners can be reached."""
    held: tuple[Held, ...] = ()
    holds: str = ""
    """Fingerprint of the membership list that this node has, which need not be sent then; later
    ones are sent to it as differences. Empty: it wants whole lists.
    """
    lends: tuple[str, ...] = ("CPU",)
    """Kinds of devices on which it computes stages, as things are now."""
    shards: dict[str, str] = {}
    """What it holds whole: digest of the shard's manifest -> of the model's."""
    shard_port: int = 0
    """On which it serves chunks to other members; 0: it does not."""
    instance: str = ""
    """A random number of this start of the agent; empty if it does not say."""
    certificate_ends: float | None = None
    """When this node's certificate expires, in seconds since 1970."""
    hardware_id: str = ""
    """What stays of this PC whatever is copied to it, hashed for this fleet; empty if unknown."""


class FaultReport(msgspec.Struct, frozen=True, tag="fault_report"):
    """A runner saw its ring break or died itself."""

    assignment: str
    epoch: int
    code: str
    message: str
    device: str = ""
    """Whom the runner blames."""
    runner_died: bool = False


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye"):
    reason: str


class FromHead(msgspec.Struct, frozen=True, tag="from_head"):
    """What the head runner of an assignment says, as ``engine.pipe_io`` packs it.

    The hub may live on another PC than the head of a chain; between them goes what between an
    agent and its runner goes over a pipe.
    """

    assignment: str
    messages: tuple[bytes, ...]


class HandedOver(msgspec.Struct, frozen=True, tag="handed_over"):
    """This PC coordinates the fleet from now on; the list says so."""

    membership: Signed
    control_port: int = 0
    """Where it listens; 0 if that is not fixed."""


class EarlierList(msgspec.Struct, frozen=True, tag="earlier_list"):
    """The list that this PC had before the present coordinator took over; it may know of
    revocations that the recovery file was too old for.
    """

    membership: Signed


class HandoverRefused(msgspec.Struct, frozen=True, tag="handover_refused"):
    """This PC could not take the office, and is a member as before."""

    code: str
    message: str
    remedy: str = ""


class StageProfile(msgspec.Struct, frozen=True):
    """What steps of one shard took on one device; see ``engine.pipe.Measured``.

    ``decode``, ``chosen`` and ``prefill`` are pairs of a size (sequences, or positions) and the
    seconds of a step that nothing else delayed.
    """

    model: str
    """Digest of the model's manifest."""
    layers: LayerRange
    first: bool
    last: bool
    device: str
    runtime: str
    precision: Precision
    decode: tuple[tuple[int, float], ...]
    chosen: tuple[tuple[int, float], ...]
    prefill: tuple[tuple[int, float], ...]
    age: float = 0.0
    """Seconds since it was measured; clocks of PCs need not agree."""


class HopMeasurement(msgspec.Struct, frozen=True):
    """What a node saw of its link with another one; 0 where it saw nothing."""

    peer: str
    """Device id."""
    rtt: float = 0.0
    """Seconds, there and back."""
    bandwidth: float = 0.0
    """Bytes per second, from there to here."""


class ProfileReport(msgspec.Struct, frozen=True, tag="profile_report"):
    """What a member has measured; after connecting all that it remembers, then what is new."""

    profiles: tuple[StageProfile, ...] = ()
    hops: tuple[HopMeasurement, ...] = ()


FromMember = (
    MemberHello
    | Heartbeat
    | StageStatus
    | FaultReport
    | FromHead
    | Goodbye
    | HandedOver
    | HandoverRefused
    | EarlierList
    | ProfileReport
)


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    protocol: int
    app: str
    fleet: str
    membership: Signed | None
    """None if the hello said that the newest list is there already."""


class MembershipUpdate(msgspec.Struct, frozen=True, tag="membership"):
    membership: Signed
    hub_addresses: tuple[str, ...] = ()
    """``host:port`` of the coordinator if it is another one from now on; a hint."""


class MembershipDelta(msgspec.Struct, frozen=True, tag="membership_delta"):
    """A newer list as its difference from the one of epoch ``base``; the signature is over the
    whole list.
    """

    base: int
    change: bytes
    """``fleet.membership.Change`` as JSON."""
    signature: bytes
    signer: str


class Neighbour(msgspec.Struct, frozen=True):
    device_id: str
    spki: str
    hosts: tuple[str, ...]
    port: int


class Assign(msgspec.Struct, frozen=True, tag="assign"):
    """Hold this shard: fetch what is missing, load, report ready. Nothing is computed yet."""

    assignment: str
    chain: str
    model: str
    stage: int
    stages: int
    layers: LayerRange
    head: bool
    manifest: Signed
    precision: Precision
    kv_bytes: int
    max_context: int
    threads: int
    lookup: bool = False
    """A head guesses from the request's own text."""
    draft: Signed | None = None
    """The whole of a draft model, for a head to hold beside its shard."""
    device: str = ""
    """Kind of device to use; empty leaves it to the member."""

    sources: tuple[Neighbour, ...] = ()
    """Members that may have some of the chunks; the hub has them all."""


class LinkStage(msgspec.Struct, frozen=True, tag="link"):
    assignment: str
    chain: str
    epoch: int
    next_layer: int
    model_digest: str
    next: Neighbour | None
    prev: Neighbour | None
    kv_blocks: int
    block_size: int
    spill_blocks: int = 0


class Release(msgspec.Struct, frozen=True, tag="release"):
    """Stop the runner of this assignment; the shard stays on disk."""

    assignment: str
    reason: str


class ToHead(msgspec.Struct, frozen=True, tag="to_head"):
    """For the head runner of an assignment; see ``FromHead``."""

    assignment: str
    message: bytes


class Handover(msgspec.Struct, frozen=True, tag="handover"):
    """Become the coordinator. The bundle holds the authority's key: never logged, never kept as
    it is.
    """

    bundle: bytes
    """``fleet.recovery.Bundle`` as JSON."""

    def __repr__(self) -> str:
        return "Handover()"


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """The hub ends the connection and says why."""

    code: str
    message: str
    remedy: str = ""


FromHub = (
    Welcome
    | MembershipUpdate
    | MembershipDelta
    | Assign
    | LinkStage
    | Release
    | ToHead
    | Handover
    | Refuse
)
