"""Bringing a shard onto this PC: from the coordinator and other members, or what it made itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from fleetapp.agent.downloads import Report, fetch_shard
from fleetapp.agent.limiter import Limiter
from fleetapp.agent.peers import Peers
from fleetapp.agent.swarm import ChunkSource
from fleetapp.fleet.control import Assign, Signed
from fleetapp.models.manifest import digest
from fleetapp.models.store import ShardStore

Tell = Callable[[int, int, int], Awaitable[None]]
"""Bytes done, bytes in all, and how many of them were there before."""


class ShardFetcher:
    """Fetches the shards of assignments into a store.

    Args:
        store: shards on disk.
        source: where missing chunks come from.
        made_here: the folder of a shard that this very PC made, by manifest digest.
        peers: other members as sources of chunks; none without.
        limiter: of what is fetched.
    """

    def __init__(
        self,
        store: ShardStore,
        source: ChunkSource,
        made_here: Callable[[str], Path | None],
        peers: Peers | None,
        limiter: Limiter,
    ) -> None:
        self._store = store
        self._source = source
        self._made_here = made_here
        self._peers = peers
        self._limiter = limiter

    async def fetch(self, assign: Assign, signed: Signed, size: int, tell: Tell) -> Path:
        """The folder of a verified shard.

        Args:
            assign: names the members that have it, too.
            signed: its manifest, or that of the whole draft model of a head.
            size: bytes of it, told at once where nothing has to be fetched.
            tell: called as it goes.

        Raises:
            FleetError: it cannot be had, or not be kept.
        """
        source = self._made_here(digest(signed.payload))
        if source is not None:
            await tell(size, size, size)
            return await asyncio.to_thread(
                self._store.adopt, source, signed.payload, signed.signature, signed.signer
            )
        assembly = await asyncio.to_thread(
            self._store.assembly, signed.payload, signed.signature, signed.signer
        )
        present: list[int] = []

        async def progress(done: int, total: int) -> None:
            if not present:
                present.append(done)
            await tell(done, total, present[0])

        report: Report = progress
        if self._peers is None:
            return await fetch_shard(assembly, self._source, report, limiter=self._limiter)
        return await fetch_shard(
            assembly,
            self._source,
            report,
            members=self._peers.givers(assign.sources),
            limiter=self._limiter,
            liar=self._peers.leave_out,
        )
