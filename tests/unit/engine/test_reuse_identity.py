"""With the real model under ``exact``: what was computed before, in whatever pieces, is as good.

Every answer is compared, token by token, with the same request alone on one stage.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest

from fleetapp.engine import pipe
from fleetapp.engine.executor.paged import PagedExecutor, load
from fleetapp.engine.executor.spilled import Spilled
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import Prefix, Segment
from tests.support.fake_chain import FakeChain
from tests.support.stages import encode, one, pipeline, shards

pytestmark = pytest.mark.model

SEEDED = SamplingParams(temperature=0.8, top_k=50, top_p=0.95, seed=7)
GREEDY = SamplingParams()
BLOCK_BYTES = 32 * 30 * 2 * 3 * 64 * 4
"""Of all layers of the sample model in f32."""
ANSWER = 128

TALE = (
    "A lighthouse keeper on a small island wrote down the weather every morning. "
    "Rain came from the west, fog from the south, and on clear days he saw the mainland. "
)


@functools.cache
def whole():
    return pipeline(1)


@functools.cache
def cold(ids: tuple[int, ...], count: int, sampling: SamplingParams) -> list[int]:
    """Alone, from the first token, in one piece."""
    return whole().generate(ids, count, sampling, ignore_eos=True).tokens


@functools.cache
def stages(count: int, blocks: int, spill_blocks: int = 0) -> tuple[PagedExecutor, ...]:
    """Stages whose caches hold so many blocks each."""
    return tuple(
        load(
            path,
            precision="exact",
            threads=1,
            kv_bytes=blocks * BLOCK_BYTES // count,
            max_context=1024,
            spilled=Spilled(spill_blocks * BLOCK_BYTES // count),
        )
        for path in shards(count)
    )


def chain_of(count: int, blocks: int, spill_blocks: int = 0) -> FakeChain:
    chain = FakeChain(count, executors=stages(count, blocks, spill_blocks))
    chain.link()
    return chain


def ask(
    chain: FakeChain,
    name: str,
    ids: Sequence[int],
    *,
    count: int = ANSWER,
    sampling: SamplingParams = GREEDY,
    priority: str = "interactive",
) -> None:
    params = SamplingParams(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        seed=sampling.seed,
        max_tokens=count,
        ignore_eos=True,
        priority=priority,  # type: ignore[arg-type]
    )
    chain.head.handle(pipe.Generate(name, params, token_ids=tuple(ids)))


def assert_clean(chain: FakeChain) -> None:
    assert all(end.reason == "length" for end in chain.finished().values())
    for executor in chain.executors:
        assert executor.free_blocks + executor.kept_blocks == executor.info.blocks


SLOW = (pytest.mark.slow, pytest.mark.timeout(900))


@pytest.mark.parametrize(
    ("count", "sampling"),
    [
        pytest.param(3, SEEDED, id="3-seeded"),
        pytest.param(1, SEEDED, marks=SLOW, id="1-seeded"),
        pytest.param(1, GREEDY, marks=SLOW, id="1-greedy"),
        pytest.param(3, GREEDY, marks=SLOW, id="3-greedy"),
    ],
)
def test_warm_equals_cold(count: int, sampling: SamplingParams) -> None:
    """A system prompt, computed in pieces of another size, then two turns of a chat on it."""
    chain = chain_of(count, 60)
    system = encode(TALE * 6)
    first = (*system, *encode("What did he see?"))
    ask(chain, "other", (*system, *encode("Who was he?")), count=20)
    chain.turn("tokenizer")
    assert chain.head._chain is not None
    chain.head._chain.scheduler.pace(48)
    chain.settle()
    ask(chain, "first", first, sampling=sampling)
    chain.settle()
    assert chain.finished()["first"].usage.cached_tokens >= len(system)
    assert chain.ids("first") == cold(first, ANSWER, sampling)
    second = (*first, *chain.ids("first"), *encode(" And what on the next day?"))
    ask(chain, "second", second, sampling=sampling)
    chain.settle()
    assert chain.finished()["second"].usage.cached_tokens >= len(first) + ANSWER - 1
    assert chain.ids("second") == cold(second, ANSWER, sampling)
    assert_clean(chain)


def test_those_who_share_a_prompt_at_once_get_what_each_gets_alone() -> None:
    chain = chain_of(3, 60)
    system = encode(TALE * 5)
    prompts = {f"r{i}": (*system, *encode(f"Day {i}: ")) for i in range(4)}
    for name, ids in prompts.items():
        ask(chain, name, ids, count=40, sampling=SEEDED)
    chain.settle()
    for name, ids in prompts.items():
        assert chain.ids(name) == cold(ids, 40, SEEDED)
    assert sum(e.usage.cached_tokens > 100 for e in chain.finished().values()) == 3
    assert_clean(chain)


@pytest.mark.parametrize(
    ("count", "spill_blocks"),
    [
        pytest.param(3, 16, marks=SLOW),
        pytest.param(1, 0, marks=SLOW),
        (1, 16),
        pytest.param(3, 0, marks=SLOW),
    ],
)
def test_preempted_answers_are_unchanged(count: int, spill_blocks: int) -> None:
    chain = chain_of(count, 16, spill_blocks)
    prompts = {f"r{i}": encode(f"{i} is a number. " * 12) for i in range(4)}
    for name, ids in prompts.items():
        priority = "batch" if name == "r0" else "interactive"
        ask(chain, name, ids, sampling=SEEDED, priority=priority)
    chain.settle()
    assert chain.head._chain is not None
    assert chain.head._chain.scheduler.preemptions > 0
    for name, ids in prompts.items():
        assert chain.ids(name) == cold(tuple(ids), ANSWER, SEEDED)
    assert_clean(chain)


@pytest.mark.parametrize("precision", ["exact", "fast"])
def test_spilled_blocks_come_back_bit_for_bit(tmp_path, precision) -> None:
    """Once from memory, once from disk, into other blocks than they were in."""
    info = load(shards(1)[0], precision=precision, threads=1, kv_bytes=BLOCK_BYTES).info
    block = info.kv_bytes_per_token * info.block_size
    size = 6 * block
    for spilled in (Spilled(size), Spilled(0, size, tmp_path)):
        executor = load(
            shards(1)[0],
            precision=precision,
            threads=1,
            kv_bytes=12 * block,
            max_context=380,
            spilled=spilled,
        )
        ids = encode(TALE * 5)[:150]
        executor.open(0, 1)
        expected = one(executor, ids)
        before = contents(executor, 0, len(ids))
        executor.close(0, 1, keep=1, keep_len=len(ids))
        executor.spill(1)
        assert executor.free_blocks == 12
        assert (spilled.memory_bytes, spilled.disk_bytes) in (
            (5 * block, 0),
            (0, 5 * block),
        )
        executor.open(1, 2)
        one(executor, ids[::-1][:70], slot=1, generation=2)  # takes the blocks that were free
        executor.open(0, 3, Prefix(1, len(ids)))
        assert contents(executor, 0, len(ids)) == before
        again = one(executor, ids[-1:], len(ids) - 1, generation=3)
        if precision == "exact":
            assert np.allclose(again, expected, atol=2e-3)
        executor.drop(1)
        assert (len(spilled), spilled.memory_bytes, spilled.disk_bytes) == (0, 0, 0)
    assert list(tmp_path.iterdir()) == []


def contents(executor: PagedExecutor, slot: int, tokens: int) -> list[bytes]:
    """The bytes of a slot's blocks, all layers."""
    table = executor._slots._slots[slot].table[: -(-tokens // 32)].tolist()
    return [tensor.read(table).tobytes() for tensor in executor._cache._tensors]


@pytest.mark.parametrize("precision", ["exact", "fast"])
def test_a_copied_block_is_the_same_block(precision) -> None:
    """The partly used last block of a shared prefix, when both go on from it."""
    executor = load(
        shards(1)[0], precision=precision, threads=1, kv_bytes=12 * BLOCK_BYTES, max_context=200
    )
    ids = encode(TALE * 3)[:45]
    executor.open(0, 1)
    one(executor, ids)
    executor.keep(0, 1, 9, 45)
    executor.open(1, 2, Prefix(9, 45))
    executor.drop(9)
    mine = one(executor, [100], 45)
    yours = one(executor, [100], 45, slot=1, generation=2)
    assert np.array_equal(mine, yours)
    other = one(executor, [200], 46, slot=1, generation=2)
    assert not np.array_equal(one(executor, [300], 46), other)
    executor.open(2, 3)
    executor.forward((Segment(2, 3, 0, 1, False),), np.array([5], np.int64))
    assert executor.free_blocks == executor.info.blocks - 4
