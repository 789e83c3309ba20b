import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import Malformed, VersionMismatch
from fleetapp.types import PROTOCOL_VERSION, Grammar, SamplingParams
from fleetapp.wire import codec, frames

names = st.text(max_size=20)
numbers = st.integers(0, 2**31)
hellos = st.builds(
    frames.Hello,
    protocol=numbers,
    app=names,
    runtime=names,
    fleet=names,
    chain=names,
    epoch=numbers,
    from_stage=numbers,
    to_stage=numbers,
    stages=numbers,
    model=names,
    next_layer=numbers,
    precision=names,
)
sampling = st.builds(
    SamplingParams,
    temperature=st.floats(0, 2),
    top_k=numbers,
    seed=st.none() | numbers,
    stop=st.lists(names, max_size=4).map(tuple),
    logit_bias=st.lists(st.tuples(numbers, st.floats(-9, 9)), max_size=2).map(tuple),
    logprobs=st.none() | st.integers(0, 20),
    grammar=st.none() | st.builds(Grammar, kind=st.just("regex"), text=names),
    priority=st.sampled_from(["interactive", "batch"]),
)
timings = st.lists(
    st.builds(frames.StageTiming, began=numbers, wait=numbers, compute=numbers, host=numbers),
    max_size=3,
).map(tuple)
segments = st.builds(
    frames.Segment,
    slot=st.integers(0, 100),
    generation=numbers,
    past_len=numbers,
    count=st.integers(1, 5),
    sample=st.booleans(),
    drafts=st.lists(numbers, max_size=3).map(tuple),
)
steps = st.builds(
    frames.Step,
    epoch=numbers,
    step=numbers,
    segments=st.lists(segments, min_size=1, max_size=8).map(tuple),
    dtype=st.sampled_from(["f32", "f16", "bf16"]),
    hidden=st.integers(1, 64),
    timings=timings,
)
tokens = st.builds(
    frames.Tokens,
    epoch=numbers,
    step=numbers,
    tokens=st.lists(
        st.builds(
            frames.SampledToken,
            slot=numbers,
            generation=numbers,
            position=numbers,
            token=numbers,
            logprob=st.none() | st.floats(-99, 0),
            top=st.lists(st.tuples(numbers, st.floats(-99, 0)), max_size=3).map(tuple),
        ),
        max_size=8,
    ).map(tuple),
    timings=timings,
)
plain = st.one_of(
    hellos,
    st.builds(frames.HelloReply, ok=st.booleans(), protocol=numbers, code=names, reason=names),
    st.builds(
        frames.Open,
        epoch=numbers,
        slot=numbers,
        generation=numbers,
        sampling=sampling,
        prefix=st.none() | st.builds(frames.Prefix, keep=numbers, length=numbers),
        history=st.lists(numbers, max_size=5).map(tuple),
    ),
    st.builds(
        frames.Close,
        epoch=numbers,
        slot=numbers,
        generation=numbers,
        keep=numbers,
        keep_len=numbers,
    ),
    st.builds(
        frames.Keep, epoch=numbers, slot=numbers, generation=numbers, keep=numbers, length=numbers
    ),
    st.builds(frames.Drop, epoch=numbers, keep=numbers),
    st.builds(frames.Spill, epoch=numbers, keep=numbers),
    tokens,
    st.builds(frames.Fault, epoch=numbers, stage=numbers, device=names, code=names, message=names),
    st.builds(frames.Ping, epoch=numbers, stamp=numbers),
)


def joined(frame: frames.Frame, payload: bytes | None = None, **kw: int) -> bytes:
    return b"".join(codec.encode(frame, payload, **kw))


@given(plain)
def test_every_frame_without_payload_comes_back_equal(frame: frames.Frame) -> None:
    back, payload = codec.decode(joined(frame))
    assert back == frame
    assert payload.nbytes == 0


@given(steps, st.randoms(use_true_random=False))
def test_a_step_brings_its_payload_bit_for_bit(step: frames.Step, random) -> None:
    raw = random.randbytes(codec.payload_bytes(step))
    back, payload = codec.decode(joined(step, raw))
    assert back == step
    assert payload == raw


@given(st.binary(max_size=400))
def test_random_bytes_are_refused(garbage: bytes) -> None:
    with pytest.raises((Malformed, VersionMismatch)):
        codec.decode(garbage)


@given(st.binary(max_size=300))
def test_a_random_header_is_refused(garbage: bytes) -> None:
    with pytest.raises(Malformed):
        codec.decode_header(garbage, codec.Prefix(header=len(garbage), payload=0))


@given(plain, st.data())
def test_one_flipped_byte_never_does_worse_than_malformed(frame: frames.Frame, data) -> None:
    message = bytearray(joined(frame))
    at = data.draw(st.integers(0, len(message) - 1))
    message[at] ^= data.draw(st.integers(1, 255))
    try:
        codec.decode(message)
    except (Malformed, VersionMismatch):
        return


