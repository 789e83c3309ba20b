"""Ids, and small frozen values of the engine and the wire. No I/O."""

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
