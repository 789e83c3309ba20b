"""Brings a shard onto this PC: only the chunks it lacks, each trusted only by its hash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

from fleetapp.errors import DownloadFailed, FleetError, HashMismatch, StorageError
from fleetapp.models.manifest import Chunk
from fleetapp.models.store import Assembly

log = logging.getLogger("fleetapp.agent.downloads")

PARALLEL = 4
STALL_SECONDS = 20.0
ATTEMPTS = 5


class ChunkSource(Protocol):
    """Where chunks come from; the hub, later any member."""

    def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        """Stream a chunk from ``offset`` on. Raises FleetError or OSError."""
        ...


Report = Callable[[int, int], Awaitable[None]]
"""Called with bytes done and bytes total."""


async def fetch_chunk(source: ChunkSource, chunk: Chunk) -> bytes:
    """One chunk, resumed where a stalled or broken transfer ended.

    Raises:
        DownloadFailed: no progress in several attempts.
    """
    data = bytearray()
    last = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(min(0.2 * 2**attempt, 3.0))
        try:
            stream = source.read(chunk.sha256, len(data)).__aiter__()
            while True:
                try:
                    data += await asyncio.wait_for(anext(stream), STALL_SECONDS)
                except StopAsyncIteration:
                    break
                if len(data) > chunk.size:
                    break
        except TimeoutError:
            last = f"nothing came for {STALL_SECONDS:.0f} s"
        except StorageError:
            raise
        except (FleetError, OSError) as exc:
            last = str(exc)
        if len(data) == chunk.size:
            return bytes(data)
        if len(data) > chunk.size:
            data.clear()
            last = "the source sent more than the chunk holds"
    raise DownloadFailed(
        f"Chunk {chunk.sha256[:12]} could not be fetched: {last}.",
        remedy="Check the connection to the coordinator; what was fetched so far is kept.",
    )


async def fetch_shard(assembly: Assembly, source: ChunkSource, report: Report) -> Path:
    """Fill an assembly and complete it.

    Args:
        assembly: knows what is missing; written from a worker thread.
        source: gives chunks by hash.
        report: progress in bytes, what was here already included.

    Returns:
        The finished stage folder.

    Raises:
        DownloadFailed, HashMismatch, DiskFull: the partial is kept in every case.
    """
    missing = list(await asyncio.to_thread(assembly.missing))
    total = assembly.total
    done = total - sum(c.size for c in missing)
    await report(done, total)
    queue = list(reversed(missing))
    failures: dict[str, int] = {}

    async def worker() -> None:
        nonlocal done
        while queue:
            chunk = queue.pop()
            data = await fetch_chunk(source, chunk)
            try:
                await asyncio.to_thread(assembly.write, chunk.sha256, data)
            except HashMismatch:
                failures[chunk.sha256] = failures.get(chunk.sha256, 0) + 1
                log.warning("chunk %s arrived damaged", chunk.sha256[:12])
                if failures[chunk.sha256] >= 3:
                    raise
                queue.append(chunk)
                continue
            done += chunk.size
            await report(done, total)

    tasks = [asyncio.create_task(worker()) for _ in range(min(PARALLEL, len(missing)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return await asyncio.to_thread(assembly.finish)
