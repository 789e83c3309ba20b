"""A shard arrives whole from whatever kind of peer, or not at all; nothing is fetched twice."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetapp.agent.downloads import DAMAGED_ALLOWED, Patience, fetch_shard
from fleetapp.errors import DiskFull, DownloadFailed, HashMismatch, NotFound, PeerClosed
from fleetapp.models.store import Assembly, ShardStore
from tests.support.shards import (
    CHUNK,
    Peer,
    TestShard,
    breaks_after,
    endless,
    ends_after,
    flipped,
    honest,
    make_shard,
    stalls_after,
    too_much,
    zeros,
)

QUICK = Patience(stall=0.1, attempts=3, pause=0.001, longest_pause=0.002)


@pytest.fixture
def shard(tmp_path: Path) -> TestShard:
    return make_shard(tmp_path / "made")


@pytest.fixture
def store(tmp_path: Path) -> ShardStore:
    return ShardStore(tmp_path / "shards")


@pytest.fixture
def peer(shard: TestShard) -> Peer:
    return Peer(dict(shard.chunks))


def assembly(store: ShardStore, shard: TestShard) -> Assembly:
    return store.assembly(shard.payload, b"signature", "ab" * 32)


class Reports:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.changed = asyncio.Event()

    async def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))
        self.changed.set()

    async def until(self, done: int) -> None:
        async with asyncio.timeout(5):
            while not self.seen or self.seen[-1][0] < done:
                self.changed.clear()
                await self.changed.wait()


async def fetch(store: ShardStore, shard: TestShard, peer: Peer) -> Path:
    async with asyncio.timeout(20):
        return await fetch_shard(assembly(store, shard), peer, Reports(), QUICK)


def is_whole(folder: Path, shard: TestShard, store: ShardStore) -> bool:
    bytes_there = b"".join((folder / f.path).read_bytes() for f in shard.manifest.files)
    return bytes_there == b"".join(shard.chunks.values()) and store.verify(shard.digest) == []


async def test_an_honest_peer_is_asked_once_for_every_chunk(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    reports = Reports()
    folder = await fetch_shard(assembly(store, shard), peer, reports, QUICK)
    assert is_whole(folder, shard, store)
    assert sorted(peer.asked) == sorted((sha, 0) for sha in shard.hashes)
    assert peer.left_open == 0
    done = [d for d, _ in reports.seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert reports.seen[-1] == (shard.manifest.size, shard.manifest.size)
    assert not list((store.root / "partial").iterdir())


async def test_a_shard_that_is_here_already_is_not_fetched(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    await fetch(store, shard, peer)
    peer.asked.clear()
    reports = Reports()
    await fetch_shard(assembly(store, shard), peer, reports, QUICK)
    assert peer.asked == []
    assert reports.seen == [(shard.manifest.size, shard.manifest.size)]


async def test_a_chunk_that_stands_in_two_places_is_fetched_once_and_counted_twice(
    store: ShardStore, tmp_path: Path
) -> None:
    once, other = random.Random(2).randbytes(CHUNK), random.Random(3).randbytes(CHUNK)
    twins = make_shard(tmp_path / "twins", 3, once + once + other)
    peer, reports = Peer(dict(twins.chunks)), Reports()
    await fetch_shard(assembly(store, twins), peer, reports, QUICK)
    assert len(peer.asked) == 3
    done = [d for d, _ in reports.seen]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == twins.manifest.size


@pytest.mark.parametrize("damage", [flipped, zeros], ids=["a flipped bit", "zeros"])
async def test_damage_is_refused_and_the_chunk_fetched_again(
    store: ShardStore, shard: TestShard, peer: Peer, damage: object
) -> None:
    bad = shard.hashes[3]
    peer.will(bad, damage)  # type: ignore[arg-type]
    folder = await fetch(store, shard, peer)
    assert is_whole(folder, shard, store)
    assert [a for a in peer.asked if a[0] == bad] == [(bad, 0), (bad, 0)]
    assert len(peer.asked) == len(shard.hashes) + 1, "nothing else was fetched again"


async def test_a_peer_whose_chunk_is_always_damaged_is_given_up_and_the_rest_kept(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    bad = shard.hashes[-1]
    peer.will(bad, *[flipped] * DAMAGED_ALLOWED)
    with pytest.raises(HashMismatch, match="arrived damaged"):
        await fetch(store, shard, peer)
    assert len([a for a in peer.asked if a[0] == bad]) == DAMAGED_ALLOWED
    assert store.path(shard.digest) is None, "a damaged shard is no shard"
    whole = {sha for sha, _ in peer.asked if sha != bad}
    peer.asked.clear()
    await fetch(store, shard, peer)
    again = [sha for sha, _ in peer.asked]
    assert bad in again
    # On a busy machine others may have been on their way when it was given up.
    assert len(again) < len(whole), "what was good was kept"


@pytest.mark.parametrize(
    "trouble",
    [
        stalls_after(30_001),
        ends_after(30_001),
        breaks_after(30_001, ConnectionResetError("reset")),
        breaks_after(30_001, PeerClosed("The coordinator closed the connection.")),
    ],
    ids=["stall", "early end", "reset", "closed"],
)
async def test_a_transfer_is_taken_up_at_the_byte_where_it_ended(
    store: ShardStore, shard: TestShard, peer: Peer, trouble: object
) -> None:
    slow = shard.hashes[2]
    peer.will(slow, trouble, trouble)  # type: ignore[arg-type]
    folder = await fetch(store, shard, peer)
    assert is_whole(folder, shard, store)
    assert [at for sha, at in peer.asked if sha == slow] == [0, 30_001, 60_002]
    assert peer.left_open == 0, "a stalled stream is closed, not forgotten"


async def test_transfers_that_progress_are_taken_up_for_as_long_as_it_takes(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    slow = shard.hashes[2]
    peer.will(slow, *[ends_after(5_000)] * 20)
    assert is_whole(await fetch(store, shard, peer), shard, store)


async def test_one_that_does_not_progress_ends_with_the_reason(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    silent = shard.hashes[0]
    peer.will(silent, *[stalls_after(0)] * QUICK.attempts)
    with pytest.raises(DownloadFailed, match="nothing came for"):
        await fetch(store, shard, peer)
    assert peer.left_open == 0


async def test_a_chunk_that_nobody_has_is_named(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    gone = shard.hashes[0]
    peer.will(gone, *[breaks_after(0, NotFound("No shard here contains it."))] * QUICK.attempts)
    with pytest.raises(DownloadFailed, match=f"{gone[:12]}.*No shard here"):
        await fetch(store, shard, peer)


@pytest.mark.parametrize("trouble", [too_much, endless])
async def test_a_peer_that_sends_too_much_is_stopped_and_asked_again(
    store: ShardStore, shard: TestShard, peer: Peer, trouble: object
) -> None:
    greedy = shard.hashes[1]
    peer.will(greedy, trouble)  # type: ignore[arg-type]
    folder = await fetch(store, shard, peer)
    assert is_whole(folder, shard, store)
    assert [at for sha, at in peer.asked if sha == greedy] == [0, 0]


async def test_a_peer_that_always_sends_too_much_fails_and_says_so(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    greedy = shard.hashes[1]
    peer.will(greedy, *[too_much] * QUICK.attempts)
    with pytest.raises(DownloadFailed, match="more than the chunk holds"):
        await fetch(store, shard, peer)


async def test_a_peer_that_has_sent_all_but_does_not_end_is_not_waited_for(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    last = shard.hashes[-1]
    peer.will(last, stalls_after(CHUNK))
    patient = Patience(stall=60)
    async with asyncio.timeout(10):
        await fetch_shard(assembly(store, shard), peer, Reports(), patient)


async def test_cancelled_in_the_middle_only_the_rest_is_fetched_next_time(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    closed = asyncio.Event()
    held = set(shard.hashes[5:])
    peer.gate = lambda sha: closed if sha in held else None
    reports = Reports()
    task = asyncio.create_task(fetch_shard(assembly(store, shard), peer, reports, QUICK))
    here = sum(len(shard.chunks[sha]) for sha in shard.hashes[:5])
    await reports.until(here)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert peer.left_open == 0

    peer.gate = lambda _: None
    peer.asked.clear()
    again = Reports()
    folder = await fetch_shard(assembly(store, shard), peer, again, QUICK)
    assert is_whole(folder, shard, store)
    assert {sha for sha, _ in peer.asked} == held
    assert again.seen[0] == (here, shard.manifest.size), "progress goes on where it ended"


async def test_chunks_of_another_plan_are_not_fetched_again(
    store: ShardStore, shard: TestShard, peer: Peer, tmp_path: Path
) -> None:
    await fetch(store, shard, peer)
    wider = make_shard(tmp_path / "wider", chunks=12)
    assert set(shard.hashes) <= set(wider.hashes)
    other, reports = Peer(dict(wider.chunks)), Reports()
    await fetch_shard(assembly(store, wider), other, reports, QUICK)
    assert {sha for sha, _ in other.asked} == set(wider.hashes) - set(shard.hashes)
    assert reports.seen[0][0] == shard.manifest.size


async def test_a_zero_filled_partial_that_claims_to_be_whole_is_mended(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    # As a power cut leaves it: the journal reached the disk, the bytes it speaks of did not.
    unfinished = assembly(store, shard)
    for sha, data in shard.chunks.items():
        unfinished.write(sha, data)
    part = next((store.root / "partial").glob("*/stage.bin.part"))
    with part.open("r+b") as file:
        file.seek(2 * CHUNK)
        file.write(bytes(3 * CHUNK))
    folder = await fetch(store, shard, peer)
    assert is_whole(folder, shard, store)
    lost = [sha for sha in shard.hashes if len(shard.chunks[sha]) == CHUNK][2:5]
    assert sorted(sha for sha, _ in peer.asked) == sorted(lost)


async def test_without_room_nothing_is_fetched(
    tmp_path: Path, shard: TestShard, peer: Peer
) -> None:
    small = ShardStore(tmp_path / "small", free=lambda _: 20 * 2**20 // 2)
    with pytest.raises(DiskFull, match="needs"):
        assembly(small, shard)
    assert peer.asked == []
    assert not list(small.root.rglob("*.part"))


async def test_a_disk_that_is_full_next_time_keeps_the_partial(
    tmp_path: Path, shard: TestShard, peer: Peer
) -> None:
    free = 2**30
    store = ShardStore(tmp_path / "shards", free=lambda _: free)
    gone = shard.hashes[-1]
    peer.will(gone, *[breaks_after(0, OSError(errno.EPIPE, "broken"))] * QUICK.attempts)
    with pytest.raises(DownloadFailed):
        await fetch(store, shard, peer)
    free = 0
    with pytest.raises(DiskFull):
        assembly(store, shard)
    free = 2**30
    peer.asked.clear()
    await fetch(store, shard, peer)
    assert [sha for sha, _ in peer.asked] == [gone]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 20 MiB."""
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a small file system")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


