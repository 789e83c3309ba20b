"""Has this PC's runners time their layers while they are idle, remembers it, tells the hub.

Also asks them what they saw of their links. A runner refuses while it answers somebody, and stops
as soon as anything arrives; here it is only decided when to ask.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from fleetapp.agent.held import LinkedStage
from fleetapp.agent.swarm import ChunkSource
from fleetapp.engine import pipe
from fleetapp.errors import FleetError
from fleetapp.fleet.control import HopMeasurement, ProfileReport, StageProfile
from fleetapp.platform.files import write_atomic
from fleetapp.wire.meter import Estimate, Meter

log = logging.getLogger("fleetapp.agent.profiling")

LOOK_SECONDS: Final = 20.0
"""Between two looks at what is loaded; the first comes after the first of these."""
_JITTER: Final = 0.25
"""Of it, either way: stages that share a machine must not be timed at the same moments for ever."""
FRESH_SECONDS: Final = 86400.0
"""A measurement older than this is made again when there is time."""
TIMES: Final = 3
"""A shard is measured this often, at as many looks: one bad moment must not say what a PC can do,
and layers are dealt anew by it.
"""
KEPT: Final = 200
_WINDOW_BYTES: Final = 1 << 20
_WINDOW_SECONDS: Final = 1.0
_MOVED: Final = 0.2
"""A link is reported again when it differs by more than this."""


class Remembered(msgspec.Struct, frozen=True):
    """A measurement and when it was made, Unix seconds."""

    profile: StageProfile
    at: float


class ProfileFile:
    """Measurements on disk. One that cannot be read counts as none: they can be made again.

    Args:
        path: of the file; its folder exists.
        wall: Unix seconds.
    """

    def __init__(self, path: Path, wall: Callable[[], float] = time.time) -> None:
        self._path = path
        self._wall = wall
        try:
            self._kept = msgspec.json.decode(path.read_bytes(), type=list[Remembered])
        except FileNotFoundError:
            self._kept = []
        except (OSError, msgspec.MsgspecError) as exc:
            log.warning("measurements in %s are lost: %s", path, exc)
            self._kept = []

    def due(self, stage: LinkedStage) -> bool:
        """Whether this shard should be measured (again), here and with this runtime."""
        now = self._wall()
        fresh = sum(
            _same(kept.profile, stage)
            and kept.profile.runtime == stage.runtime
            and 0 <= now - kept.at < FRESH_SECONDS
            for kept in self._kept
        )
        return fresh < TIMES

    def add(self, profile: StageProfile) -> None:
        """Remember a measurement made now; the last few of a shard are kept.

        Raises:
            StorageError: the disk does not take it.
        """
        key = _key(profile)
        same = [r for r in self._kept if _key(r.profile) == key]
        old = same[: 1 - TIMES]
        kept = [r for r in self._kept if r not in old]
        self._kept = [*kept, Remembered(profile, self._wall())][-KEPT:]
        write_atomic(self._path, msgspec.json.encode(self._kept))

    def all(self) -> tuple[StageProfile, ...]:
        """Everything, with its age; what a changed clock has put into the future is left out."""
        now = self._wall()
        return tuple(structs.replace(r.profile, age=now - r.at) for r in self._kept if r.at <= now)


class MeteredSource:
    """A source of chunks whose rate is noted: of all chunks that come at once together.

    A lower bound of the link's, as the disk has a say in it.

    Args:
        source: where the chunks come from.
        meter: told of at least a mebibyte, or a second, at a time.
        peer: device id of whoever sends them; empty while it is not known.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        source: ChunkSource,
        meter: Meter,
        peer: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._meter, self._peer, self._clock = source, meter, peer, clock
        self._active = 0
        self._bytes = 0
        self._since = 0.0

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        """See ``ChunkSource``."""
        if not self._active:
            self._begin()
        self._active += 1
        try:
            async for piece in self._source.read(sha256, offset):
                if not self._bytes:
                    self._begin()  # the wait for the first byte is no transfer
                self._bytes += len(piece)
                if self._clock() - self._since >= _WINDOW_SECONDS:
                    self._note()
                yield piece
        finally:
            self._active -= 1
            if not self._active:
                self._note()

    def _begin(self) -> None:
        self._bytes, self._since = 0, self._clock()

    def _note(self) -> None:
        took = self._clock() - self._since
        enough = self._bytes >= _WINDOW_BYTES or took >= _WINDOW_SECONDS
        if enough and (peer := self._peer()):
            self._meter.transfer(peer, self._bytes, took)
        self._begin()


