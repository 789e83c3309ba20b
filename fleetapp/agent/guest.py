"""This PC as a guest of its user: decides when it works for the fleet, and acts on it at once.

The decision is :mod:`fleetapp.contribution`'s. What follows from it is here: rings are left at the
next step boundary, the hub hears of it in the same moment, shards stay loaded for a while in case
the user leaves again, and then their memory is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from fleetapp.agent.devices import Devices
from fleetapp.contribution.caps import disk_for_fleet, memory_for_fleet
from fleetapp.contribution.monitor import Monitor, Surroundings
from fleetapp.contribution.pauses import PauseFile, pause_for
from fleetapp.contribution.snapshot import Decision
from fleetapp.errors import BadRequest, ManagedByPolicy, NotContributing
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.settings import Settings
from fleetapp.types import ContributionView, DeviceClass

log = logging.getLogger("fleetapp.agent.guest")

LEAVE_DEADLINE: Final = 1.0
"""To tell every runner; one that does not listen must not keep the hub from hearing of it (s)."""
DEVICES: Final = ("CPU", "GPU", "NPU")


class Work(Protocol):
    """What this PC does for a fleet, as far as a guest gives it up and takes it up again."""

    def held(self) -> int:
        """Shards held for the fleet."""
        ...

    async def leave(self, reason: str) -> None:
        """Leave every ring at the next step boundary; shards stay loaded."""
        ...

    async def stop_loading(self, reason: str) -> None:
        """Fetch, compile and load nothing more: that computes, too."""
        ...

    async def give_back(self, reason: str) -> None:
        """Free the memory of every shard, and tell the hub."""
        ...

    def tell(self) -> None:
        """Let the hub hear now what has changed."""
        ...

    async def rest(self, reason: str) -> None:
        """Take leave of the hub before sleep."""
        ...

    async def awaken(self) -> None:
        """After sleep: announce, connect and join anew."""
        ...


class Guest:
    """One per agent.

    Args:
        paths: the state folder.
        platform: whose sensors are asked.
        settings: as they are now.
        shown: called after every change that people should see.
        devices: what runners could compute on.
    """

    def __init__(
        self,
        paths: Paths,
        platform: Platform,
        settings: Callable[[], Settings],
        shown: Callable[[], None],
        devices: Devices | None = None,
    ) -> None:
        self.devices = devices or Devices(lambda: "CPU")
        self._paths = paths
        self._platform = platform
        self._settings = settings
        self._shown = shown
        self._file = PauseFile(paths.pause_file, platform)
        self._monitor = Monitor(
            platform,
            paths,
            Surroundings(
                settings,
                self._held,
                self._decided,
                self._sleeps,
                self._woke,
                devices=lambda: self.devices.found,
            ),
        )
        self._work: Work | None = None
        self._news = asyncio.Event()
        self._asleep = self._woken = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Decide for the first time, and go on looking."""
        self._monitor.pause = await asyncio.to_thread(self._file.load, time.time())
        await self._monitor.open()
        self._tasks = [
            asyncio.create_task(self._monitor.run()),
            asyncio.create_task(self._act_on_news()),
            asyncio.create_task(self._look_for_devices()),
        ]

    async def _look_for_devices(self) -> None:
        before = self.lends, self.devices.shown
        await self.devices.look()
        if self._work is not None and (self.lends, self.devices.shown) != before:
            self._work.tell()

    @property
    def lends(self) -> tuple[DeviceClass, ...]:
        """On what stages should be computed here, as things are now."""
        return self.devices.for_stages(self.decision.devices)

    async def stop(self) -> None:
        """Look no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._monitor.close()

    def attach(self, work: Work | None) -> None:
        """From now on this is what the PC does for a fleet."""
        self._work = work

    @property
    def decision(self) -> Decision:
        """What holds now."""
        return self._monitor.decision

    def refusal(self) -> NotContributing | None:
        """Why no work is taken now, or None."""
        if self.decision.contribute:
            return None
        return NotContributing(self.decision.sentence)

    @property
    def temperature(self) -> float | None:
        """Whole degrees Celsius of the hottest part of the processor; None without a sensor."""
        return self._monitor.temperature

    def memory_for_fleet(self) -> int:
        """Bytes that the fleet may still use here."""
        free = self._platform.memory_free()
        return memory_for_fleet(self._settings(), free, self._monitor.own_memory)

    @property
    def memory_held(self) -> int:
        """Bytes that the agent and its runners take, as last seen."""
        return self._monitor.own_memory

    def disk_for_fleet(self, used: int) -> int:
        """Bytes that shards may still take, while they take ``used``."""
        free = self._platform.disk_free(self._paths.home)
        return disk_for_fleet(self._settings(), free, used)

    def view(self) -> ContributionView:
        """For tray and command line."""
        decision, pause, settings = self.decision, self._monitor.pause, self._settings()
        return ContributionView(
            on=decision.contribute,
            reason=decision.reason,
            sentence=decision.sentence,
            until=decision.until,
            paused=pause is not None,
            paused_until=pause.until if pause is not None else None,
            draining=decision.draining,
            devices={d: bool(getattr(settings, f"contribute_{d.lower()}")) for d in DEVICES},
            may_pause=settings.allow_pause,
            contribute_by=_policy(settings, "contribute"),
            pause_by=_policy(settings, "allow_pause"),
        )

    # ------------------------------------------------------------------ what people say

    async def pause(self, length: str, *, finish_first: bool) -> None:
        """Pause at once, or when running answers have ended.

        Raises:
            BadRequest: no such length.
            ManagedByPolicy: an administrator does not let this PC pause.
        """
        settings = self._settings()
        if not settings.allow_pause:
            origin = settings.origin("allow_pause")
            raise ManagedByPolicy(f"Pausing is switched off by {origin.where or 'your settings'}.")
        now = dt.datetime.now().astimezone()
        pause = pause_for(length, now, finish_first=finish_first)
        await asyncio.to_thread(self._file.save, pause)
        self._monitor.pause = pause
        self._monitor.judge()
        self._shown()

    async def resume(self) -> None:
        """End the pause. The other rules go on to hold."""
        await asyncio.to_thread(self._file.save, None)
        if self._monitor.pause is not None:
            self._monitor.pause = None
            await self._monitor.look()
        self._shown()

    async def settings_changed(self) -> None:
        """Look again with the settings as they are now."""
        await self._monitor.look()
        self._shown()

    # ------------------------------------------------------------------ what follows

    def _held(self) -> int:
        return self._work.held() if self._work is not None else 0

    def _decided(self, _decision: Decision) -> None:
        self._news.set()
        self._shown()

    def _sleeps(self) -> None:
        self._asleep = True
        self._news.set()

    def _woke(self, _seconds: float) -> None:
        self._asleep, self._woken = False, True
        self._news.set()

    async def _act_on_news(self) -> None:
        """One thing after the other; what has been decided meanwhile is taken up next."""
        loop = asyncio.get_running_loop()
        lending, give_back_at = self.decision.contribute, None
        while True:
            left = None if give_back_at is None else max(0.0, give_back_at - loop.time())
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                give_back_at = None
                await self._give_back()
                continue
            self._news.clear()
            decision = self.decision
            if decision.contribute:
                give_back_at = None
            elif lending:
                give_back_at = loop.time() + self._settings().release_after
            try:
                await self._act(decision, was_lending=lending)
            except Exception:
                # The next change must find somebody who acts on it.
                log.exception("acting on '%s' failed", decision.reason)
            self._monitor.settled()
            lending = decision.contribute

    async def _give_back(self) -> None:
        if self._work is None or self.decision.contribute:
            return
        try:
            await self._work.give_back(self.decision.sentence)
        except Exception:
            log.exception("giving memory back failed")

    async def _act(self, decision: Decision, *, was_lending: bool) -> None:
        work = self._work
        if work is not None:
            stops = was_lending and not decision.contribute
            if stops:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LEAVE_DEADLINE):
                        await work.leave(decision.sentence)
            if self._woken:
                self._woken = False
                await work.awaken()
            work.tell()
            if stops:
                await work.stop_loading(decision.sentence)
            if self._asleep:
                await work.rest("This PC goes to sleep.")


def _policy(settings: Settings, name: str) -> str:
    """Which policy a setting comes from, in words; empty if it is the user's."""
    origin = settings.origin(name)
    return origin.where if origin.source in ("user policy", "machine policy") else ""


def device_setting(device: str) -> str:
    """Name of the setting behind a device's tick.

    Raises:
        BadRequest: there is no such device class.
    """
    if device not in DEVICES:
        raise BadRequest(f"'{device}' is no device.", remedy=f"Say one of {', '.join(DEVICES)}.")
    return f"contribute_{device.lower()}"
