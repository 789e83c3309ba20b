"""A monitor's surroundings, with clocks moved by hand; and work that only notes what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetapp.contribution.monitor import Monitor, Surroundings
from fleetapp.contribution.snapshot import Decision
from fleetapp.platform.fake import FakePlatform, FakeSensors
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings

NOON = 1_770_000_000.0


async def soon(true: Callable[[], bool], deadline: float = 5.0) -> None:
    """Wait until it is so; it comes from a thread that tells nobody."""
    for _ in range(int(deadline / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not in time")


class Watched:
    """A monitor that is looked at by hand; ``now`` moves both of its clocks."""

    def __init__(self, home: Path, sensors: FakeSensors | None = None, **settings: Any) -> None:
        self.settings = Settings(**{"contribute": True, **settings})
        self.platform = FakePlatform(sensor=sensors or FakeSensors(idle=900.0))
        self.sensors = self.platform.sensor
        self.now = 1000.0
        self.work = 0
        self.told: list[Decision] = []
        self.slept: list[float] = []
        self.sleeping = 0
        self.monitor = Monitor(
            self.platform,
            Paths(home),
            Surroundings(
                settings=lambda: self.settings,
                work=lambda: self.work,
                changed=self.told.append,
                sleeping=self._sleeps,
                woke=self.slept.append,
            ),
            monotonic=lambda: self.now,
            wall=lambda: NOON + self.now,
        )

    def _sleeps(self) -> None:
        self.sleeping += 1

    async def after(self, seconds: float) -> Decision:
        self.now += seconds
        return await self.monitor.look()


class NotedWork:
    """Implements ``fleetapp.agent.guest.Work``."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.shards = 1
        self.hangs = False
        self.news = asyncio.Event()

    def _note(self, what: str) -> None:
        self.done.append(what)
        self.news.set()

    async def until(self, true: Callable[[list[str]], bool], deadline: float = 10.0) -> None:
        async with asyncio.timeout(deadline):
            while not true(self.done):
                self.news.clear()
                await self.news.wait()

    def held(self) -> int:
        return self.shards

    async def leave(self, reason: str) -> None:
        self._note("leave")
        if self.hangs:
            await asyncio.Event().wait()

    async def stop_loading(self, reason: str) -> None:
        self._note("stop_loading")

    async def give_back(self, reason: str) -> None:
        self._note("give_back")
        self.shards = 0

    def tell(self) -> None:
        self._note("tell")

    async def rest(self, reason: str) -> None:
        self._note("rest")

    async def awaken(self) -> None:
        self._note("awaken")