@given(plain, st.data())
def test_a_truncated_message_is_refused(frame: frames.Frame, data) -> None:
    message = joined(frame)
    with pytest.raises(Malformed):
        codec.decode(message[: data.draw(st.integers(0, len(message) - 1))])


STEP = frames.Step(1, 1, (frames.Segment(0, 0, 0, 3, True),), "f32", 16)


@pytest.mark.parametrize("size", [0, 3 * 16 * 4 - 1, 3 * 16 * 4 + 1, 3 * 16 * 2])
def test_a_payload_of_another_size_than_the_step_says_is_refused_by_both_sides(size: int) -> None:
    with pytest.raises(Malformed, match="payload"):
        codec.encode(STEP, bytes(size))
    right = joined(STEP, bytes(3 * 16 * 4))
    header = int.from_bytes(right[4:8], "big")
    lie = right[:8] + size.to_bytes(4, "big") + right[12 : 12 + header] + bytes(size)
    with pytest.raises(Malformed, match="payload"):
        codec.decode(lie)


def test_a_frame_without_payload_takes_none() -> None:
    with pytest.raises(Malformed):
        codec.encode(frames.Ping(0, 0), b"x")


@pytest.mark.parametrize(
    "step",
    [
        frames.Step(1, 1, (), "f32", 16),
        frames.Step(1, 1, (frames.Segment(0, 0, 0, 0, True),), "f32", 16),
        frames.Step(1, 1, (frames.Segment(0, 0, -1, 1, True),), "f32", 16),
        frames.Step(
            1, 1, (frames.Segment(0, 0, 0, 4, True), frames.Segment(1, 0, 0, -2, True)), "f32", 16
        ),
        frames.Step(1, 1, (frames.Segment(0, 0, 0, 1, True),), "f32", 0),
    ],
)
def test_segments_that_make_no_sense_are_refused(step: frames.Step) -> None:
    with pytest.raises(Malformed):
        codec.encode(step, b"")


def test_the_payload_is_never_copied() -> None:
    hidden = np.arange(48, dtype=np.float32).reshape(3, 16)
    view = codec.encode(STEP, hidden)[1]
    hidden[2, 15] = 7
    assert np.frombuffer(view, np.float32)[-1] == 7
    message = bytearray(joined(STEP, hidden.tobytes()))
    _, payload = codec.decode(message)
    message[-4:] = np.float32(9).tobytes()
    assert np.frombuffer(payload, np.float32)[-1] == 9


def test_announced_sizes_over_the_limit_are_refused_without_allocating() -> None:
    for header, payload in ((2**32 - 1, 0), (10, 2**32 - 1), (2**20 + 1, 0)):
        prefix = bytes([PROTOCOL_VERSION]) + b"FLT"
        prefix += header.to_bytes(4, "big") + payload.to_bytes(4, "big")
        tracemalloc.start()
        with pytest.raises(Malformed, match="limit"):
            codec.decode_prefix(prefix)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000


def test_a_header_that_announces_a_huge_array_allocates_nothing() -> None:
    liar = b"\x84\xa4type\xa6tokens\xa5epoch\x01\xa4step\x01\xa6tokens\xdd\xff\xff\xff\xff\x01"
    tracemalloc.start()
    with pytest.raises(Malformed):
        codec.decode_header(liar, codec.Prefix(header=len(liar), payload=0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_deeply_nested_unknown_fields_are_refused() -> None:
    liar = b"\x84\xa4type\xa4ping\xa5epoch\x01\xa5stamp\x01\xa1x" + b"\x91" * 500_000
    with pytest.raises(Malformed):
        codec.decode_header(liar, codec.Prefix(header=len(liar), payload=0))


def test_the_limits_are_settable() -> None:
    tight = codec.Limits(header=1 << 20, payload=100)
    with pytest.raises(Malformed, match="limit of 100"):
        codec.encode(STEP, bytes(192), limits=tight)
    with pytest.raises(Malformed, match="limit of 100"):
        codec.decode(joined(STEP, bytes(192)), limits=tight)


@pytest.mark.parametrize("theirs", [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_another_protocol_version_is_refused_naming_both(theirs: int) -> None:
    with pytest.raises(VersionMismatch) as e:
        codec.decode(joined(frames.Ping(1, 1), protocol=theirs))
    assert f"protocol {theirs}" in e.value.message
    assert f"protocol {PROTOCOL_VERSION}" in e.value.message


def test_a_newer_peer_may_add_fields() -> None:
    header = msgspec.msgpack.encode({"type": "ping", "epoch": 1, "stamp": 2, "colour": [1, {}]})
    frame = codec.decode_header(header, codec.Prefix(header=len(header), payload=0))
    assert frame == frames.Ping(1, 2)
