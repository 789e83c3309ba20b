"""What member and hub say to each other over the mutually authenticated control connection.

A WebSocket carries these as JSON, one message a text frame. Blobs travel beside it as plain GETs.
"""

from __future__ import annotations

import msgspec

from fleetapp.types import Hardware, LayerRange, Phase, Precision

MAX_MESSAGE = 8 * 1024 * 1024
BROKEN_JSON = (msgspec.MsgspecError, RecursionError)
"""What decoding raises; the second for thousands of brackets in a field that nobody knows."""
HEARTBEAT_SECONDS = 1.0
SUSPECT_AFTER = 3.0
GONE_AFTER = 6.0


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


class MemberHello(msgspec.Struct, frozen=True, tag="hello"):
    protocol: int
    app: str
    device_id: str
    name: str
    hardware: Hardware
    contribute: bool
    hosts: tuple[str, ...]
    """Addresses on which this node's runners can be reached."""


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    seq: int
    memory_free: int
    disk_free: int
    contribute: bool
    sent_bytes: dict[str, int] = {}
    """Assignment id -> bytes its runner has sent to the next hop."""


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


class FaultReport(msgspec.Struct, frozen=True, tag="fault_report"):
    """A runner saw its ring break or died itself."""

    assignment: str
    epoch: int
    code: str
    message: str
    device: str = ""
    runner_died: bool = False


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye"):
    reason: str


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


FromMember = MemberHello | Heartbeat | StageStatus | FaultReport | Goodbye | ProfileReport


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    protocol: int
    app: str
    fleet: str
    membership: Signed


class MembershipUpdate(msgspec.Struct, frozen=True, tag="membership"):
    membership: Signed


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


class Neighbour(msgspec.Struct, frozen=True):
    device_id: str
    spki: str
    hosts: tuple[str, ...]
    port: int


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


class Refuse(msgspec.Struct, frozen=True, tag="refuse"):
    """The hub ends the connection and says why."""

    code: str
    message: str
    remedy: str = ""


FromHub = Welcome | MembershipUpdate | Assign | LinkStage | Release | Refuse
