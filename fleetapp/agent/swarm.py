"""Chunks from several members at once, none trusted before its hash, and the hub behind them all.

Each chunk is asked of whoever promises to bring it soonest. Who breaks off, stands still or is far
slower than the others is left out after a second time, who sends something else at once; the chunk
then comes from another. When nobody else has it, the hub is asked with all patience, so that a
member can make a download quicker but never make it fail.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fleetapp.agent.limiter import UNLIMITED, Limiter
from fleetapp.errors import DownloadFailed, FleetError, NoCapacity, NotFound, PeerClosed
from fleetapp.models.manifest import Chunk, digest

log = logging.getLogger("fleetapp.agent.swarm")

PER_MEMBER = 2
"""Chunks asked of one member at once."""
OF_THE_HUB = 4
AT_ONCE = 12
"""Chunks under way altogether; each may lie in memory whole."""
STALL = 5.0
"""A source that sends nothing for so long is given up where there are others (s)."""
SLOWEST = 128 * 1024
"""Bytes a second below which a source is given up, until it is known what is usual."""
PATIENT_FACTOR = 4.0
"""A chunk may take so many times as long as usual before it is asked of another."""
STRIKES = 2
REST = 5.0
"""Seconds for which a source that failed, or had no room, is asked only if there is no other."""
HUB_HANDICAP = 2.0
"""The hub is asked when it promises to be so much quicker than a member: it serves everybody."""
ROUNDS = 3


class ChunkSource(Protocol):
    """Where chunks come from: the hub, or a member."""

    def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        """Stream a chunk from ``offset`` on. Raises FleetError or OSError."""
        ...


@dataclass(eq=False)
class Giver:
    """One source and what is known of it."""

    name: str
    source: ChunkSource
    most: int = PER_MEMBER
    device: str = ""
    """Empty for the hub."""
    busy: int = 0
    strikes: int = 0
    out: bool = False
    rests_until: float = 0.0
    given: int = 0
    """Bytes."""
    lacks: set[str] = field(default_factory=set)
    pace: float = 0.0
    """Seconds a byte, of its last chunks; 0: not known."""


class Swarm:
    """The sources of one shard.

    Args:
        hub: has everything.
        members: may have something; not the hub.
        patiently: fetches a chunk of the hub with all patience; raises DownloadFailed.
        stall: seconds that a source may stand still.
        limiter: of what comes in.
        liar: told of a member that sent what it was not asked for.
    """

    def __init__(
        self,
        hub: ChunkSource,
        members: Sequence[Giver],
        patiently: Callable[[Chunk], Awaitable[bytes]],
        stall: float = STALL,
        limiter: Limiter = UNLIMITED,
        liar: Callable[[Giver], None] = lambda _: None,
    ) -> None:
        self.hub = Giver("the coordinator", hub, OF_THE_HUB)
        self._members = list(members)
        self._patiently = patiently
        self._stall = min(stall, STALL)
        self._limiter = limiter
        self._liar = liar
        self._paces: deque[float] = deque(maxlen=16)
        self._freed = asyncio.Event()

    @property
    def at_once(self) -> int:
        """Chunks worth asking for at the same time."""
        return min(AT_ONCE, OF_THE_HUB + sum(m.most for m in self._members))

    async def fetch(self, chunk: Chunk) -> bytes:
        """One chunk of the right size; what the hub gave has yet to be hashed.

        Raises:
            DownloadFailed: neither the hub nor any member gave it.
            StorageError: the hub says that its own disk is at fault.
        """
        for attempt in range(ROUNDS):
            tried: set[Giver] = set()
            while (giver := await self._free_one(chunk, tried)) is not None:
                tried.add(giver)
                data = await self._ask(giver, chunk)
                if data is not None:
                    return data
            try:
                data = await self._patiently(chunk)
            except DownloadFailed:
                # The hub may be gone while members go on.
                if attempt == ROUNDS - 1 or not self._usable(chunk, {self.hub}):
                    raise
            else:
                self.hub.given += len(data)
                return data
        raise AssertionError("unreachable")  # pragma: no cover

    def summary(self) -> str:
        """Who gave how much, for the log."""
        gave = [g for g in (*self._members, self.hub) if g.given]
        return ", ".join(f"{g.given} bytes from {g.name}" for g in gave) or "nothing"

    def _usable(self, chunk: Chunk, tried: set[Giver]) -> list[Giver]:
        if not self._members:
            return []  # the hub alone is asked with all patience from the beginning
        return [
            g
            for g in (*self._members, self.hub)
            if not g.out and g not in tried and chunk.sha256 not in g.lacks
        ]

    async def _free_one(self, chunk: Chunk, tried: set[Giver]) -> Giver | None:
        """The source that promises the chunk soonest, with a place taken; None if there is none."""
        clock = asyncio.get_running_loop().time
        while usable := self._usable(chunk, tried):
            now = clock()
            rested = [g for g in usable if g.rests_until <= now]
            free = [g for g in rested or usable if g.busy < g.most]
            if free:
                best = min(free, key=self._promise)
                best.busy += 1
                return best
            self._freed.clear()
            await self._freed.wait()
        return None

    def _promise(self, giver: Giver) -> float:
        """In what order sources are asked: by the time a byte takes with what they do already."""
        fastest = min((g.pace for g in (*self._members, self.hub) if g.pace), default=1.0)
        handicap = HUB_HANDICAP if giver is self.hub else 1.0
        return (giver.pace or fastest) * (giver.busy + 1) * handicap

    async def _ask(self, giver: Giver, chunk: Chunk) -> bytes | None:
        """One attempt; a place was taken before and is given back."""
        loop = asyncio.get_running_loop()
        try:
            data, seconds = await self._receive(giver.source, chunk)
            if giver is not self.hub and await asyncio.to_thread(digest, data) != chunk.sha256:
                giver.out = True
                log.warning("%s sent damaged data and is left out", giver.name)
                self._liar(giver)
                return None
        except NotFound:
            giver.lacks.add(chunk.sha256)
            return None
        except NoCapacity:
            giver.rests_until = loop.time() + REST
            return None
        except (FleetError, OSError, TimeoutError) as exc:
            self._strike(giver, exc)
            return None
        finally:
            giver.busy -= 1
            self._freed.set()
        giver.strikes = 0
        giver.given += len(data)
        pace = seconds / max(1, len(data))
        giver.pace = (giver.pace + pace) / 2 if giver.pace else pace
        self._paces.append(pace)
        return data

    def _strike(self, giver: Giver, exc: Exception) -> None:
        giver.strikes += 1
        giver.rests_until = asyncio.get_running_loop().time() + REST * giver.strikes
        log.info("%s gave no chunk: %s", giver.name, exc or type(exc).__name__)
        if giver.strikes >= STRIKES and giver is not self.hub:
            giver.out = True
            log.warning("%s is left out: it failed or was too slow twice", giver.name)

    def _limit(self, size: int) -> float:
        """Seconds that a chunk may take."""
        usual = statistics.median(self._paces) if self._paces else 0.0
        return self._stall + size * (usual * PATIENT_FACTOR if usual else 1 / SLOWEST)

    async def _receive(self, source: ChunkSource, chunk: Chunk) -> tuple[bytes, float]:
        """All of a chunk and the seconds that were spent waiting for the source.

        What our own limit costs does not count against it.
        """
        clock = asyncio.get_running_loop().time
        data, spent, limit = bytearray(), 0.0, self._limit(chunk.size)
        stream = source.read(chunk.sha256, 0)
        try:
            while len(data) < chunk.size:
                began = clock()
                async with asyncio.timeout(min(self._stall, limit - spent)):
                    piece = await anext(stream, b"")
                spent += clock() - began
                if not piece:
                    raise PeerClosed(f"it ended after {len(data)} of {chunk.size} bytes")
                data += piece
                await self._limiter.take(len(piece))
        finally:
            # A generator left to the garbage collector would keep its connection until then.
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        if len(data) > chunk.size:
            raise PeerClosed("it sent more than the chunk holds")
        return bytes(data), spent