async def test_a_disk_that_fills_up_meanwhile_says_so_and_keeps_the_partial(
    tiny_disk: Path, tmp_path: Path
) -> None:
    shard = make_shard(tmp_path / "big", chunks=40)
    store = ShardStore(tiny_disk / "shards")
    peer = Peer(dict(shard.chunks), piece=CHUNK)
    started = assembly(store, shard)
    # Somebody else writes a large file, and only a part of the shard still fits.
    with (tiny_disk / "video").open("wb") as file:
        file.write(bytes(20 * 2**20 - 20 * CHUNK))
    with pytest.raises(DiskFull, match="full"):
        await fetch_shard(started, peer, Reports(), QUICK)
    kept = started.done
    assert 0 < kept < shard.manifest.size
    (tiny_disk / "video").unlink()
    peer.asked.clear()
    reports = Reports()
    folder = await fetch_shard(assembly(store, shard), peer, reports, QUICK)
    assert is_whole(folder, shard, store)
    assert reports.seen[0][0] == kept
    assert sum(len(shard.chunks[sha]) for sha, _ in peer.asked) == shard.manifest.size - kept


async def test_an_honest_peer_may_send_in_any_pieces(
    store: ShardStore, shard: TestShard, peer: Peer
) -> None:
    peer.will(shard.hashes[0], honest(1))
    peer.piece = 777
    assert is_whole(await fetch(store, shard, peer), shard, store)