class Measuring:
    """One task for the whole of a membership.

    Args:
        remembered: what was measured before.
        stages: what is loaded and linked now.
        downloads: what fetching shards has shown of links.
        send: to the hub; may raise FleetError or OSError when it is gone.
        allowed: whether measuring may begin: not when this PC's user needs it.
        pause: seconds between two looks.
    """

    def __init__(
        self,
        remembered: ProfileFile,
        stages: Callable[[], Sequence[LinkedStage]],
        downloads: Callable[[], Sequence[Estimate]],
        send: Callable[[ProfileReport], Awaitable[None]],
        allowed: Callable[[], bool],
        pause: float = LOOK_SECONDS,
    ) -> None:
        self._remembered = remembered
        self._stages = stages
        self._downloads = downloads
        self._send = send
        self._allowed = allowed
        self._pause = pause
        self._untold = True
        self._hops: dict[str, pipe.Hop] = {}

    def greeted(self) -> None:
        """A hub that may know nothing is there: tell it everything at the next look."""
        self._untold = True
        self._hops.clear()

    async def run(self) -> None:
        """Look again and again; for ever."""
        while True:
            share = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
            await asyncio.sleep(share * self._pause)
            try:
                await self.look()
            except (FleetError, OSError) as exc:
                log.info("nothing was measured: %s", exc)

    async def look(self) -> None:
        """Measure what is due, and report what is new.

        Raises:
            FleetError, OSError: a runner or the hub is gone, or the disk is full.
        """
        if not self._allowed():
            return
        if self._untold:
            await self._send(ProfileReport(profiles=self._remembered.all()))
            self._untold = False
        for stage in self._stages():
            if self._allowed() and self._remembered.due(stage):
                await self._measure(stage)
            await self._report_hops((await stage.runner.hops()).hops)
        downloads = self._downloads()
        await self._report_hops([pipe.Hop(e.peer, e.rtt, e.bandwidth) for e in downloads])

    async def _measure(self, stage: LinkedStage) -> None:
        found = await stage.runner.measure(pipe.Measure())
        if not found.complete or not found.decode:
            return  # somebody came; another time
        profile = profile_of(found, stage)
        self._remembered.add(profile)
        await self._send(ProfileReport(profiles=(profile,)))

    async def _report_hops(self, seen: Sequence[pipe.Hop]) -> None:
        news = [hop for hop in seen if self._moved(hop)]
        if not news:
            return
        await self._send(
            ProfileReport(hops=tuple(HopMeasurement(h.device_id, h.rtt, h.bandwidth) for h in news))
        )
        self._hops |= {hop.device_id: hop for hop in news}

    def _moved(self, hop: pipe.Hop) -> bool:
        known = self._hops.get(hop.device_id)
        if known is None:
            return True
        pairs = ((hop.rtt, known.rtt), (hop.bandwidth, known.bandwidth))
        return any(abs(now - before) > _MOVED * before for now, before in pairs)


def profile_of(found: pipe.Measured, stage: LinkedStage) -> StageProfile:
    """What a runner measured, as a member reports it."""

    def pairs(points: tuple[pipe.Point, ...]) -> tuple[tuple[int, float], ...]:
        return tuple((p.size, p.seconds) for p in points)

    return StageProfile(
        model=stage.manifest.model_digest,
        layers=stage.manifest.layers,
        first=stage.manifest.first,
        last=stage.manifest.last,
        device=stage.device,
        runtime=stage.runtime,
        precision=stage.precision,
        decode=pairs(found.decode),
        chosen=pairs(found.chosen),
        prefill=pairs(found.prefill),
    )


def _key(profile: StageProfile) -> tuple[object, ...]:
    return profile.model, profile.layers, profile.device, profile.precision


def _same(profile: StageProfile, stage: LinkedStage) -> bool:
    return _key(profile) == (
        stage.manifest.model_digest,
        stage.manifest.layers,
        stage.device,
        stage.precision,
    )
