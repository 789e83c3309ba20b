"""Looks at the sensors, each as often as it is worth, applies the rules, and tells what changed.

The sensors run in one thread of their own. A sensor that hangs holds that thread, not the agent:
what the sensors last told goes on to count until they answer again.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import datetime as dt
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fleetapp.contribution.rules import decide
from fleetapp.contribution.snapshot import Decision, Pause, Snapshot, Standing
from fleetapp.platform.base import Platform
from fleetapp.platform.paths import Paths
from fleetapp.platform.sensing import Sensors
from fleetapp.settings import Settings
from fleetapp.types import DeviceClass

log = logging.getLogger(__name__)

FAST_SECONDS: Final = 0.5
"""Between two looks while this PC contributes: so late at most is the user noticed."""
SLOW_SECONDS: Final = 2.0
SENSOR_DEADLINE: Final = 5.0
"""For all sensors that are due together (s)."""
SUSPEND_DEADLINE: Final = 3.0
"""For what is done before sleep; the system does not wait much longer (s)."""
WOKEN: Final = 1.0
"""A clock that stands still in sleep falls behind by more than this (s)."""
_CPU_LOOKS: Final = 3
"""Others' share of the processor is the mean of so many looks, or a web page would count."""
_EVERY: Final[dict[str, float]] = {
    "presence": 0.0,
    "memory_free": 2.0,
    "full_screen": 2.0,
    "power": 4.0,
    "usage": 4.0,
    "heat": 8.0,
    "metered": 15.0,
    "programs": 10.0,
    "disk_free": 15.0,
}
"""Seconds between two looks at each."""


@dataclass(frozen=True)
class Surroundings:
    """What the monitor asks of the agent.

    Attributes:
        settings: as they are now.
        devices: what runners could compute on.
        work: shards held for the fleet.
        changed: told every new decision, on the event loop.
        sleeping: told before sleep, which waits a moment for ``Monitor.settled``.
        woke: told after sleep, with its seconds.
    """

    settings: Callable[[], Settings]
    work: Callable[[], int]
    changed: Callable[[Decision], None]
    sleeping: Callable[[], None]
    woke: Callable[[float], None]
    devices: Callable[[], frozenset[DeviceClass]] = lambda: frozenset({"CPU"})


@dataclass
class _Readings:
    values: dict[str, Any] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)


