"""Ids and small frozen values that everyone shares. No I/O."""

from __future__ import annotations

from typing import Literal, NewType

import msgspec

DeviceId = NewType("DeviceId", str)
"""First 20 characters of the lower-case base32 SHA-256 of a node's SubjectPublicKeyInfo."""
FleetId = NewType("FleetId", str)
"""First 20 characters of the lower-case base32 SHA-256 of the authority's SubjectPublicKeyInfo."""
ChainId = NewType("ChainId", str)
RequestId = NewType("RequestId", str)
ModelId = NewType("ModelId", str)

Precision = Literal["exact", "fast"]
Priority = Literal["interactive", "batch"]
FinishReason = Literal["stop", "length", "cancelled", "error"]
Role = Literal["member", "coordinator", "admin"]
Decision = Literal["approve", "decline", "revoke", "reinstate", "drain", "undrain", "evict"]
"""An admin's word on one PC: the first two on one that waits, the others on a member. A drained one
hands its work over and gets none; an evicted one may join again with a code, a revoked one not."""
GivenRole = Literal["admin", "member"]
"""A role that an admin can give; the coordinator's goes with the fleet's authority."""
Phase = Literal[
    "waiting", "downloading", "verifying", "compiling", "loading", "ready", "linked", "failed"
]

ModelPhase = Literal[
    "starting", "waiting", "downloading", "unpacking", "verifying", "copying", "converting",
    "inspecting", "checking", "splitting", "hashing",
]  # fmt: skip
"""What work on a model is at: ``waiting`` for another process; ``verifying`` hashes what is there
already, ``hashing`` what was just made; ``checking`` runs the whole against its parts."""
Unit = Literal["bytes", "layers", "steps"]

DeviceClass = Literal["CPU", "GPU", "NPU"]
ContributionReason = Literal[
    "contributing",
    "draining",
    "managed",
    "not_consented",
    "no_device",
    "paused",
    "suspending",
    "outside_schedule",
    "on_battery",
    "battery_saver",
    "battery_low",
    "metered",
    "full_screen",
    "exclusive_app",
    "hot",
    "memory_low",
    "disk_low",
    "cpu_busy",
    "user_active",
]
"""Why a PC works for the fleet or not; exactly one holds. docs/contribution.md has the table."""

SettingKind = Literal[
    "switch", "number", "choice", "text", "folder", "host_port", "addresses", "devices", "programs",
    "days", "hours",
]  # fmt: skip
"""What sort of value a setting has, and so which control asks for it."""
SettingSource = Literal["default", "user", "environment", "user policy", "machine policy"]
SettingApplies = Literal["now", "next load", "restart"]
"""When a change acts: at once, when a shard is loaded next, or when the agent starts next."""

PROTOCOL_VERSION = 1
"""Of control and data connections alike; two sides with different numbers refuse each other."""

SERVICE_TYPE = "_fleetapp._tcp.local."


class LayerRange(msgspec.Struct, frozen=True, order=True):
    """Decoder layers ``start <= layer < stop``."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return f"{self.start}-{self.stop - 1}"


class Grammar(msgspec.Struct, frozen=True):
    """What an answer must look like as a whole; ``text`` is the schema as JSON, or the pattern."""

    kind: Literal["json_schema", "regex"]
    text: str


class SamplingParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the next token is chosen and when to stop.

    ``temperature == 0`` is greedy. ``top_k == 0``, ``top_p == 1``, ``min_p == 0``,
    ``repetition_penalty == 1`` and the other penalties at 0 switch these off. ``seed is None``
    means the head draws one and reports nothing. In which order they act: engine/sampling.py.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    max_tokens: int = 1
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    """Over prompt and answer, multiplicative."""
    presence_penalty: float = 0.0
    """Over the answer, once per distinct token."""
    frequency_penalty: float = 0.0
    """Over the answer, per occurrence."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(token id, what is added to its logit)."""
    logprobs: int | None = None
    """Likeliest alternatives to report for each token; 0 reports the token's own log
    probability only, None nothing.
    """
    stop_ids: tuple[int, ...] = ()
    """Ids that end the answer, besides the model's own; they end it under ``ignore_eos`` too."""
    grammar: Grammar | None = None
    priority: Priority = "interactive"

    @property
    def needs_history(self) -> bool:
        """Whether choosing a token takes more than its row of logits."""
        return (
            self.repetition_penalty != 1.0
            or self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
            or self.grammar is not None
        )


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one request. ``cached_tokens`` of the prompt had been computed before."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


