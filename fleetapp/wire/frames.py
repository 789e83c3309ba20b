"""What crosses the data plane, as values (no bytes, no sockets).

The frame is *logical*: which sequence, how long its history is, which new positions follow.
How a stage stores keys and values is its own business. A rewind has no message of its own: a
segment whose ``past_len`` is smaller than what the stage holds says that everything beyond was
rejected (Pipeline Shards, section 5; the paper rewinds by mask, we by length).
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from fleetapp.types import SamplingParams

ActivationType = Literal["f32", "f16", "bf16"]


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message on a data connection, from the sending stage to the receiving one."""

    protocol: int
    app: str
    runtime: str
    fleet: str
    chain: str
    epoch: int
    from_stage: int
    to_stage: int
    stages: int
    model: str
    """Digest of the model manifest: both ends must hold shards of the same model."""
    next_layer: int
    """First layer the receiving stage must hold; 0 for the return hop to the head."""
    precision: str


class HelloReply(msgspec.Struct, frozen=True, tag="hello_reply"):
    """The receiver's answer; ``reason`` names both sides when refused."""

    ok: bool
    protocol: int
    code: str = ""
    reason: str = ""


class Prefix(msgspec.Struct, frozen=True, array_like=True):
    """The first ``length`` positions of the kept sequence ``keep``."""

    keep: int
    length: int


class Open(msgspec.Struct, frozen=True, tag="open"):
    """A sequence takes a slot. ``generation`` tells successive users of one slot apart.

    With a ``prefix`` it begins with positions that are computed already. Their blocks are
    shared until somebody writes into one.
    """

    epoch: int
    slot: int
    generation: int
    sampling: SamplingParams
    prefix: Prefix | None = None
    history: tuple[int, ...] = ()
    """Token ids of all positions so far, sent only where ``sampling.needs_history``: the prompt
    and, of a sequence that is computed again, what it has answered already.
    """
    answered: int = 0
    """How many at the end of ``history`` belong to the answer."""


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The sequence leaves its slot; its blocks are free at once, unless ``keep`` names a number
    under which its first ``keep_len`` positions stay.
    """

    epoch: int
    slot: int
    generation: int
    keep: int = 0
    keep_len: int = 0


class Keep(msgspec.Struct, frozen=True, tag="keep"):
    """The first ``length`` positions of a running sequence also stay under a number."""

    epoch: int
    slot: int
    generation: int
    keep: int
    length: int


class Drop(msgspec.Struct, frozen=True, tag="drop"):
    """A kept sequence is forgotten, wherever its blocks are."""

    epoch: int
    keep: int


class Spill(msgspec.Struct, frozen=True, tag="spill"):
    """A kept sequence moves out of the cache, bit for bit, and its blocks become free."""

    epoch: int
    keep: int


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """New positions ``past_len .. past_len+count-1`` of one slot.

    ``sample`` asks the last stage for a token after the segment's last position (with drafts:
    after the position before each draft, too); the middle chunks of a prefill leave it off.
    """

    slot: int
    generation: int
    past_len: int
    count: int
    sample: bool
    drafts: tuple[int, ...] = ()
    """Guesses among its tokens: the last ``len(drafts)`` inputs of a decode. The last stage
    answers each that it would have chosen itself with that token, then chooses one more.
    """


class StageTiming(msgspec.Struct, frozen=True, array_like=True):
    """What one stage spent on one step, in microseconds.

    ``began`` is when the inference began, by that stage's own monotonic clock: among stages only
    its differences mean anything. ``wait`` is how long the frame lay there before it was taken
    up, ``compute`` the inference, ``host`` everything else until the next frame was ready to be
    sent (checks, sampling, narrowing).
    """

    began: int
    wait: int
    compute: int
    host: int


class Step(msgspec.Struct, frozen=True, tag="step"):
    """One frame of the running batch; its payload is the hidden states, [tokens, hidden]."""

    epoch: int
    step: int
    segments: tuple[Segment, ...]
    dtype: ActivationType
    hidden: int
    timings: tuple[StageTiming, ...] = ()
    """Of the stages it has passed, in order."""

    @property
    def tokens(self) -> int:
        """Rows of the payload."""
        return sum(s.count for s in self.segments)


class SampledToken(msgspec.Struct, frozen=True, array_like=True):
    """The token chosen for ``position`` (the index it will have in its sequence)."""

    slot: int
    generation: int
    position: int
    token: int
    logprob: float | None = None
    """Natural logarithm of its probability, if asked for."""
    top: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens with theirs, best first, as many as asked for."""


class Tokens(msgspec.Struct, frozen=True, tag="tokens"):
    """The last stage's answer to one step, sent straight to the head."""

    epoch: int
    step: int
    tokens: tuple[SampledToken, ...]
    timings: tuple[StageTiming, ...] = ()
    """Of every stage, in order."""


class Fault(msgspec.Struct, frozen=True, tag="fault"):
    """Something broke; travels forward along the ring until it reaches the head."""

    epoch: int
    stage: int
    device: str
    code: str
    message: str
    step: int = -1
    slot: int = -1
    """A slot if only that sequence is hurt, -1 if the chain is."""


class Passed(msgspec.Struct, frozen=True, array_like=True):
    """How far a stage has come: the last step that it has sent on, 0 for none."""

    device: str
    step: int


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """A sign of life, sent to the next stage several times a second, whatever this one computes.

    It goes no further, but says what this stage has heard of those between it and the head.
    """

    epoch: int
    stamp: int
    """The sender's count of them."""
    trail: tuple[Passed, ...] = ()
    """Of the stages behind the head up to the sender, in order."""


Frame = Hello | HelloReply | Open | Close | Keep | Drop | Spill | Step | Tokens | Fault | Ping

Activations = npt.NDArray[np.float32] | npt.NDArray[np.float16] | npt.NDArray[np.uint16]
