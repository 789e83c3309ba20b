"""Members give chunks to one another over real mutual TLS; nobody else gets any."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fleetapp.agent.downloads import fetch_shard
from fleetapp.agent.limiter import UNLIMITED, Limiter
from fleetapp.agent.pc import Bound
from fleetapp.agent.peers import Peers
from fleetapp.agent.swarm import ChunkSource, Giver
from fleetapp.api import blobs
from fleetapp.api.serve import HttpServers
from fleetapp.errors import (
    BadRequest,
    FleetError,
    NoCapacity,
    NotAMember,
    NotFound,
    PeerClosed,
)
from fleetapp.fleet.control import Neighbour
from fleetapp.fleet.membership import reinstate, revoke, sign_membership
from fleetapp.fleet.trust import TrustList
from fleetapp.models.store import ShardStore
from tests.support.fleet import TestFleet, TestMember
from tests.support.shards import TestShard, make_shard


class PC:
    """A member with a store that it shares."""

    def __init__(self, root: Path, member: TestMember, trust: TrustList) -> None:
        self.member = member
        self.trust = trust
        self.store = ShardStore(root)
        self.read: Callable[[str], bytes] = self.store.read_chunk
        self.willing = True
        self.limiter = UNLIMITED
        self.asked: list[str] = []
        self.peers = Peers(member.enrolment.credentials, trust, lambda: ())
        self.bound: Bound | None = None

    async def __aenter__(self) -> PC:
        def read(sha256: str) -> bytes:
            self.asked.append(sha256)
            return self.read(sha256)

        self.bound = await HttpServers().open_blobs(
            read,
            self.trust,
            self.member.enrolment.credentials,
            lambda: self.willing,
            self.limiter,
            "127.0.0.1",
            0,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.peers.close()
        await self.stop()

    async def stop(self) -> None:
        bound, self.bound = self.bound, None
        if bound is not None:
            await bound.close()

    @property
    def address(self) -> Neighbour:
        assert self.bound is not None
        identity = self.member.identity
        return Neighbour(identity.device_id, identity.spki, ("127.0.0.1",), self.bound.port)

    def adopt(self, made: Path, shard: TestShard) -> None:
        self.store.adopt(made, shard.payload, b"signature", "ab" * 32)

    def source(self, other: PC) -> ChunkSource:
        [giver] = self.peers.givers([other.address])
        return giver.source


class Office:
    """Anna, Ben and Carl; Anna and Ben hold the shard."""

    def __init__(self, root: Path) -> None:
        self.fleet = TestFleet(root)
        members = [self.fleet.enrol(name) for name in ("anna", "ben", "carl")]
        self.trust = TrustList(members[0].enrolment.authority_public)
        self.tell()
        self.pcs = [PC(root / f"{n}-shards", m, self.trust) for n, m in enumerate(members)]
        self.made = root / "made"
        self.shard = make_shard(self.made, 12)
        for pc in self.pcs[:2]:
            pc.adopt(self.made, self.shard)

    def tell(self) -> None:
        self.trust.update(sign_membership(self.fleet.membership, self.fleet.authority))


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    made = Office(tmp_path)
    async with AsyncExitStack() as stack:
        for pc in made.pcs:
            await stack.enter_async_context(pc)
        yield made


class NoHub:
    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        raise PeerClosed("The coordinator is gone.")
        yield b""


async def all_of(source: ChunkSource, sha256: str, offset: int = 0) -> bytes:
    async with asyncio.timeout(10):
        return b"".join([piece async for piece in source.read(sha256, offset)])


async def drain(stream: AsyncIterator[bytes]) -> None:
    async for _ in stream:
        pass


async def fetch(
    pc: PC, shard: TestShard, hub: ChunkSource, givers: list[Giver], limiter: Limiter = UNLIMITED
) -> Path:
    async def report(_done: int, _total: int) -> None: ...

    assembly = pc.store.assembly(shard.payload, b"signature", "ab" * 32)
    async with asyncio.timeout(30):
        return await fetch_shard(
            assembly,
            hub,
            report,
            members=givers,
            limiter=limiter,
            liar=pc.peers.leave_out,
        )


# ------------------------------------------------------------------ three agents' stores


async def test_a_shard_comes_from_two_members_while_the_hub_is_gone(office: Office) -> None:
    anna, ben, carl = office.pcs
    givers = carl.peers.givers([anna.address, ben.address])
    await fetch(carl, office.shard, NoHub(), givers)
    assert carl.store.verify(office.shard.digest) == []
    assert anna.asked
    assert ben.asked
    assert sorted(anna.asked + ben.asked) == sorted(office.shard.hashes), "each chunk once"


async def test_a_member_that_dies_in_the_middle_is_replaced(office: Office) -> None:
    anna, ben, carl = office.pcs

    def dies(sha256: str) -> bytes:
        if len(ben.asked) > 2:
            raise OSError("the disk is gone")
        return ben.store.read_chunk(sha256)

    ben.read = dies
    givers = carl.peers.givers([anna.address, ben.address])
    await fetch(carl, office.shard, NoHub(), givers)
    assert carl.store.verify(office.shard.digest) == []


async def test_a_liar_is_left_out_for_the_next_shard_too(office: Office) -> None:
    anna, ben, carl = office.pcs
    ben.read = lambda sha256: bytes(len(ben.store.read_chunk(sha256)))
    givers = carl.peers.givers([anna.address, ben.address])
    await fetch(carl, office.shard, NoHub(), givers)
    assert carl.store.verify(office.shard.digest) == []
    left = carl.peers.givers([anna.address, ben.address])
    assert [g.device for g in left] == [anna.member.identity.device_id]


async def test_what_is_sent_stays_below_the_cap(office: Office) -> None:
    anna, _, carl = office.pcs
    anna_again = PC(office.made.parent / "0-shards", anna.member, office.trust)
    total = sum(map(len, office.shard.chunks.values()))
    anna_again.limiter = Limiter(lambda: total * 8 / 1e6)  # a second for all of it
    async with anna_again:
        started = time.monotonic()
        await fetch(carl, office.shard, NoHub(), carl.peers.givers([anna_again.address]))
        assert time.monotonic() - started > 0.8
    assert carl.store.verify(office.shard.digest) == []


# ------------------------------------------------------------------ who gets what


async def test_a_chunk_can_be_taken_up_where_it_ended(office: Office) -> None:
    anna, _, carl = office.pcs
    sha = office.shard.hashes[-1]
    whole = office.shard.chunks[sha]
    assert await all_of(carl.source(anna), sha) == whole
    assert await all_of(carl.source(anna), sha, 1000) == whole[1000:]
    with pytest.raises(BadRequest):
        await all_of(carl.source(anna), sha, len(whole))
    with pytest.raises(NotFound):
        await all_of(carl.source(anna), "0" * 64)
    with pytest.raises(NotFound):
        await all_of(carl.source(anna), "..%2f..%2fidentity")


async def test_a_pc_that_does_not_want_to_says_so(office: Office) -> None:
    anna, _, carl = office.pcs
    anna.willing = False
    with pytest.raises(NoCapacity, match="shares nothing"):
        await all_of(carl.source(anna), office.shard.hashes[0])


async def test_only_a_few_are_served_at_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "AT_ONCE", 0)
    anna, _, carl = office.pcs
    with pytest.raises(NoCapacity, match="serves others"):
        await all_of(carl.source(anna), office.shard.hashes[0])


async def test_who_was_shut_out_gets_nothing_and_is_asked_for_nothing(office: Office) -> None:
    anna, _, carl = office.pcs
    source, device = carl.source(anna), carl.member.identity.device_id
    stale = TrustList(anna.member.enrolment.authority_public, office.trust.signed)
    office.fleet.membership = revoke(office.fleet.membership, device)
    office.tell()
    carl.peers._trust = stale  # it does not know yet
    with pytest.raises(NotAMember):
        await all_of(source, office.shard.hashes[0])
    office.fleet.membership = reinstate(office.fleet.membership, device)
    office.fleet.membership = revoke(office.fleet.membership, anna.member.identity.device_id)
    office.tell()
    carl.peers._trust = office.trust
    with pytest.raises(NotAMember):
        await all_of(source, office.shard.hashes[0])
    assert carl.peers.givers([anna.address]) == []


async def test_a_transfer_ends_when_its_receiver_is_shut_out(office: Office) -> None:
    anna, _, carl = office.pcs
    slow = PC(office.made.parent / "0-shards", anna.member, office.trust)
    big = make_shard(office.made.parent / "big", weights=bytes(3 << 20))
    slow.adopt(office.made.parent / "big", big)
    slow.limiter = Limiter(lambda: 20.0)
    sha = max(big.chunks, key=lambda s: len(big.chunks[s]))
    async with slow:
        [giver] = carl.peers.givers([slow.address])
        stream = giver.source.read(sha, 0)
        async with asyncio.timeout(10):
            await anext(stream)
            office.fleet.membership = revoke(
                office.fleet.membership, carl.member.identity.device_id
            )
            office.tell()
            with pytest.raises((FleetError, OSError)):
                await drain(stream)


async def test_somebody_of_another_fleet_gets_and_gives_nothing(
    office: Office, tmp_path: Path
) -> None:
    anna, _, carl = office.pcs
    foreign = TestFleet(tmp_path / "elsewhere").enrol("mallory")
    stranger = Peers(foreign.enrolment.credentials, office.trust, lambda: ())
    try:
        [giver] = stranger.givers([anna.address])
        with pytest.raises((FleetError, OSError)):
            await all_of(giver.source, office.shard.hashes[0])
    finally:
        await stranger.close()
    async with PC(tmp_path / "m", foreign, foreign.enrolment.trust()) as mallory:
        # It claims to be Anna, at its own port.
        claimed = Neighbour(*[getattr(anna.address, f) for f in ("device_id", "spki", "hosts")],
                            mallory.address.port)  # fmt: skip
        [giver] = carl.peers.givers([claimed])
        with pytest.raises((FleetError, OSError)):
            await all_of(giver.source, office.shard.hashes[0])
        assert mallory.asked == []


async def test_a_name_that_does_not_belong_to_its_key_is_not_asked(office: Office) -> None:
    anna, ben, carl = office.pcs
    crossed = Neighbour(anna.address.device_id, ben.address.spki, ("127.0.0.1",), ben.address.port)
    assert carl.peers.givers([crossed]) == []
    assert carl.peers.givers([carl.address]) == [], "nor is this PC itself"


async def test_nobody_at_home_is_a_failure_of_that_source_only(office: Office) -> None:
    anna, _, carl = office.pcs
    source = carl.source(anna)
    await anna.stop()
    with pytest.raises(PeerClosed, match="cannot be reached"):
        await all_of(source, office.shard.hashes[0])


async def test_a_renewed_leaf_is_shown_by_server_and_client(office: Office) -> None:
    anna, _, carl = office.pcs
    for pc in (anna, carl):
        leaf = office.fleet.authority.issue(
            pc.member.identity.csr(), now=dt.datetime.now(dt.UTC) - dt.timedelta(hours=2)
        )
        pc.member.store.save_leaf(leaf)
        pc.peers.renew()
    assert anna.bound is not None
    anna.bound.renew()
    sha = office.shard.hashes[0]
    assert await all_of(carl.source(anna), sha) == office.shard.chunks[sha]
