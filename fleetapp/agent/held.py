"""What this PC knows of one assignment: its shard, its runner, and how it stands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetapp.agent.supervisor import RunnerProcess
from fleetapp.engine import pipe
from fleetapp.errors import FleetError
from fleetapp.fleet.control import Assign, Held, Neighbour, StageStatus
from fleetapp.models.manifest import StageManifest, digest
from fleetapp.types import AssignmentView, DeviceId, Precision


@dataclass(frozen=True)
class RunnerSetup:
    """What every runner of this PC gets, whatever its shard."""

    device: str
    threads: int
    kv_bytes: int
    cache_dir: Path | None
    listen_host: str
    listen_port: int
    cert_path: Path
    key_path: Path
    authority_path: Path
    fleet: str
    device_id: DeviceId
    name: str
    spill_bytes: int = 0
    """Of idle conversations outside the cache, in memory; ``spill_disk_bytes`` on disk."""
    spill_disk_bytes: int = 0
    max_context: int = 0
    """Tokens a request may have on this PC; 0: what the model and the hub allow."""


@dataclass(frozen=True)
class LinkedStage:
    """A shard whose runner is in a ring."""

    runner: RunnerProcess
    manifest: StageManifest
    precision: Precision
    device: str
    runtime: str


@dataclass
class HeldStage:
    """An assignment of this PC, from its arrival to its release."""

    assign: Assign
    manifest: StageManifest
    status: StageStatus
    task: asyncio.Task[None] | None = None
    runner: RunnerProcess | None = None
    loaded: asyncio.Future[pipe.Loaded] | None = None
    ready: StageStatus | None = None
    """What was reported when it had loaded."""
    link: asyncio.Future[int] | None = None
    neighbours: tuple[Neighbour, ...] = ()
    epoch: int = 0
    port: int = 0
    """Of those that were laid down; 0 if none was."""
    sent_bytes: int = 0
    last_report: float = field(default=0.0)

    @property
    def alive(self) -> RunnerProcess | None:
        """Its runner, unless there is none or it has ended."""
        runner = self.runner
        return None if runner is None or runner.exited.is_set() else runner

    def told(self) -> Held:
        """For a hub that may use it as it is; only of what has loaded."""
        assign = self.assign
        assert self.ready is not None
        return Held(
            assignment=assign.assignment,
            model=assign.model,
            stage=assign.stage,
            stages=assign.stages,
            layers=assign.layers,
            weight_bytes=self.manifest.size,
            device=assign.device,
            head=assign.head,
            precision=assign.precision,
            manifest=digest(assign.manifest.payload),
            lookup=assign.lookup,
            draft=digest(assign.draft.payload) if assign.draft is not None else "",
            status=self.ready,
        )

    def linked(self, device: str) -> LinkedStage | None:
        """For measuring it while it is in a ring; ``device`` if the hub has named none."""
        loaded = self.loaded
        if self.status.phase != "linked" or self.runner is None or loaded is None:
            return None
        if not loaded.done() or loaded.exception():
            return None
        return LinkedStage(
            self.runner,
            self.manifest,
            self.assign.precision,
            self.assign.device or device,
            loaded.result().runtime,
        )

    def view(self, device: DeviceId, node: str) -> AssignmentView:
        """For tray and status."""
        return AssignmentView(
            device_id=device,
            node=node,
            model=self.assign.model,
            stage=self.assign.stage,
            stages=self.assign.stages,
            layers=self.assign.layers,
            phase=self.status.phase,
            done=self.status.done,
            total=self.status.total,
            from_cache=self.status.from_cache,
            message=self.status.message,
        )


def failure(status: StageStatus, error: FleetError) -> StageStatus:
    """The report that an assignment has failed."""
    return StageStatus(
        assignment=status.assignment,
        phase="failed",
        message=error.message,
        code=error.code,
        remedy=error.remedy,
        epoch=status.epoch,
        from_cache=status.from_cache,
    )


def resolve(future: asyncio.Future[Any] | None, value: object) -> None:
    """Give whoever waits a result, unless nobody does or it has one."""
    if future is not None and not future.done():
        future.set_result(value)


def reject(future: asyncio.Future[Any] | None, error: FleetError) -> None:
    """Let whoever waits fail, unless nobody does or it has an outcome."""
    if future is not None and not future.done():
        future.set_exception(error)
