"""Brings a shard onto this PC: only the chunks it lacks, each trusted only by its hash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetapp.agent.limiter import UNLIMITED, Limiter
from fleetapp.agent.swarm import ChunkSource, Giver, Swarm
from fleetapp.errors import DownloadFailed, FleetError, HashMismatch, StorageError
from fleetapp.models.manifest import Chunk
from fleetapp.models.store import Assembly

log = logging.getLogger("fleetapp.agent.downloads")

DAMAGED_ALLOWED = 3
"""Times that one chunk may arrive damaged before its source is not asked again."""


@dataclass(frozen=True)
class Patience:
    """How long a transfer may stand still and how often it is taken up again. Seconds."""

    stall: float = 20.0
    """Between two pieces of a chunk."""
    attempts: int = 5
    """In a row that bring nothing new; one that does starts the count anew."""
    pause: float = 0.4
    """Before the second attempt; doubled before each further one."""
    longest_pause: float = 3.0


Report = Callable[[int, int], Awaitable[None]]
"""Called with bytes done and bytes total."""


async def fetch_chunk(
    source: ChunkSource, chunk: Chunk, patience: Patience, limiter: Limiter = UNLIMITED
) -> bytes:
    """One chunk, resumed where a stalled or broken transfer ended; its hash is not looked at.

    Raises:
        DownloadFailed: no progress in several attempts.
        StorageError: the source says that its own disk is at fault.
    """
    data = bytearray()
    furthest, fruitless, last = 0, 0, ""
    pause = 0.0
    while fruitless < patience.attempts:
        await asyncio.sleep(pause)
        try:
            await _receive(source, chunk, data, patience.stall, limiter)
            last = f"it ended after {len(data)} of {chunk.size} bytes"
        except TimeoutError:
            last = f"nothing came for {patience.stall:.0f} s"
        except StorageError:
            raise
        except FleetError as exc:
            last = exc.message.rstrip(".")
        except OSError as exc:
            last = str(exc)
        if len(data) == chunk.size:
            return bytes(data)
        if len(data) > chunk.size:
            data.clear()
            last = "the source sent more than the chunk holds"
        fruitless = 0 if len(data) > furthest else fruitless + 1
        furthest = max(furthest, len(data))
        pause = min(patience.pause * 2 ** max(fruitless - 1, 0), patience.longest_pause)
    raise DownloadFailed(
        f"Chunk {chunk.sha256[:12]} could not be fetched: {last}.",
        remedy="Check the connection to the coordinator; what was fetched so far is kept.",
    )


async def _receive(
    source: ChunkSource, chunk: Chunk, data: bytearray, stall: float, limiter: Limiter
) -> None:
    """Append what comes, until the chunk is full or the source ends."""
    stream = source.read(chunk.sha256, len(data))
    try:
        while len(data) < chunk.size:
            try:
                async with asyncio.timeout(stall):
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            data += piece
            await limiter.take(len(piece))
    finally:
        # A generator left to the garbage collector would keep its connection until then.
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def fetch_shard(
    assembly: Assembly,
    source: ChunkSource,
    report: Report,
    patience: Patience | None = None,
    members: Sequence[Giver] = (),
    limiter: Limiter = UNLIMITED,
    liar: Callable[[Giver], None] = lambda _: None,
) -> Path:
    """Fill an assembly and complete it.

    A partial that proves damaged on this disk (power was cut before its bytes were written, say)
    is mended once; after that the disk is to blame.

    Args:
        assembly: knows what is missing; written from a worker thread.
        source: the hub, which gives every chunk by its hash.
        report: progress in bytes, what was here already included.
        patience: with a hub that stalls.
        members: other sources; none of them can make this fail.
        limiter: of what comes in.
        liar: told of a member that sent damaged data.

    Returns:
        The finished stage folder.

    Raises:
        DownloadFailed, HashMismatch, DiskFull: the partial is kept in every case.
    """
    patience = patience or Patience()

    async def patiently(chunk: Chunk) -> bytes:
        return await fetch_chunk(source, chunk, patience, limiter)

    swarm = Swarm(source, members, patiently, patience.stall, limiter, liar)
    await _fetch_missing(assembly, swarm, report)
    log.info("shard %s fetched: %s", assembly.digest[:12], swarm.summary())
    try:
        return await asyncio.to_thread(assembly.finish)
    except HashMismatch as exc:
        log.warning("%s", exc.message)
        await _fetch_missing(assembly, swarm, report)
        return await asyncio.to_thread(assembly.finish)


async def _fetch_missing(assembly: Assembly, swarm: Swarm, report: Report) -> None:
    missing = list(await asyncio.to_thread(assembly.missing))
    await report(assembly.done, assembly.total)
    queue = list(reversed(missing))
    failures: dict[str, int] = {}

    async def worker() -> None:
        while queue:
            chunk = queue.pop()
            data = await swarm.fetch(chunk)
            try:
                await asyncio.to_thread(assembly.write, chunk.sha256, data)
            except HashMismatch:
                failures[chunk.sha256] = failures.get(chunk.sha256, 0) + 1
                log.warning("chunk %s arrived damaged", chunk.sha256[:12])
                if failures[chunk.sha256] >= DAMAGED_ALLOWED:
                    raise
                queue.append(chunk)
                continue
            await report(assembly.done, assembly.total)

    tasks = [asyncio.create_task(worker()) for _ in range(min(swarm.at_once, len(missing)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
