"""PCs that are left out for a while, because what they were asked to do failed there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from fleetapp.errors import NotContributing
from fleetapp.hub.stage import Candidate, Stage
from fleetapp.types import DeviceId

EXCLUDE_SECONDS: Final = 30.0
"""How long a node that failed to load, or twice to link, is left out (s)."""


class Outcasts:
    """Of one model: a PC may be unable to hold this one and serve another."""

    def __init__(self) -> None:
        self._since: dict[DeviceId, float] = {}
        self._unlinked: dict[DeviceId, int] = {}
        """How often in a row a node failed to link although its shard was loaded."""

    def blame(self, stage: Stage) -> None:
        """Leave a node out that cannot load, or repeatedly cannot link; a runner that died after
        loading is no reason, and neither is an owner who came back.
        """
        if stage.status.code == NotContributing.code:
            return
        device = stage.candidate.device_id
        if stage.loaded is not None:
            self._unlinked[device] = self._unlinked.get(device, 0) + 1
            if self._unlinked[device] < 2:
                return
        self.cast_out(device)

    def cast_out(self, device: DeviceId) -> None:
        """Leave a node out, whatever it was."""
        self._since[device] = time.monotonic()

    def linked(self, stages: Sequence[Stage]) -> None:
        """These serve together, so what went wrong before is over."""
        for stage in stages:
            self._unlinked.pop(stage.candidate.device_id, None)

    def among(self, members: Sequence[Candidate]) -> frozenset[DeviceId]:
        """Who failed lately; nobody if that were everybody, for what failed may pass."""
        now = time.monotonic()
        there = {n.device_id for n in members if not n.draining}
        failed = {d for d, at in self._since.items() if now - at <= EXCLUDE_SECONDS}
        return frozenset(failed) if there - failed else frozenset()
