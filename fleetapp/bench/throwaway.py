"""A fleet of real agents on this PC: separate processes, identities and state folders.

They meet by mDNS on loopback and join with a code, exactly as PCs in an office do. An agent that
dies is started again, as a service manager would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import psutil

from fleetapp.errors import FleetError, RunnerFailed, from_code
from fleetapp.types import ChainView, FleetView, LocalStatus, Precision

PREFIX = "fleetapp-demo-"
NO_GUEST = {
    "FLEETAPP_CONTRIBUTE_WHEN": "always",
    "FLEETAPP_CPU_LIMIT": "100",
    "FLEETAPP_ON_BATTERY": "1",
    "FLEETAPP_BATTERY_FLOOR": "0",
    "FLEETAPP_ON_METERED": "1",
    "FLEETAPP_PAUSE_IN_FULL_SCREEN": "0",
    "FLEETAPP_TEMPERATURE_LIMIT": "0",
    "FLEETAPP_MEMORY_RESERVE_MB": "0",
    "FLEETAPP_DISK_RESERVE_MB": "0",
}
"""Whoever starts a throw-away fleet sits in front of it and wants it to work now."""
START_DEADLINE = 60.0
STOP_DEADLINE = 10.0
LIVE_DEADLINE = 600.0
RESTARTS = 5
FAILURES = 2
"""So often a node may fail to load its layers before the demo gives up."""

Say = Callable[[str], None]


@dataclass
class Node:
    """One agent process."""

    number: int
    home: Path
    env: dict[str, str]
    process: asyncio.subprocess.Process | None = None
    port: int = 0
    token: str = ""
    restarts: int = 0
    stderr: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    @property
    def name(self) -> str:
        """As the fleet shows it."""
        return f"pc-{self.number}"


class Failures:
    """Ends the wait for a chain of which one PC fails over and over.

    A fleet goes on without such a PC and tries it again later. Here every node is needed, and they
    share one disk and one memory.
    """

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._failing: set[str] = set()

    def look(self, chain: ChainView) -> None:
        """Look at a chain that is not live yet.

        Raises:
            RunnerFailed: a node has failed for the ``FAILURES``-th time.
        """
        failed = {a.node: a.message for a in chain.assignments if a.phase == "failed"}
        for node in failed.keys() - self._failing:
            self._count[node] += 1
            if self._count[node] >= FAILURES:
                raise RunnerFailed(
                    f"{node} cannot hold its layers: {failed[node]}",
                    remedy=f"Mend that and try again; the demo's files are in "
                    f"{tempfile.gettempdir()}, which the variable "
                    f"{'TEMP' if sys.platform == 'win32' else 'TMPDIR'} can change.",
                )
        self._failing = set(failed)


class ThrowAwayFleet:
    """Use as an async context manager; leaves no process and no file behind.

    Args:
        nodes: how many agents.
        models_dir: a library that holds the model.
        say: told in one sentence what just happened.
        extra: more environment for the agents.
        each: more environment for single agents, by number from 1.
        restarts: how often each agent is started again.
    """

    def __init__(
        self,
        nodes: int,
        models_dir: Path,
        say: Say = lambda _: None,
        extra: Mapping[str, str] | None = None,
        *,
        each: Mapping[int, Mapping[str, str]] | None = None,
        restarts: int = RESTARTS,
    ) -> None:
        self._each = dict(each or {})
        self._restarts = restarts
        self._count = nodes
        self._models = models_dir
        self._say = say
        self._extra = dict(extra or {})
        self.root = Path()
        self.nodes: list[Node] = []
        self.api_url = ""
        self.api_key = ""
        self._session: aiohttp.ClientSession | None = None
        self._guard: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> ThrowAwayFleet:
        sweep_leftovers()
        self.root = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._guard is not None:
            self._guard.cancel()
            await asyncio.gather(self._guard, return_exceptions=True)
        await asyncio.gather(*(self._stop(n) for n in self.nodes), return_exceptions=True)
        for task in self._watchers:
            task.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        await asyncio.to_thread(shutil.rmtree, self.root, ignore_errors=True)

    @property
    def coordinator(self) -> Node:
        """The first node."""
        return self.nodes[0]

    async def form(self) -> None:
        """Start the agents, create the fleet on the first, join the others by code."""
        cores = psutil.cpu_count() or 1
        for number in range(1, self._count + 1):
            env = {
                **os.environ,
                "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
                "FLEETAPP_API_PORT": "0",
                "FLEETAPP_CONTROL_PORT": "0",
                "FLEETAPP_KEYRING": "off",
                "FLEETAPP_DEVICES": "CPU",
                "FLEETAPP_CONTRIBUTE": "1",
                **NO_GUEST,
                "FLEETAPP_MODELS_DIR": str(self._models),
                "FLEETAPP_NODE_NAME": f"pc-{number}",
                "FLEETAPP_THREADS": str(max(1, cores // self._count)),
                **self._extra,
                **self._each.get(number, {}),
            }
            self.nodes.append(Node(number, self.root / f"pc-{number}", env))
        await asyncio.gather(*(self._start(n) for n in self.nodes))
        self._say(f"{self._count} agents started, each with its own identity and folder.")
        code = await self._post(self.coordinator, "fleet/create", {"name": "demo"}, dict[str, Any])
        self._say(f"{self.coordinator.name} created a fleet and a join code: {code['code']}")
        await asyncio.gather(*(self._join(n, str(code["code"])) for n in self.nodes[1:]))
        key = await self._post(self.coordinator, "keys", {"name": "demo"}, dict[str, Any])
        self.api_key = str(key["key"])
        status = await self.status(self.coordinator)
        self.api_url = status.api_url
        self._pin_ports()
        self._guard = asyncio.create_task(self._keep_alive())

    async def serve(
        self, model: str, precision: Precision, draft: str = "auto", stages: int = 0
    ) -> ChainView:
        """Ask the hub to serve a model over all nodes, or so many, and wait until it does.

        Raises:
            FleetError: it cannot.
        """
        await self._post(
            self.coordinator,
            "models/start",
            {
                "model": model,
                "precision": precision,
                "stages": stages or self._count,
                "draft": draft,
            },
            ChainView,
        )
        failures = Failures()
        try:
            async with asyncio.timeout(LIVE_DEADLINE):
                async for view in self.watch():
                    for chain in view.chains:
                        if chain.model != model:
                            continue
                        if chain.state == "live":
                            return chain
                        failures.look(chain)
        except TimeoutError as exc:
            raise RunnerFailed(
                f"The model was not served within {LIVE_DEADLINE:g} s.",
                remedy="Try again when this PC has less to do, or with fewer --nodes.",
            ) from exc
        raise RunnerFailed("The fleet ended before the model was served.")

    async def watch(self) -> AsyncIterator[FleetView]:
        """The coordinator's view at each change."""
        assert self._session is not None
        async with self._session.get(
            self._url(self.coordinator, "fleet/events"), headers=self._auth(self.coordinator)
        ) as response:
            await _check(response)
            async for raw in response.content:
                line = raw.strip()
                if line.startswith(b"data:"):
                    yield msgspec.json.decode(line[5:], type=FleetView)

    async def view(self) -> FleetView:
        """The fleet now."""
        view: FleetView = await self._get(self.coordinator, "fleet", FleetView)
        return view

    async def status(self, node: Node) -> LocalStatus:
        """One agent's own status."""
        status: LocalStatus = await self._get(node, "status", LocalStatus)
        return status

    async def post(self, node: Node, path: str, body: object, kind: Any = dict[str, Any]) -> Any:
        """A call of a node's loopback API.

        Raises:
            FleetError: as the agent says.
        """
        return await self._post(node, path, body, kind)

    # ------------------------------------------------------------------ processes

    async def _start(self, node: Node) -> None:
        (node.home / "agent.json").unlink(missing_ok=True)
        flags = 0x08000000 if sys.platform == "win32" else 0  # CREATE_NO_WINDOW
        node.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fleetapp.cli",
            "agent",
            "--state",
            str(node.home),
            "--exit-with-stdin",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=node.env,
            creationflags=flags,
            # Ctrl+C in the terminal is the demo's to handle; agents end when their stdin closes.
            start_new_session=sys.platform != "win32",
        )
        watcher = asyncio.create_task(_drain(node))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        end = time.monotonic() + START_DEADLINE
        while time.monotonic() < end:
            if node.process.returncode is not None:
                last = " ".join(node.stderr)[-600:] or "It said nothing."
                raise RunnerFailed(f"The agent {node.name} ended while starting: {last}")
            try:
                found = json.loads((node.home / "agent.json").read_text("utf-8"))
                node.port = int(found["port"])
                node.token = (node.home / "api-token").read_text("ascii").strip()
            except (OSError, ValueError, KeyError):
                await asyncio.sleep(0.05)
                continue
            return
        raise RunnerFailed(f"The agent {node.name} did not start in time.")

    async def _stop(self, node: Node) -> None:
        process = node.process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_DEADLINE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            for node in self.nodes:
                process = node.process
                if process is None or process.returncode is None or node.restarts >= self._restarts:
                    continue
                node.restarts += 1
                self._say(f"{node.name} ended with code {process.returncode}; starting it again.")
                try:
                    await self._start(node)
                except FleetError as exc:
                    self._say(str(exc))

    def _pin_ports(self) -> None:
        """After a restart the coordinator must be found where it was."""
        env = self.coordinator.env
        env["FLEETAPP_API_PORT"] = self.api_url.rsplit(":", 1)[1].split("/")[0]

    async def _join(self, node: Node, code: str) -> None:
        started = time.monotonic()
        status = await self._post(node, "fleet/join", {"code": code}, LocalStatus)
        self._say(
            f"{status.name} found the coordinator by mDNS and joined in "
            f"{time.monotonic() - started:.1f} s (device {status.device_id[:8]}…)."
        )

    # ------------------------------------------------------------------ HTTP

    def _url(self, node: Node, path: str) -> str:
        return f"http://127.0.0.1:{node.port}/local/v1/{path}"

    def _auth(self, node: Node) -> dict[str, str]:
        return {"Authorization": f"Bearer {node.token}"}

    async def _get(self, node: Node, path: str, kind: Any) -> Any:
        assert self._session is not None
        async with asyncio.timeout(30):
            async with self._session.get(
                self._url(node, path), headers=self._auth(node)
            ) as response:
                return msgspec.json.decode(await _check(response), type=kind)

    async def _post(self, node: Node, path: str, body: object, kind: Any) -> Any:
        assert self._session is not None
        async with asyncio.timeout(120):
            async with self._session.post(
                self._url(node, path), headers=self._auth(node), json=body
            ) as response:
                return msgspec.json.decode(await _check(response), type=kind)


async def _check(response: aiohttp.ClientResponse) -> bytes:
    if response.status < 400:
        return b"" if response.content_type == "text/event-stream" else await response.read()
    raw = await response.read()
    try:
        error = json.loads(raw)["error"]
        raise from_code(error.get("code", ""), error["message"], error.get("remedy", ""))
    except (ValueError, KeyError, TypeError):
        raise RunnerFailed(f"The agent answered with HTTP {response.status}.") from None


async def _drain(node: Node) -> None:
    assert node.process is not None
    assert node.process.stderr is not None
    while line := await node.process.stderr.readline():
        node.stderr.append(line.decode("utf-8", "replace").rstrip())


def sweep_leftovers() -> None:
    """Remove folders of demos that were killed before they could clean up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
