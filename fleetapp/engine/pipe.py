"""What agent and runner say to each other over the runner's stdin and stdout.

Each message is a 4-byte big-endian length and a msgpack body. Closing stdin ends the runner.
No OpenVINO here: the agent imports this module.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fleetapp.types import FinishReason, LayerRange, Precision, SamplingParams, Timings, Usage
from fleetapp.wire.frames import StageTiming

MAX_MESSAGE = 64 * 1024 * 1024


class Load(msgspec.Struct, frozen=True, tag="load"):
    """First message: load a shard and listen for the data plane."""

    stage_dir: str
    """Folder with stage.json, stage.xml, stage.bin and, for a head, tokenizer/."""
    head: bool
    precision: Precision
    device: str
    threads: int
    """Inference threads; 0 lets OpenVINO choose."""
    kv_bytes: int
    max_context: int
    """0 means the model's own."""
    cache_dir: str
    """Compiled-blob cache; empty switches it off."""
    listen_host: str
    listen_port: int
    cert_path: str
    key_path: str
    authority_path: str
    fleet: str
    device_id: str
    step_deadline: float = 20.0
    """Seconds without an answer to a step after which a head takes its ring for broken."""
    silence: float = 6.0
    """Seconds without a sign of life from a neighbour after which it is taken for gone."""
    hold_seconds: float = 60.0
    """How long a head holds a request for want of a ring before it ends it."""
    spill_bytes: int = 0
    """Memory for kept sequences that the cache has no room for."""
    spill_disk_bytes: int = 0
    """Disk for those that have no room there either; under ``cache_dir``."""
    lookup: bool = False
    """A head guesses from the request's own text."""
    draft_dir: str = ""
    """Stage folder of a whole model with the same vocabulary, which a head guesses with."""
    drafts: int = 0
    """Always draft so many tokens, for measuring; 0 lets the controller choose."""


class PeerAddress(msgspec.Struct, frozen=True):
    """Where and who a neighbour is. ``spki`` is the hex SHA-256 of its public key."""

    device_id: str
    spki: str
    hosts: tuple[str, ...]
    port: int


class Link(msgspec.Struct, frozen=True, tag="link"):
    """Form (or re-form) the ring: a new epoch begins and every slot is dropped."""

    chain: str
    epoch: int
    stage: int
    stages: int
    model: str
    next_layer: int
    """First layer of the next stage; 0 when the next hop is the return to the head."""
    next: PeerAddress | None
    prev: PeerAddress | None
    kv_blocks: int
    """The smallest number of blocks any stage of the chain has (used by the head)."""
    block_size: int
    """The largest block size any stage has (used by the head)."""
    spill_blocks: int = 0
    """The smallest number of blocks that any stage can hold outside its cache (by the head)."""
    deadline: float = 15.0


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn, content already flattened to text."""

    role: str
    content: str


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """Exactly one of ``messages``, ``prompt`` and ``token_ids`` is set.

    While there is no ring it waits for one, unless the head was told to ``Unlink`` for good.
    """

    request_id: str
    sampling: SamplingParams
    """``max_tokens == 0`` means as many as fit, at most the head's default."""
    messages: tuple[ChatMessage, ...] | None = None
    prompt: str | None = None
    token_ids: tuple[int, ...] | None = None
    said: tuple[int, ...] = ()
    """The answer so far, if another head began it: all ids that its Deltas have named. It goes on
    behind them: nothing of them is sent again, and they count in the usage and the budget. With
    the same ``seed`` the whole answer is what one head alone would have given.
    """


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    request_id: str


class QueryStats(msgspec.Struct, frozen=True, tag="query_stats"):
    pass


class QueryTrace(msgspec.Struct, frozen=True, tag="query_trace"):
    """Answered with a Trace, an empty one by a stage that is no head."""


class Unlink(msgspec.Struct, frozen=True, tag="unlink"):
    """Leave the ring; stay loaded. With a reason, requests end as if the chain had broken."""

    reason: str = ""
    hold: bool = False
    """Requests do not end: they go on when the next Link is live, see ``Load.hold_seconds``."""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """The leaf at the path of Load is a new one: show it on new connections."""


class Measure(msgspec.Struct, frozen=True, tag="measure"):
    """Time the loaded layers, if nobody is being answered. Answered with one Measured.

    It ends early, with what it has, as soon as anything else arrives.
    """

    widths: tuple[int, ...] = (1, 2, 4, 8, 16)
    """Sequences in a decode step."""
    pieces: tuple[int, ...] = (32, 128, 256)
    """Positions of a prompt's piece."""
    history: int = 128
    """Positions that each sequence has behind it while it decodes."""
    seconds: float = 1.5
    """About how long it may take."""


class QueryHops(msgspec.Struct, frozen=True, tag="query_hops"):
    """Answered with Hops."""


ToRunner = (
    Load | Link | Unlink | Generate | Cancel | QueryStats | QueryTrace | Renew | Measure | QueryHops
)


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    phase: Literal["verifying", "compiling", "loading"]
    done: int
    total: int
    message: str = ""


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    port: int
    layers: LayerRange
    block_size: int
    blocks: int
    max_context: int
    runtime: str
    seconds: float
    spill_blocks: int = 0
    """Blocks that fit outside the cache."""


