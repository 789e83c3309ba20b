"""``bench control``: one coordinator, 500 members, and what that costs.

The coordinator is a real agent in a process of its own. Members live in other processes
(``bench.crowd``): they join with a code, hold real certificates and speak the real protocol, with a
heartbeat a second each. While they come and go, the coordinator's processor time and memory are
read from the operating system, and again and again a member changes its mind about contributing:
the time until the coordinator's status stream shows that is measured.

Beside them one real agent idles as a member, and afterwards another one for which an hour passes in
a minute (``bench.hastened``).
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from fleetapp.bench import common, crowd, hastened
from fleetapp.bench.child import Conversation
from fleetapp.bench.crowd import STEADY, Ask, Job, Said
from fleetapp.bench.loopback import Agent, Usage, Watch
from fleetapp.types import FleetView

HUB_CORES: Final = 0.5
STATUS_DELAY: Final = 1.0
RSS_GROWTH: Final = 10.0
IDLE_CORES: Final = 0.01
IDLE_RSS: Final = 150.0
IDLE_GROWTH: Final = 2.0

_SEEN_DEADLINE: Final = 30.0
_CROWD_DEADLINE: Final = 300.0
_EVERY: Final = 1.0
"""Seconds between two changes of mind that are measured, and between readings of memory."""


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        nodes: simulated members, besides two real agents.
        processes: that they are spread over.
        warmup, seconds: of coming and going, before and while it is measured.
        flap: seconds between two happenings of one member, on average.
        hasten: how much faster time passes for the agent that idles an hour.
        settle, idle: seconds of ours that it does so, before and while it is measured.
    """

    nodes: int
    processes: int
    warmup: float
    seconds: float
    flap: float
    hasten: float
    settle: float
    idle: float


FULL: Final = Effort(500, 4, warmup=20, seconds=100, flap=60, hasten=60, settle=8, idle=60)
QUICK: Final = Effort(100, 2, warmup=2, seconds=10, flap=30, hasten=60, settle=2, idle=5)


def run(*, effort: Effort = FULL, progress: common.Progress = lambda _: None) -> common.Report:
    """Measure.

    Raises:
        RunnerFailed: a process did not do its part.
    """
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetapp-bench-")))
        office = _Office(root, effort, stack)
        rows = [
            office.storm("join", f"{office.nodes} join at once", progress),
            office.storm("drop", f"{office.nodes} reconnect at once", progress),
        ]
        office.ask_all(Ask("flap", effort.flap))
        office.watched(effort.warmup, (), lambda left: progress(f"warming up {left:.0f} s"))
        used, idled = Usage(office.hub.pid), Usage(office.idle.pid)
        office.watch.events = 0
        delays = office.watched(
            effort.seconds, (used, idled), lambda left: progress(f"measuring {left:.0f} s")
        )
        rows.append(
            {
                **_row(f"{office.nodes} members come and go", used),
                "delay p50 s": round(statistics.median(delays), 3),
                "delay p95 s": round(_p95(delays), 3),
                "delay max s": round(max(delays), 3),
                "events": office.watch.events,
                "happenings": sum(sum(s.happened.values()) for s in office.ask_all(Ask("tell"))),
            }
        )
        rows.append(_row("a member idles", idled))
        office.leave()
        hour = office.hastened(progress)
        simulated = hour.seconds * effort.hasten / 60
        rows.append(_row(f"a member idles {simulated:.0f} simulated minutes", hour))
    checks = (
        common.at_most("hub_cores", used.cores, HUB_CORES),
        common.at_most("status_delay_s", _p95(delays), STATUS_DELAY),
        common.at_most("rss_growth_mb", used.growth, RSS_GROWTH),
        common.at_most("idle_agent_cores", idled.cores, IDLE_CORES),
        common.at_most("idle_agent_rss_mb", hour.rss, IDLE_RSS),
        common.at_most("idle_agent_growth_mb", hour.growth, IDLE_GROWTH),
    )
    return common.Report("control", common.machine(cores_used=1), tuple(rows), checks)


