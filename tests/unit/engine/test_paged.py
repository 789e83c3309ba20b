"""One stage that holds the whole sample model: what a frame may ask, and what it gets."""

import numpy as np
import pytest

from fleetapp.engine.executor.device import arithmetic
from fleetapp.engine.executor.paged import load
from fleetapp.errors import (
    ContextTooLong,
    CorruptModel,
    Malformed,
    NoCapacity,
    StaleFrame,
    Unsupported,
)
from fleetapp.wire.frames import Segment
from tests.support.stages import executors, one, shard

pytestmark = pytest.mark.model

A = [504, 3575, 282, 4649, 314, 260, 1528, 28, 30, 198]
B = [28, 1100, 3365, 6456, 17, 351, 4500]


@pytest.fixture(scope="module")
def whole():
    return executors(1)[0]


@pytest.fixture(autouse=True)
def empty(whole):
    whole.reset()
    assert whole.free_blocks == whole.info.blocks


def close(a, b) -> bool:
    return bool(np.allclose(a, b, atol=2e-3, rtol=0) and a.argmax() == b.argmax())


def test_what_a_stage_says_of_itself(whole) -> None:
    info = whole.info
    assert (info.first, info.last, info.layers) == (True, True, 30)
    assert (info.hidden, info.vocab) == (576, 49152)
    assert info.kv_bytes_per_token == 30 * 2 * 3 * 64 * 4
    assert info.capacity_tokens * info.kv_bytes_per_token <= 64 << 20
    assert info.max_context == min(1024, info.capacity_tokens)
    assert "OpenVINO" in info.runtime


def test_logits_come_for_sampled_segments_only_and_in_order(whole) -> None:
    for slot in range(3):
        whole.open(slot, 1)
    alone = [one(whole, ids, slot=slot) for slot, ids in enumerate((A, B))]
    for slot in range(3):
        whole.open(slot, 2)
    frame = (
        Segment(1, 2, 0, len(B), True),
        Segment(2, 2, 0, 4, False),
        Segment(0, 2, 0, len(A), True),
    )
    logits = whole.forward(frame, np.array([*B, *A[:4], *A], np.int64))
    assert logits.shape == (2, whole.info.vocab)
    assert logits.dtype == np.float32
    assert close(logits[0], alone[1][0])
    assert close(logits[1], alone[0][0])


def test_a_frame_that_samples_nothing_works(whole) -> None:
    whole.open(0, 1)
    assert one(whole, A[:6], sample=False).shape == (0, whole.info.vocab)
    rest = one(whole, A[6:], 6)
    whole.open(0, 2)
    assert close(rest[0], one(whole, A, generation=2)[0])


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_prefill_in_chunks_is_prefill(whole, chunk: int) -> None:
    whole.open(0, 1)
    expected = one(whole, A)[0]
    whole.open(0, 2)
    for at in range(0, len(A), chunk):
        got = one(whole, A[at : at + chunk], at, generation=2)
    assert close(got[0], expected)


def test_a_rewind_is_as_if_the_rejected_tokens_had_never_been(whole) -> None:
    whole.open(0, 1)
    one(whole, A)
    expected = one(whole, B, len(A))[0]
    for rejected in (1, 5, 40):  # within a block and over several
        one(whole, [7] * rejected, len(A))
        assert close(one(whole, B, len(A))[0], expected)
    whole.open(0, 2)
    one(whole, [9] * 70, generation=2)
    assert close(one(whole, A, 0, generation=2)[0], (whole.open(1, 1), one(whole, A, slot=1))[1][0])


def test_stale_frames_are_refused_by_name_and_change_nothing(whole) -> None:
    whole.open(0, 5)
    one(whole, A, generation=5)
    free = whole.free_blocks
    for segment, message in (
        (Segment(3, 5, 0, 1, True), "nobody"),
        (Segment(0, 4, 0, 1, True), "generation 5"),
        (Segment(0, 6, 0, 1, True), "generation 5"),
        (Segment(0, 5, len(A) + 1, 1, True), f"holds {len(A)} tokens"),
        (Segment(0, 5, -1, 1, True), f"holds {len(A)} tokens"),
    ):
        with pytest.raises(StaleFrame, match=message):
            whole.forward((segment,), np.array([5], np.int64))
    assert whole.free_blocks == free
    one(whole, B, len(A), generation=5)


def test_a_closed_slot_is_gone_and_a_late_close_harms_nobody(whole) -> None:
    whole.open(0, 1)
    one(whole, A)
    whole.close(0, 1)
    assert whole.free_blocks == whole.info.blocks
    with pytest.raises(StaleFrame):
        one(whole, B, len(A))
    whole.open(0, 2)
    one(whole, A, generation=2)
    whole.close(0, 1)
    whole.close(7, 1)
    one(whole, B, len(A), generation=2)


