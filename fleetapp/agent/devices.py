"""What runners on this PC could compute on, found out by a process of its own.

A driver that crashes or hangs while it is asked takes nothing but that process with it; the PC then
has its processor. Keys and values of many sequences lie in pages on CPU and GPU. An NPU cannot page
them: it is shown to people and gets no stage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from fleetapp.engine import probe
from fleetapp.errors import FleetError
from fleetapp.types import DeviceClass

log = logging.getLogger("fleetapp.agent.devices")

CLASSES: Final[tuple[DeviceClass, ...]] = ("CPU", "GPU", "NPU")
FOR_STAGES: Final[tuple[DeviceClass, ...]] = ("GPU", "CPU")
"""Best first."""


class Devices:
    """Looked for once.

    Args:
        wanted: device classes that an admin or the user has laid down; empty: all there are.
        ask: the probe; blocks.
    """

    def __init__(
        self, wanted: Callable[[], str], ask: Callable[[], probe.Probe] = probe.run
    ) -> None:
        self._wanted = wanted
        self._ask = ask
        self._found: frozenset[DeviceClass] | None = None
        self.names: tuple[str, ...] = ()
        """As OpenVINO and their makers call them, for people."""
        self._report: probe.Probe | None = None
        self._asking = asyncio.Lock()

    async def report(self) -> probe.Probe:
        """All that the probe says; it is asked once, or again if it failed.

        Raises:
            FleetError: it hung or died.
        """
        async with self._asking:
            if self._report is None:
                self._report = await asyncio.to_thread(self._ask)
            return self._report

    async def look(self) -> None:
        """Find out; bounded by the probe's own deadline. Never raises."""
        fixed = _classes(self._wanted().split(","))
        if fixed:
            self._found, self.names = fixed, tuple(sorted(fixed))
            return
        try:
            found = await self.report()
        except FleetError as exc:
            log.warning("only the processor is used: %s", exc)
            self._found = frozenset({"CPU"})
            return
        sound = [d for d in found.devices if not d.error]
        self._found = _classes(d.id.split(".")[0] for d in sound) | {"CPU"}
        self.names = tuple(f"{d.id}: {d.name}" if d.name else d.id for d in sound)

    @property
    def shown(self) -> tuple[str, ...]:
        """Their names, and the processor until they are known."""
        return self.names or ("CPU",)

    @property
    def found(self) -> frozenset[DeviceClass]:
        """What is there; the processor until it is known."""
        return frozenset({"CPU"}) if self._found is None else self._found

    def for_stages(self, lent: frozenset[DeviceClass]) -> tuple[DeviceClass, ...]:
        """On what a stage should be computed: the best that is lent. One, because devices of a
        laptop share its memory, and two stages in it would read the weights at each other's cost.
        """
        return next(((d,) for d in FOR_STAGES if d in lent and d in self.found), ())


def _classes(names: Iterable[str]) -> frozenset[DeviceClass]:
    words = {name.strip().upper() for name in names}
    return frozenset(c for c in CLASSES if c in words)
