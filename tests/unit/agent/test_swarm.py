"""Several sources at once: the shard arrives whole, whatever any of them but the hub does."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetapp.agent import swarm
from fleetapp.agent.downloads import Patience, fetch_shard
from fleetapp.agent.limiter import BURST, UNLIMITED, Limiter
from fleetapp.agent.swarm import Giver
from fleetapp.errors import DownloadFailed, NoCapacity, NotFound, PeerClosed
from fleetapp.models.store import Assembly, ShardStore
from tests.support.shards import (
    CHUNK,
    Answer,
    Peer,
    TestShard,
    breaks_after,
    ends_after,
    flipped,
    honest,
    make_shard,
    stalls_after,
    too_much,
    zeros,
)

QUICK = Patience(stall=0.1, attempts=2, pause=0.001, longest_pause=0.002)
CHUNKS = 12


@pytest.fixture
def shard(tmp_path: Path) -> TestShard:
    return make_shard(tmp_path / "made", CHUNKS)


@pytest.fixture
def store(tmp_path: Path) -> ShardStore:
    return ShardStore(tmp_path / "shards")


def assembly(store: ShardStore, shard: TestShard) -> Assembly:
    return store.assembly(shard.payload, b"signature", "ab" * 32)


def always(peer: Peer, answer: Answer) -> Peer:
    """Whatever it is asked for, that is how it answers."""
    for sha in peer.chunks:
        peer.will(sha, *[answer] * 50)
    return peer


def fast(shard: TestShard) -> Peer:
    return Peer(dict(shard.chunks))


class Missing:
    """Has none of it."""

    def __init__(self, error: Exception) -> None:
        self.asked = 0
        self._error = error

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        self.asked += 1
        raise self._error
        yield b""


async def fetch(
    store: ShardStore,
    shard: TestShard,
    hub: object,
    *members: object,
    limiter: Limiter = UNLIMITED,
    liars: list[Giver] | None = None,
    patience: Patience = QUICK,
) -> Path:
    async def report(done: int, total: int) -> None:
        assert 0 <= done <= total

    givers = [Giver(f"pc-{n}", m, device=f"pc-{n}") for n, m in enumerate(members)]
    async with asyncio.timeout(20):
        return await fetch_shard(
            assembly(store, shard),
            hub,
            report,
            patience,
            givers,
            limiter,
            (liars if liars is not None else []).append,
        )


def is_whole(folder: Path, shard: TestShard) -> bool:
    there = b"".join((folder / f.path).read_bytes() for f in shard.manifest.files)
    return there == b"".join(shard.chunks.values())


async def test_several_give_at_once(store: ShardStore, shard: TestShard) -> None:
    opened = asyncio.Event()
    sources = [fast(shard) for _ in range(3)]
    for source in sources:
        source.gate = lambda _: opened
    task = asyncio.create_task(fetch(store, shard, *sources, patience=Patience(stall=10)))
    async with asyncio.timeout(5):
        # The fakes count and tell nobody.
        while not all(s.left_open for s in sources):  # noqa: ASYNC110
            await asyncio.sleep(0)
    opened.set()
    assert is_whole(await task, shard)
    assert len({sha for s in sources for sha, _ in s.asked}) == CHUNKS + 1
    assert sum(len(s.asked) for s in sources) == CHUNKS + 1, "nothing is fetched twice"
    assert all(s.asked for s in sources), "everybody gave something"


async def test_a_liar_is_asked_for_nothing_more(store: ShardStore, shard: TestShard) -> None:
    hub, liar = fast(shard), always(fast(shard), flipped)
    liars: list[Giver] = []
    assert is_whole(await fetch(store, shard, hub, liar, liars=liars), shard)
    assert [g.device for g in liars][:1] == ["pc-0"]
    assert len(liar.asked) <= swarm.PER_MEMBER, "only what was under way already"
    assert {sha for sha, _ in hub.asked} == set(shard.chunks)


@pytest.mark.parametrize(
    "answer",
    [
        stalls_after(0),
        stalls_after(1000),
        ends_after(1000),
        breaks_after(1000, OSError("reset")),
        breaks_after(0, PeerClosed("gone")),
        too_much,
    ],
    ids=["mute", "stalls", "ends early", "resets", "refuses", "too much"],
)
async def test_one_that_fails_is_left_out_after_twice_and_the_rest_comes_from_others(
    store: ShardStore, shard: TestShard, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm, "REST", 0.0)
    hub, bad, good = fast(shard), always(fast(shard), answer), fast(shard)
    started = time.monotonic()
    assert is_whole(await fetch(store, shard, hub, bad, good), shard)
    assert time.monotonic() - started < 3
    assert len(bad.asked) <= swarm.STRIKES + swarm.PER_MEMBER
    assert bad.left_open == 0


async def test_one_that_dribbles_is_left_out(
    store: ShardStore, shard: TestShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm, "REST", 0.0)

    async def dribble(data: bytes, offset: int) -> AsyncIterator[bytes]:
        for at in range(offset, len(data)):
            await asyncio.sleep(0.02)
            yield data[at : at + 1]

    hub, slow = fast(shard), always(fast(shard), dribble)
    started = time.monotonic()
    assert is_whole(await fetch(store, shard, hub, slow), shard)
    assert time.monotonic() - started < 5, "64 KiB at its pace would take 20 minutes"
    assert len(slow.asked) <= swarm.STRIKES + swarm.PER_MEMBER


async def test_the_hub_is_cut_off_in_the_middle(store: ShardStore, shard: TestShard) -> None:
    class Vanishing:
        """Gives two chunks and a half."""

        def __init__(self) -> None:
            self.honest = fast(shard)
            self.left = 2 * CHUNK + CHUNK // 2

        async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
            async for data in self.honest.read(sha256, offset):
                self.left -= len(data)
                if self.left < 0:
                    raise PeerClosed("The coordinator broke off.")
                yield data

    async def busy(data: bytes, offset: int) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.01)
        yield data[offset:]

    hub, one, other = Vanishing(), always(fast(shard), busy), always(fast(shard), busy)
    assert is_whole(await fetch(store, shard, hub, one, other), shard)
    assert hub.left < 0, "it was asked after it had gone, or this shows nothing"
    assert one.asked
    assert other.asked


@pytest.mark.parametrize("error", [NotFound("none"), NoCapacity("busy"), OSError("down")])
async def test_members_that_have_nothing_harm_nobody(
    store: ShardStore, shard: TestShard, error: Exception
) -> None:
    hub, empty = fast(shard), Missing(error)
    assert is_whole(await fetch(store, shard, hub, empty), shard)
    assert empty.asked


async def test_who_lacks_a_chunk_is_asked_for_the_others(
    store: ShardStore, shard: TestShard
) -> None:
    half = fast(shard)
    lacking = shard.hashes[: CHUNKS // 2]
    for sha in lacking:
        half.will(sha, *[breaks_after(0, NotFound("not here"))] * 9)
    hub = Missing(PeerClosed("gone"))
    with pytest.raises(DownloadFailed, match="gone"):
        await fetch(store, shard, hub, half)
    rest = assembly(store, shard)
    assert rest.done < rest.total
    whole = await fetch(store, shard, fast(shard), half)
    assert is_whole(whole, shard)


async def test_cancelled_in_the_middle_only_the_rest_is_fetched_next_time(
    store: ShardStore, shard: TestShard
) -> None:
    never = asyncio.Event()
    held = shard.hashes[-1]
    sources = [fast(shard) for _ in range(3)]
    for source in sources:
        source.gate = lambda sha: never if sha == held else None
    slow = Patience(stall=60)
    half = assembly(store, shard)

    async def report(done: int, total: int) -> None:
        if done > total // 2:
            task.cancel()

    givers = [Giver(f"pc-{n}", s) for n, s in enumerate(sources[1:])]
    task = asyncio.create_task(fetch_shard(half, sources[0], report, slow, givers))
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert all(s.left_open == 0 for s in sources), "no connection is left behind"
    again = [fast(shard) for _ in range(3)]
    missing = len(assembly(store, shard).missing())
    assert 0 < missing <= CHUNKS // 2
    assert is_whole(await fetch(store, shard, *again), shard)
    assert sum(len(s.asked) for s in again) == missing


async def test_the_cap_is_kept_and_costs_nobody_their_place(
    store: ShardStore, shard: TestShard
) -> None:
    sources = [fast(shard) for _ in range(3)]
    total = sum(map(len, shard.chunks.values()))
    mbit = total * 8 / 1e6 / 0.6  # so that all of it takes 0.6 s, six times the stall of QUICK
    started = time.monotonic()
    folder = await fetch(store, shard, *sources, limiter=Limiter(lambda: mbit))
    assert time.monotonic() - started > 0.6 - 2 * BURST
    assert is_whole(folder, shard)
    assert sum(len(s.asked) for s in sources) == len(shard.chunks), "nobody was given up"


ANSWERS: dict[str, Answer] = {
    "honest": honest(),
    "tiny pieces": honest(700),
    "flipped": flipped,
    "zeros": zeros,
    "too much": too_much,
    "ends": ends_after(100),
    "breaks": breaks_after(100, OSError("reset")),
    "lacks": breaks_after(0, NotFound("no")),
    "stalls": stalls_after(100),
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(sorted(ANSWERS)), max_size=6), max_size=4))
def test_whatever_members_do_the_shard_arrives(behaviours: list[list[str]]) -> None:
    async def run(root: Path) -> None:
        shard = make_shard(root / "made", 4)
        members = []
        for words in behaviours:
            member = fast(shard)
            for sha in shard.hashes:
                member.will(sha, *(ANSWERS[w] for w in words))
            members.append(member)
        patience = Patience(stall=0.02, attempts=2, pause=0.0, longest_pause=0.0)

        async def report(_done: int, _total: int) -> None: ...

        store = ShardStore(root / "shards")
        givers = [Giver(f"pc-{n}", m) for n, m in enumerate(members)]
        async with asyncio.timeout(20):
            folder = await fetch_shard(
                assembly(store, shard), fast(shard), report, patience, givers
            )
        assert is_whole(folder, shard)
        assert all(m.left_open == 0 for m in members)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def test_a_limiter_spreads_what_it_lets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    monkeypatch.setattr("fleetapp.agent.limiter.asyncio.sleep", sleep)
    rate = 8.0
    limiter = Limiter(lambda: rate, clock=lambda: now)
    for _ in range(10):
        await limiter.take(100_000)
    assert now - 100 == pytest.approx(1.0 - BURST)
    now += 50
    await limiter.take(100_000)
    assert waits[-1] == pytest.approx(0.1 - BURST), "a pause saves up a burst and no more"
    rate = 0.0
    waits.clear()
    await limiter.take(1 << 30)
    assert waits == [], "0 is no limit, and a changed setting counts at once"