class Timings(msgspec.Struct, frozen=True):
    """Where the time of one answer went; seconds by monotonic clocks.

    ``queued`` (until it got a slot), ``prefill`` (from then to the first token) and ``decode``
    (from then to the last) follow one another. Prefill and decode together are ``compute`` (all
    stages), ``wire``, ``host`` (sampling and handling at the stages) and ``wait``, the rest.
    """

    queued: float
    first_token: float
    total: float
    decode_tokens_per_second: float
    prefill: float = 0.0
    decode: float = 0.0
    compute: float = 0.0
    wire: float = 0.0
    wait: float = 0.0
    host: float = 0.0
    steps: int = 0
    """Around the chain that this answer took part in."""
    width: float = 0.0
    """Sequences in those steps, on average; 1 is alone."""
    cached_tokens: int = 0
    """Of the prompt, found in the cache and not computed."""
    drafted: int = 0
    accepted: int = 0
    """Of the drafted tokens."""


class Hardware(msgspec.Struct, frozen=True):
    """What a node says of itself. Bytes for memory and disk."""

    cores: int
    memory_total: int
    memory_free: int
    disk_free: int
    cpu: str = ""
    devices: tuple[str, ...] = ("CPU",)
    runtime: str = ""


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
    joining: Literal["", "looking", "approval"] = ""
    """What an attempt to join a fleet is waiting for; empty if there is none."""


class OptionView(msgspec.Struct, frozen=True):
    """One value that a choice can have, and what it is called."""

    value: str
    label: str


class SettingView(msgspec.Struct, frozen=True):
    """One setting as a window shows it (``GET /local/v1/settings``), in the language asked for."""

    name: str
    section: str
    """Name of a SectionView."""
    kind: SettingKind
    label: str
    help: str
    value: bool | int | str
    default: bool | int | str
    nothing: str = ""
    """What 0 or an empty text stands for, in words; empty if that is nothing special."""
    example: str = ""
    """How a value is written, where that is not plain."""
    minimum: int = 0
    maximum: int = 0
    unit: str = ""
    """Of a number, as it is written behind it."""
    options: tuple[OptionView, ...] = ()
    """Of a choice."""
    source: SettingSource = "default"
    where: str = ""
    """The file, key or variable that the value comes from."""
    locked: bool = False
    """An administrator has laid it down."""
    policy_only: bool = False
    """Of no use to people; only an administrator has a reason to lay it down."""
    applies: SettingApplies = "now"
    pending: bool = False
    """The running agent goes by another value until its next start."""


class SectionView(msgspec.Struct, frozen=True):
    """A place of settings."""

    name: str
    title: str


class SettingsView(msgspec.Struct, frozen=True):
    """Every setting of this PC, in the order in which they are shown."""

    sections: tuple[SectionView, ...]
    settings: tuple[SettingView, ...]


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


class Licence(msgspec.Struct, frozen=True):
    """Under which terms a model may be used."""

    id: str
    """As the model's author writes it, ``Apache-2.0`` for example; empty if nobody says."""
    url: str = ""
    """Where its text is; empty if that is not known."""
    accept: bool = False
    """Its terms restrict use: somebody has to agree before a model of the catalogue is fetched."""


class LibraryModel(msgspec.Struct, frozen=True):
    """An imported model. Whether it is served: the chains of :class:`FleetView`."""

    id: str
    title: str
    licence: Licence
    bytes: int
    layers: int
    context: int
    """Tokens of prompt and answer together."""
    architecture: str
    quantisation: str
    """``GGUF Q8_0`` or the type of most weights; empty if not known."""
    source: str
    """Where it came from, in words."""
    chat: bool
    """Whether it has a chat template."""


class CatalogModel(msgspec.Struct, frozen=True):
    """A model known by name."""

    id: str
    title: str
    licence: Licence
    bytes: int
    """Of the file to be fetched."""
    in_library: bool
    default: bool
    """The small one to begin with."""
    fetched: int = 0
    """Bytes that an interrupted download has left, to go on from."""


class JobError(msgspec.Struct, frozen=True):
    """A FleetError, by ``errors.from_code`` one again."""

    code: str
    message: str
    remedy: str = ""


class ModelJob(msgspec.Struct, frozen=True):
    """Work on one model that goes on, or the last one's outcome."""

    job: str
    kind: Literal["get", "import", "verify"]
    model: str
    """Its id in the library."""
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    phase: ModelPhase = "starting"
    done: int = 0
    total: int = 0
    """0 while nobody knows."""
    unit: Unit = "bytes"
    seconds_left: float | None = None
    """Of this phase, if that can be told."""
    message: str = ""
    error: JobError | None = None
    asked: str = ""
    """What was asked for: name or address, or the path that is imported."""


class ModelsView(msgspec.Struct, frozen=True):
    """The models of this PC (``GET /local/v1/models``)."""

    library: tuple[LibraryModel, ...]
    catalog: tuple[CatalogModel, ...]
    jobs: tuple[ModelJob, ...] = ()
    """Oldest first; of those that have ended the last for each model."""
    folder: str = ""
    """Of the library."""
