"""What happens to laptops, done on purpose to a throw-away fleet."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Final

import psutil

from fleetapp.bench.throwaway import Node, ThrowAwayFleet
from fleetapp.errors import FleetError, RunnerFailed, UserError
from fleetapp.types import ChainView

KINDS: Final = (
    "kill runner",
    "kill agent",
    "freeze runner",
    "freeze agent",
    "cut link",
    "drain",
    "user back",
)
SILENT: Final = frozenset({"freeze runner", "freeze agent"})
"""Nothing tells of these but silence."""
_FIND_DEADLINE: Final = 5.0


class Havoc:
    """Does one thing to the PC that holds a stage, and mends it afterwards.

    Args:
        fleet: whose processes they are.
    """

    def __init__(self, fleet: ThrowAwayFleet) -> None:
        self._fleet = fleet
        self._frozen: list[psutil.Process] = []

    @staticmethod
    def possible() -> tuple[str, ...]:
        """What can be done on this machine."""
        kinds = list(KINDS)
        if sys.platform == "win32":
            kinds = [k for k in kinds if k not in SILENT and k != "cut link"]
        elif shutil.which("ss") is None or not _is_root():
            kinds.remove("cut link")
        return tuple(kinds)

    def node(self, chain: ChainView, place: int) -> Node:
        """The PC that holds the ``place``-th stage."""
        name = chain.nodes[place]
        return next(n for n in self._fleet.nodes if n.name == name)

    async def do(self, kind: str, chain: ChainView, place: int) -> None:
        """Let it happen now.

        Raises:
            RunnerFailed: the stage's process is not there any more.
        """
        node = self.node(chain, place)
        if kind == "kill agent":
            _agent(node).kill()
        elif kind == "freeze agent":
            self._freeze(_agent(node))
        elif kind == "drain":
            await self._decide("drain", node)
        elif kind == "user back":
            # The environment of these agents lets them contribute; a pause is the user's own.
            pause = {"length": "forever", "finish_first": False}
            await self._fleet.post(node, "pause", pause, object)
        else:
            runner = await _runner(node)
            if kind == "kill runner":
                runner.kill()
            elif kind == "freeze runner":
                self._freeze(runner)
            else:
                await _cut(runner)

    async def undo(self, kind: str, node: Node) -> None:
        """Let the PC be one of the fleet again."""
        frozen, self._frozen = self._frozen, []
        for process in frozen:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        if kind == "drain":
            await self._decide("undrain", node)
        elif kind == "user back":
            await self._fleet.post(node, "resume", {}, object)

    def _freeze(self, process: psutil.Process) -> None:
        self._frozen.append(process)
        process.send_signal(signal.SIGSTOP)

    async def _decide(self, decision: str, node: Node) -> None:
        view = await self._fleet.view()
        device = next(n.device_id for n in view.nodes if n.name == node.name)
        with contextlib.suppress(FleetError):
            await self._fleet.post(
                self._fleet.coordinator, f"fleet/{decision}", {"device_id": device}, object
            )


def _agent(node: Node) -> psutil.Process:
    if node.process is None or node.process.returncode is not None:
        raise RunnerFailed(f"The agent of {node.name} is not running.")
    return psutil.Process(node.process.pid)


async def _runner(node: Node) -> psutil.Process:
    """The runner that is in a ring; copies that wait have no connection."""
    end = time.monotonic() + _FIND_DEADLINE
    while time.monotonic() < end:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in _agent(node).children():
                if _connections(child):
                    return child
        await asyncio.sleep(0.05)
    raise RunnerFailed(f"No runner of {node.name} is in a ring.")


def _connections(process: psutil.Process) -> list[tuple[int, int]]:
    """Local and remote ports of its connections that stand."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        found = process.net_connections("tcp")
        return [(c.laddr.port, c.raddr.port) for c in found if c.status == psutil.CONN_ESTABLISHED]
    return []


async def _cut(runner: psutil.Process) -> None:
    """Destroy its connection to the next stage, as a network that forgets does."""
    listening = {
        c.laddr.port for c in runner.net_connections("tcp") if c.status == psutil.CONN_LISTEN
    }
    outgoing = [local for local, _ in _connections(runner) if local not in listening]
    if not outgoing:
        raise RunnerFailed("That runner has no connection to a next stage.")
    process = await asyncio.create_subprocess_exec(
        "ss",
        "--kill",
        "sport",
        "=",
        f":{outgoing[0]}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(5.0):
        await process.wait()
    if (outgoing[0]) in [local for local, _ in _connections(runner)]:
        raise UserError("This system does not let connections be cut.")


def _is_root() -> bool:
    with contextlib.suppress(OSError):
        return Path("/proc/self").stat().st_uid == 0
    return False