def _row(what: str, used: Usage) -> dict[str, Any]:
    return {
        "what": what,
        "seconds": round(used.seconds, 1),
        "cores": round(used.cores, 4),
        "rss MiB": round(used.rss, 1),
        "growth MiB": round(used.growth, 2),
    }


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


def _online(view: FleetView) -> int:
    return sum(node.state == "online" for node in view.nodes)


def _shows(said: Said) -> Callable[[FleetView], bool]:
    wanted = (said.device, said.contribute)
    return lambda view: wanted in {(node.device_id, node.contribute) for node in view.nodes}


class _Office:
    """A coordinator, an idle member, and the crowd."""

    def __init__(self, root: Path, effort: Effort, stack: ExitStack) -> None:
        self._root, self._effort, self._stack = root, effort, stack
        self.hub = stack.enter_context(Agent(root / "coordinator"))
        self.hub.post("fleet/create", name="bench")
        made = self.hub.post("fleet/codes", hours=1, uses=2 * effort.nodes, approve=False)
        self._code = str(made["code"])
        self._port = int(self.hub.get("status")["hub"].rsplit(":", 1)[1])
        self.watch = Watch(self.hub)
        self.idle = self._member(Agent(root / "idle"))
        share = effort.nodes // effort.processes
        self.nodes = share * effort.processes
        self._talks = [
            stack.enter_context(
                Conversation(
                    crowd.__name__,
                    Job(str(root), self._code, "127.0.0.1", self._port, 1 + n * share, share),
                    Said,
                    deadline=_CROWD_DEADLINE,
                )
            )
            for n in range(effort.processes)
        ]
        # Every steady member of every process in turn.
        turns = [(talk, n) for n in range(STEADY) for talk in self._talks]
        self._turns = itertools.cycle(turns)

    def _member(self, agent: Agent) -> Agent:
        self._stack.enter_context(agent)
        agent.post("fleet/join", code=self._code, hub_address=f"127.0.0.1:{self._port}")
        return agent

    def ask_all(self, ask: Ask) -> list[Said]:
        """The same of every process, at once."""
        with ThreadPoolExecutor(len(self._talks)) as pool:
            return list(pool.map(lambda talk: talk.ask(ask), self._talks))

    def storm(
        self, word: Literal["join", "drop"], what: str, progress: common.Progress
    ) -> dict[str, Any]:
        """All do it at once; until the status stream shows everybody online."""
        progress(what)
        used, before = Usage(self.hub.pid), self.watch.events
        self.ask_all(Ask(word))
        wanted = self.nodes + 2
        self.watch.until(lambda view: _online(view) >= wanted, _SEEN_DEADLINE, "all online")
        used.sample()
        return {**_row(what, used), "events": self.watch.events - before}

    def watched(
        self, seconds: float, usages: Sequence[Usage], left: Callable[[float], None]
    ) -> list[float]:
        """For so long, one member after the other changes its mind; how long each was unseen."""
        delays = []
        end = time.monotonic() + seconds
        following = time.monotonic()
        while (now := time.monotonic()) < end:
            left(end - now)
            talk, number = next(self._turns)
            said = talk.ask(Ask("flip", number))
            seen = self.watch.until(_shows(said), _SEEN_DEADLINE, "a change of mind")
            delays.append(seen - said.at)
            for usage in usages:
                usage.sample()
            following += _EVERY
            time.sleep(max(0.0, following - time.monotonic()))
        return delays

    def leave(self) -> None:
        """The crowd is gone, all at once."""
        for talk in self._talks:
            talk.close()
        self.watch.until(lambda view: _online(view) <= 2, _SEEN_DEADLINE, "everybody offline")

    def hastened(self, progress: common.Progress) -> Usage:
        """An agent for which time passes faster, idle."""
        effort = self._effort
        line = ("-m", hastened.__name__, f"{effort.hasten:g}")
        agent = self._member(Agent(self._root / "hastened", line))
        time.sleep(effort.settle)
        used = Usage(agent.pid)
        end = time.monotonic() + effort.idle
        while (now := time.monotonic()) < end:
            progress(f"an idle hour, {end - now:.0f} s left")
            time.sleep(_EVERY / 2)
            used.sample()
        return used
