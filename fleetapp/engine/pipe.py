"""What agent and runner say to each other over the runner's stdin and stdout.

Each message is a 4-byte big-endian length and a msgpack body. Closing stdin ends the runner.
No OpenVINO here: the agent imports this module.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fleetapp.types import FinishReason, LayerRange, Precision, SamplingParams, Timings, Usage

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
    deadline: float = 15.0


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn, content already flattened to text."""

    role: str
    content: str


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """Exactly one of ``messages``, ``prompt`` and ``token_ids`` is set."""

    request_id: str
    sampling: SamplingParams
    """``max_tokens == 0`` means as many as fit, at most the head's default."""
    messages: tuple[ChatMessage, ...] | None = None
    prompt: str | None = None
    token_ids: tuple[int, ...] | None = None


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    request_id: str


class QueryStats(msgspec.Struct, frozen=True, tag="query_stats"):
    pass


class Unlink(msgspec.Struct, frozen=True, tag="unlink"):
    """Leave the ring; stay loaded. With a reason, requests end as if the chain had broken."""

    reason: str = ""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """The leaf at the path of Load is a new one: show it on new connections."""


ToRunner = Load | Link | Unlink | Generate | Cancel | QueryStats | Renew


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


class Linked(msgspec.Struct, frozen=True, tag="linked"):
    """Both hops of this stage stand."""

    epoch: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Loading or linking failed; the runner stays alive only if linking did."""

    code: str
    message: str
    remedy: str = ""


class ChainFault(msgspec.Struct, frozen=True, tag="chain_fault"):
    """The ring broke; running requests have been ended by the head already."""

    epoch: int
    code: str
    message: str
    stage: int = -1
    device: str = ""


class Started(msgspec.Struct, frozen=True, tag="started"):
    request_id: str
    prompt_tokens: int


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """Text that is safe to show, and the token ids committed since the last message."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Sent exactly once per Generate, after the last Delta."""

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
    running: int
    """Requests now in the batch (head only)."""
    waiting: int
    """Requests now queued (head only)."""
    compute_seconds: float
    rss: int


FromRunner = (
    Progress | Loaded | Linked | Failed | ChainFault | Started | Delta | Finished | RunnerStats
)