class Linked(msgspec.Struct, frozen=True, tag="linked"):
    """Both hops of this stage stand."""

    epoch: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Loading or linking failed; the runner stays alive only if linking did."""

    code: str
    message: str
    remedy: str = ""


class ChainFault(msgspec.Struct, frozen=True, tag="chain_fault"):
    """The ring broke. A head holds its requests until the next Link is live.

    ``stage`` and ``device`` are those that left, fell silent or failed, as far as it is known.
    """

    epoch: int
    code: str
    message: str
    stage: int = -1
    device: str = ""


class Started(msgspec.Struct, frozen=True, tag="started"):
    request_id: str
    prompt_tokens: int


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """A token that might have been chosen; ``text`` is its bytes, which may end in a character."""

    token: int
    logprob: float
    text: bytes


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """A chosen token, and the likeliest ones, best first."""

    token: int
    logprob: float
    text: bytes
    top: tuple[Alternative, ...] = ()
    hidden: bool = False
    """A special token: ``text`` is its name and not part of the answer."""


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """Text that is safe to show, and ids of tokens that it comes from.

    The text of all Deltas so far depends on nothing but the ids they have named, so that another
    head can go on from there (``Generate.said``). Tokens without text yet are named later.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()
    """Of tokens whose text begins up to the end of ``text``, if asked for; the token that ends an
    answer has none.
    """


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Sent exactly once per Generate, after the last Delta.

    ``usage`` counts the whole answer, ``Generate.said`` included.
    """

    request_id: str
    reason: FinishReason
    usage: Usage
    timings: Timings | None = None
    code: str = ""
    message: str = ""
    remedy: str = ""


class RunnerStats(msgspec.Struct, frozen=True, tag="stats"):
    """Counters since the runner started, except where a word says otherwise."""

    open_slots: int
    free_blocks: int
    blocks: int
    frames: int
    tokens: int
    sent_bytes: int
    """Application bytes written to the next hop."""
    received_bytes: int
    kept_blocks: int
    """Held by nothing but ended sequences that others may build on."""
    running: int
    """Requests now in the batch (head only)."""
    waiting: int
    """Requests now queued (head only)."""
    compute_seconds: float
    rss: int
    chain: ChainStats | None = None
    """On a head, once it has been linked."""


class StageTotals(msgspec.Struct, frozen=True):
    """What one stage has spent, in seconds; see ``wire.frames.StageTiming``."""

    wait: float
    compute: float
    host: float


class ChainStats(msgspec.Struct, frozen=True):
    """What a head has counted of its chains since the runner started."""

    steps: int
    sequences: int
    """In those steps, summed over them: over ``steps`` it is the mean batch width."""
    prefill_tokens: int
    decode_tokens: int
    """Positions computed for answers, drafts included."""
    wire_seconds: float
    wait_seconds: float
    """Answers lay at the head."""
    stages: tuple[StageTotals, ...]
    prompt_tokens: int = 0
    """Of finished requests; so are the following."""
    answer_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    failed: int = 0
    cancelled: int = 0
    drafted: tuple[int, ...] = ()
    """Drafts proposed, by position after the last committed token."""
    accepted: tuple[int, ...] = ()


class StepRecord(msgspec.Struct, frozen=True, array_like=True):
    """One step as the head saw it; times in microseconds of the head's monotonic clock."""

    epoch: int
    step: int
    launched: int
    completed: int
    lag: int
    """How long its answer lay at the head before it was taken up."""
    requests: tuple[str, ...]
    counts: tuple[int, ...]
    """Positions computed for each request."""
    stages: tuple[StageTiming, ...]

    @property
    def wire(self) -> int:
        """What neither a stage nor an inbox accounts for."""
        spent = sum(s.wait + s.compute + s.host for s in self.stages)
        return max(0, self.completed - self.launched - self.lag - spent)


class Trace(msgspec.Struct, frozen=True, tag="trace"):
    """The most recent steps of a head, oldest first."""

    steps: tuple[StepRecord, ...]


class TraceView(msgspec.Struct, frozen=True):
    """A Trace as an agent hands it out."""

    model: str
    nodes: tuple[str, ...]
    """Names of the PCs, by stage."""
    steps: tuple[StepRecord, ...]


class Point(msgspec.Struct, frozen=True, array_like=True):
    """Seconds of a step with so many sequences, or positions."""

    size: int
    seconds: float


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """What steps of this stage took, all its layers and what belongs to its place in the chain.

    ``chosen`` is like ``decode``, but every sequence gets its next token: on a last stage the
    output head then works on every row, in ``decode`` on one. Elsewhere the two are the same.
    """

    decode: tuple[Point, ...]
    chosen: tuple[Point, ...]
    prefill: tuple[Point, ...]
    complete: bool
    """False if it was disturbed, or was not begun because somebody was being answered."""
    seconds: float


class Hop(msgspec.Struct, frozen=True):
    """What a runner saw of the link with one neighbour; 0 where it saw nothing."""

    device_id: str
    rtt: float
    """Seconds."""
    bandwidth: float
    """Bytes per second, from there to here."""


class Hops(msgspec.Struct, frozen=True, tag="hops"):
    """Of all neighbours so far."""

    hops: tuple[Hop, ...]


FromRunner = (
    Progress
    | Loaded
    | Linked
    | Failed
    | ChainFault
    | Started
    | Delta
    | Finished
    | RunnerStats
    | Trace
    | Measured
    | Hops
)
