"""``bench yield``: the user comes back while this PC computes for others.

Two PCs serve one model. On the second a real monitor watches a platform whose sensors are set by
hand, and a real guest acts on what it decides: the runner leaves its ring, and its memory is given
back after the set time. Steps are counted from the moment in which the system says that somebody is
there; how long it takes until it is asked (at most half a second) has its own column.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fleetapp.agent.guest import Guest
from fleetapp.bench import common
from fleetapp.bench.rounds import Prompts
from fleetapp.bench.runners import RunnerRing
from fleetapp.bench.workshop import Workshop, bounds, by_bytes
from fleetapp.engine import pipe
from fleetapp.errors import PeerTimeout, RunnerFailed
from fleetapp.models.library import Library
from fleetapp.platform.fake import FakePlatform, FakeSensors
from fleetapp.platform.paths import Paths
from fleetapp.platform.sensing import Presence
from fleetapp.settings import Settings
from fleetapp.types import Precision

PROMISED: Final = ("steps_after_activity", "memory_released_s")
STEPS_TARGET: Final = 1
MARGIN_SECONDS: Final = 3.0
"""For noticing the user and for the runner's end, on top of the set time."""
ANSWER_TOKENS: Final = 400
BEGUN_TOKENS: Final = 8
_ROUND_SECONDS: Final = 120.0
_YIELDS: Final = 1
"""The stage whose user comes back: the last one."""


@dataclass(frozen=True)
class Effort:
    """How much is measured. ``release_after`` is the setting (s)."""

    rounds: int
    users: tuple[int, ...]
    release_after: int


FULL: Final = Effort(rounds=5, users=(1, 8), release_after=5)
QUICK: Final = Effort(rounds=2, users=(1,), release_after=2)


@dataclass(frozen=True)
class Yielded:
    """One round. Seconds from the user's touch; bytes the runner held when it came."""

    noticed: float
    left: float
    released: float
    steps: int
    """Computed by the yielding runner after the system knew of the user."""
    memory: int


@dataclass
class _Desk(FakeSensors):
    """Sensors that note when they were first asked after somebody had come."""

    noticed: float = 0.0

    def presence(self) -> Presence:
        found = super().presence()
        if found.idle == 0.0 and not self.noticed:
            self.noticed = time.perf_counter()
        return found


@dataclass
class _OneRunner:
    """A guest's work (``agent.guest.Work``): one runner, told as an agent tells it."""

    ring: RunnerRing
    left: float = 0.0
    released: float = 0.0
    frames: int = 0
    memory: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def held(self) -> int:
        return 0 if self.released else 1

    async def leave(self, reason: str) -> None:
        runner = self.ring.runners[_YIELDS]
        await asyncio.to_thread(runner.send, pipe.Unlink(reason, hold=True))
        # Answered in order: by then it has left, and it computes no more.
        stats = await asyncio.to_thread(runner.stats)
        self.left = time.perf_counter()
        self.frames, self.memory = stats.frames, stats.rss

    async def stop_loading(self, reason: str) -> None:
        """It is loaded."""

    async def give_back(self, reason: str) -> None:  # noqa: ARG002 - as the protocol has it
        await asyncio.to_thread(self.ring.runners[_YIELDS].close)
        self.released = time.perf_counter()
        self.over.set()

    def tell(self) -> None:
        """There is no hub."""

    async def rest(self, reason: str) -> None:
        """Nobody sleeps here."""

    async def awaken(self) -> None:
        """Nor wakes up."""