class Monitor:
    """One per agent.

    Args:
        platform: whose sensors are asked.
        paths: whose disk counts.
        around: the rest of the agent.
        monotonic, wall: clocks, in seconds.
    """

    def __init__(
        self,
        platform: Platform,
        paths: Paths,
        around: Surroundings,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._platform = platform
        self._paths = paths
        self._around = around
        self._monotonic = monotonic
        self._wall = wall
        self._sensors: Sensors | None = None
        self._readings = _Readings()
        self._broken: set[str] = set()
        self._loads: deque[float] = deque(maxlen=_CPU_LOOKS)
        self._slept = 0.0
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "sensors")
        self._busy: concurrent.futures.Future[dict[str, Any]] | None = None
        self._standing: Standing | None = None
        self._suspending = False
        self._looking = asyncio.Lock()
        self._again = asyncio.Event()
        self._settled = asyncio.Event()
        self.pause: Pause | None = None

    @property
    def decision(self) -> Decision:
        """What holds now; nothing is lent before the first look."""
        if self._standing is None:
            return Decision(False, frozenset(), "not_consented", "This PC does not contribute.")
        return self._standing.decision

    @property
    def temperature(self) -> float | None:
        """Whole degrees Celsius of the hottest part of the processor, as last seen."""
        seen = self._readings.values.get("temperature")
        return None if seen is None else float(round(seen))

    @property
    def own_memory(self) -> int:
        """Bytes that this agent and what it started hold, as last seen."""
        return int(self._readings.values.get("memory_own", 0))

    async def open(self) -> None:
        """Find the sensors and look for the first time."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SENSOR_DEADLINE):
                sensors = await loop.run_in_executor(self._thread, self._platform.sensors)
        except TimeoutError:
            log.warning("this PC's sensors do not answer; it counts as one without any")
        else:
            self._sensors, self._slept = sensors, sensors.slept()
            sensors.watch_sleep(lambda going: self._told_of_sleep(loop, going))
        await self.look()

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            wait = FAST_SECONDS if self.decision.contribute else SLOW_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._again.wait()
            self._again.clear()
            await self.look()

    async def close(self) -> None:
        """Give the sensors back, unless one hangs: that is left to the end of the process."""
        if self._sensors is not None and (self._busy is None or self._busy.done()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SENSOR_DEADLINE):
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self._thread, self._sensors.close)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def look(self) -> Decision:
        """One look now, at what is due; tells if the decision is another one."""
        async with self._looking:
            wanted = self.pause is None or self.decision.contribute
            if self._sensors is not None:
                self._notice_sleep(self._sensors)
                if self._around.settings().contribute and wanted:
                    await self._ask(self._sensors, self._around.settings())
            return self.judge()

    def judge(self) -> Decision:
        """Apply the rules to what is known; tells if the decision is another one."""
        if self.pause is not None and not self.pause.holds(self._wall()):
            self.pause = None
        before = self._standing
        self._standing = decide(self._snapshot(), before)
        decision = self._standing.decision
        if before is None or before.decision != decision:
            log.info("contribution: %s (%s)", decision.reason, decision.sentence)
            self._around.changed(decision)
        return decision

    def look_again(self) -> None:
        """Something has changed that the sensors do not show; do not wait for the next look."""
        self._again.set()

    def settled(self) -> None:
        """What had to be done before sleep has been done."""
        self._settled.set()

    # ------------------------------------------------------------------ sensors

    async def _ask(self, sensors: Sensors, settings: Settings) -> None:
        now = self._monotonic()
        if self._busy is not None and not self._busy.done():
            return  # still hanging
        due = [name for name in _EVERY if now >= self._readings.due.get(name, 0.0)]
        if not settings.exclusive_apps and "programs" in due:
            due.remove("programs")
            self._readings.values["programs"] = frozenset()
        self._busy = self._thread.submit(self._read, sensors, due)
        try:
            async with asyncio.timeout(SENSOR_DEADLINE):
                found = await asyncio.wrap_future(self._busy)
        except TimeoutError:
            log.warning("sensors do not answer: %s", ", ".join(due))
            return
        for name in due:
            self._readings.due[name] = now + _EVERY[name]
        if (load := found.pop("others_cpu", None)) is not None:
            self._loads.append(load)
            found["others_cpu"] = sum(self._loads) / len(self._loads)
        self._readings.values |= found

    def _read(self, sensors: Sensors, due: list[str]) -> dict[str, Any]:
        """In the sensors' thread."""
        found: dict[str, Any] = {}
        for name in due:
            try:
                found |= self._read_one(sensors, name)
                self._broken.discard(name)
            except Exception:
                # A driver's whim must not end the watch over all the others.
                if name not in self._broken:
                    log.exception(
                        "the sensor %s is broken; what it told last goes on to count", name
                    )
                self._broken.add(name)
        return found

    def _read_one(self, sensors: Sensors, name: str) -> dict[str, Any]:
        """Fields of the snapshot."""
        if name == "presence":
            presence = sensors.presence()
            return {"idle": presence.idle, "locked": presence.locked}
        if name == "power":
            power = sensors.power()
            levels = {"on_ac": power.on_ac, "battery": power.battery}
            return {**levels, "battery_saver": power.saver}
        if name == "usage":
            usage = sensors.usage()
            return {"memory_own": usage.own_memory, "others_cpu": usage.others_cpu}
        if name == "heat":
            heat = sensors.heat()
            return {"temperature": heat.celsius, "throttled": heat.throttled}
        single: dict[str, Callable[[], object]] = {
            "memory_free": self._platform.memory_free,
            "disk_free": lambda: self._platform.disk_free(self._paths.home),
            "full_screen": sensors.full_screen,
            "metered": sensors.metered,
            "programs": sensors.programs,
        }
        return {name: single[name]()}

    def _snapshot(self) -> Snapshot:
        around, wall = self._around, self._wall()
        return Snapshot(
            now=self._monotonic(),
            wall=wall,
            local=dt.datetime.fromtimestamp(wall).astimezone(),
            settings=around.settings(),
            devices=around.devices(),
            pause=self.pause,
            work=around.work(),
            suspending=self._suspending,
            **self._readings.values,
        )

    # ------------------------------------------------------------------ sleep

    def _notice_sleep(self, sensors: Sensors) -> None:
        slept = sensors.slept()
        seconds, self._slept = slept - self._slept, slept
        if seconds > WOKEN:
            self._woken(seconds)

    def _woken(self, seconds: float) -> None:
        log.info("woke up after %.0f s of sleep", seconds)
        self._suspending = False
        self._readings = _Readings()  # the battery, the network, the user: all may be others now
        self._loads.clear()
        self._around.woke(seconds)

    def _told_of_sleep(self, loop: asyncio.AbstractEventLoop, going: bool) -> None:
        """In the sensors' own thread: before sleep, return when everything is done."""

        async def prepare() -> None:
            self._suspending = True
            self._settled.clear()
            self.judge()
            self._around.sleeping()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SUSPEND_DEADLINE):
                    await self._settled.wait()

        async def after() -> None:
            if self._suspending:  # or the clocks have shown it already
                slept = self._sensors.slept() if self._sensors is not None else 0.0
                seconds, self._slept = slept - self._slept, slept
                self._woken(seconds)
            self.look_again()

        with contextlib.suppress(RuntimeError, TimeoutError, concurrent.futures.CancelledError):
            work = asyncio.run_coroutine_threadsafe(prepare() if going else after(), loop)
            work.result(SUSPEND_DEADLINE + 0.5)