@pytest.mark.parametrize(
    ("segments", "inputs"),
    [
        ((), []),
        ((Segment(0, 1, 0, 2, True),), [1]),
        ((Segment(0, 1, 0, 1, True),), [1, 2]),
        ((Segment(0, 1, 0, 1, True), Segment(0, 1, 0, 1, True)), [1, 2]),
        ((Segment(0, 1, 0, 1, True),), [-1]),
        ((Segment(0, 1, 0, 1, True),), [49152]),
        ((Segment(0, 1, 0, 1, True),), [[1.0] * 576]),
    ],
)
def test_inputs_that_do_not_fit_are_refused(whole, segments, inputs) -> None:
    whole.open(0, 1)
    with pytest.raises(Malformed):
        whole.forward(segments, np.array(inputs))
    one(whole, A)


def test_the_context_limit_is_exact(whole) -> None:
    whole.open(0, 1)
    limit = whole.info.max_context
    one(whole, [5] * (limit - 1), sample=False)
    one(whole, [6], limit - 1)
    with pytest.raises(ContextTooLong, match=str(limit)):
        one(whole, [7], limit)
    one(whole, [6], limit - 1)


def test_a_full_cache_refuses_the_frame_and_the_others_go_on() -> None:
    small = executors(1, kv_bytes=3 * 32 * 46_080)[0]
    assert small.info.blocks == 3
    assert small.info.max_context == 96
    small.open(0, 1)
    small.open(1, 1)
    one(small, [5] * 60)
    frame = (Segment(0, 1, 60, 1, True), Segment(1, 1, 0, 33, True))
    with pytest.raises(NoCapacity):
        small.forward(frame, np.full(34, 5, np.int64))
    assert small.free_blocks == 1
    first = one(small, [8], 60)
    one(small, [5] * 20, slot=1)
    small.close(1, 1)
    small.open(2, 1)
    small.open(0, 2)
    one(small, [5] * 60, slot=2)
    assert close(one(small, [8], 60, slot=2)[0], first[0])


def test_no_memory_for_a_single_block_is_said_at_once() -> None:
    with pytest.raises(NoCapacity, match="one block"):
        load(shard(0, 30), precision="exact", threads=1, kv_bytes=1000)


def test_a_middle_stage_takes_and_gives_hidden_states() -> None:
    middle = load(shard(14, 16), precision="exact", threads=1, kv_bytes=8 << 20)
    assert not middle.info.first
    assert not middle.info.last
    middle.open(0, 1)
    rows = np.random.default_rng(0).standard_normal((5, 576), dtype=np.float32)
    out = middle.forward((Segment(0, 1, 0, 5, True),), rows).copy()
    assert out.shape == (5, 576)
    assert out.dtype == np.float32
    again = middle.forward((Segment(0, 1, 3, 2, False),), rows[3:]).copy()
    assert np.allclose(again, out[3:], atol=1e-4)
    with pytest.raises(Malformed):
        middle.forward((Segment(0, 1, 0, 5, True),), rows[:, :100])


def test_fast_stays_close_to_exact() -> None:
    fast = executors(1, precision="fast")[0]
    exact = executors(1)[0]
    for executor in (fast, exact):
        executor.open(0, 1)
    a, b = one(fast, A)[0], one(exact, A)[0]
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert cosine > 0.99
    assert fast.info.kv_bytes_per_token < exact.info.kv_bytes_per_token
    if arithmetic("CPU", "fast") == "bf16":
        assert fast.info.kv_bytes_per_token == exact.info.kv_bytes_per_token / 2


@pytest.mark.parametrize("device", ["GPU.7", "TPU", "", "CPUX"])
def test_an_unknown_device_is_named_with_what_there_is(device: str) -> None:
    with pytest.raises(Unsupported, match="CPU"):
        load(shard(14, 16), precision="exact", device=device, kv_bytes=8 << 20)


@pytest.mark.parametrize("damage", ["nothing", "manifest", "xml", "no xml", "no bin"])
def test_a_folder_that_is_not_a_shard_is_refused(tmp_path, damage: str) -> None:
    good = shard(14, 16)
    if damage != "nothing":
        for name in ("stage.json", "stage.xml", "stage.bin"):
            (tmp_path / name).write_bytes((good / name).read_bytes())
    if damage == "manifest":
        (tmp_path / "stage.json").write_text("{}")
    if damage == "xml":
        (tmp_path / "stage.xml").write_text("<net>")
    if damage == "no xml":
        (tmp_path / "stage.xml").unlink()
    if damage == "no bin":
        (tmp_path / "stage.bin").unlink()
    with pytest.raises(CorruptModel):
        load(tmp_path, precision="exact", threads=1, kv_bytes=8 << 20)


def test_progress_says_phase_and_size() -> None:
    seen: list[tuple[str, int, int]] = []
    load(
        shard(14, 16),
        precision="exact",
        threads=1,
        kv_bytes=8 << 20,
        progress=lambda *a: seen.append(a),
    )
    assert [p for p, _, _ in seen] == ["compiling", "loading", "loading"]
    assert seen[-1][1] == seen[-1][2] > 4_000_000