def run(
    library: Library,
    model: str,
    *,
    precision: Precision = "fast",
    device: str = "CPU",
    effort: Effort = FULL,
    progress: common.Progress = lambda _: None,
) -> common.Report:
    """Measure; arguments and errors as ``parity.run``."""
    manifest, _ = library.get(model)
    rows: list[dict[str, Any]] = []
    found: list[Yielded] = []
    with tempfile.TemporaryDirectory(prefix="fleetapp-bench-") as folder:
        root = Path(folder)
        workshop = Workshop(library, model, manifest, root, precision, device)
        prompts = workshop.prompts()
        cut = bounds(2, by_bytes(manifest))
        for users in effort.users:
            these = []
            for number in range(effort.rounds):
                progress(f"{users} users, round {number + 1}")
                home = Paths(root / f"home{users}-{number}")
                # Counters and traces begin anew with the processes.
                with workshop.ring(f"ring{users}-{number}", cut, common.cores_for(2)) as ring:
                    these.append(asyncio.run(one_round(ring, prompts, users, home, effort)))
            rows.append(_row(users, these))
            found += these
    limit = effort.release_after + MARGIN_SECONDS
    checks = (
        at_most("steps_after_activity", max(y.steps for y in found), STEPS_TARGET),
        at_most("memory_released_s", max(y.released for y in found), limit),
    )
    machine = common.machine(cores_used=len(set(common.cores_for(2))))
    return common.Report("yield", machine, tuple(rows), checks)


async def one_round(
    ring: RunnerRing, prompts: Prompts, users: int, home: Paths, effort: Effort
) -> Yielded:
    """Answers begin, somebody comes, the PC yields.

    Raises:
        RunnerFailed: no answer began.
        PeerTimeout: the PC did not yield at all.
    """
    desk, work = _Desk(idle=3600.0), _OneRunner(ring)
    settings = Settings(
        contribute=True, release_after=effort.release_after, memory_reserve_mb=0, disk_reserve_mb=0
    )
    guest = Guest(home, FakePlatform(sensor=desk), lambda: settings, lambda: None)
    guest.attach(work)
    await guest.start()
    try:
        asked = [
            ring.begin(ids, max_tokens=ANSWER_TOKENS, ignore_eos=True)
            for ids in prompts.take(users)
        ]
        await _begun(ring, asked)
        touched = time.perf_counter()
        desk.idle = 0.0
        async with asyncio.timeout(_ROUND_SECONDS):
            await work.over.wait()
    except TimeoutError:
        raise PeerTimeout("The PC did not yield although its user had come back.") from None
    finally:
        await guest.stop()
    return Yielded(
        noticed=desk.noticed - touched,
        left=work.left - touched,
        released=work.released - touched,
        steps=work.frames - await asyncio.to_thread(_ended_before, ring, desk.noticed),
        memory=work.memory,
    )


async def _begun(ring: RunnerRing, asked: list[str]) -> None:
    """Wait until every answer is being written."""
    answers = [ring.head.answers[request_id] for request_id in asked]

    def begun() -> bool | None:
        return all(len(a.ids) >= BEGUN_TOKENS for a in answers) or None

    await asyncio.to_thread(ring.head.wait, begun, _ROUND_SECONDS)
    if any(a.finished is not None for a in answers):
        raise RunnerFailed("An answer ended before the user could come back.")


def _ended_before(ring: RunnerRing, moment: float) -> int:
    """Steps that the yielding stage had done by then; all processes here share one clock."""
    stamps = (record.stages[_YIELDS] for record in ring.head.trace())
    return sum(s.began + s.compute + s.host <= moment * 1e6 for s in stamps)


def at_most(name: str, value: float, limit: float) -> common.Check:
    """A check that holds up to ``limit``; judged before rounding."""
    return common.Check(name, round(value, 3), limit, value <= limit)


def _row(users: int, found: list[Yielded]) -> dict[str, Any]:
    return {
        "users": users,
        "noticed ms": round(statistics.median(y.noticed for y in found) * 1e3),
        "left ms": round(statistics.median(y.left for y in found) * 1e3),
        "steps after": max(y.steps for y in found),
        "released s": round(statistics.median(y.released for y in found), 2),
        "released s highest": round(max(y.released for y in found), 2),
        "runner MB": round(statistics.median(y.memory for y in found) / 1e6),
        "rounds": len(found),
    }
