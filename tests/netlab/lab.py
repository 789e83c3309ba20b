"""A small office on one machine: hosts in network namespaces, joined by a switch of our own.

Each host has a network stack, a state folder and an agent of its own, and nothing configured but
that: they find each other as PCs in an office do. No packet leaves the namespaces. Needs root and
iproute2; ``why_not`` says what is missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import openai
import psutil

from fleetapp.bench.link import Shape
from tests.support.agents import AgentProcess
from tests.support.sample_model import MODEL

PREFIX = "fleetapp-lab-"
SWITCH_DEADLINE = 15.0
NETWORK = "10.77.0"
_CLONE_NEWNET = 0x40000000
_CONFIGURED = {
    f"FLEETAPP_{name}" for name in ("MDNS_INTERFACES", "API_PORT", "CONTROL_PORT", "NODE_NAME")
}
"""What tests tell agents that share one network; here each finds out by itself."""
_numbers = count(1)


@cache
def why_not() -> str:
    """The reason why no lab can be built here; empty if one can."""
    if sys.platform != "linux":
        return "network namespaces exist on Linux only"
    if shutil.which("ip") is None:
        return "the command ip is missing (Debian package iproute2)"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    name = f"{PREFIX}{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "exec", name, "ip", "tuntap", "add", "mode", "tap", "name", "try0")
    except subprocess.CalledProcessError as failed:
        return f"network namespaces cannot be made here: {failed.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=10)
    return done.stdout


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread's new sockets belong to the namespace, and go on belonging to it afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor: int) -> None:
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"entering {namespace} failed")

    with (
        Path("/proc/thread-self/ns/net").open("rb") as home,
        Path("/run/netns", namespace).open("rb") as there,
    ):
        enter(there.fileno())
        try:
            yield
        finally:
            enter(home.fileno())


class Host(AgentProcess):
    """One PC of the lab. Its agent is started by hand or by ``Lab.start``."""

    def __init__(self, home: Path, namespace: str, number: int, env: Mapping[str, str]) -> None:
        super().__init__(home)
        self.namespace = namespace
        self.number = number
        self.address = f"{NETWORK}.{number}"
        self.env = {k: v for k, v in self.env.items() if k not in _CONFIGURED} | dict(env)

    def _line(self) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *super()._line()]

    def _call(self, method: str, path: str, body: object) -> Any:
        with inside(self.namespace):
            return super()._call(method, path, body)

    def ip(self, *words: str) -> str:
        """The command ``ip`` in this host's network."""
        return _ip("-n", self.namespace, *words)

    def move(self, number: int) -> None:
        """Another address, as after a new lease; connections over the old one are dead."""
        old, self.address = self.address, f"{NETWORK}.{number}"
        self.ip("addr", "del", f"{old}/24", "dev", "eth0")
        self.ip("addr", "add", f"{self.address}/24", "brd", "+", "dev", "eth0")

    def connected_from(self) -> set[str]:
        """Own addresses of its connections with other PCs."""
        line = ("netns", "exec", self.namespace, "ss", "-Htn", "state", "established")
        own = {row.split()[2].rpartition(":")[0] for row in _ip(*line).splitlines()}
        return {a for a in own if not a.startswith("127.")}

    def freeze(self) -> None:
        """SIGSTOP for the agent alone; its runner computes on."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def openai(self) -> openai.OpenAI:
        """The official client on this host; make each first request ``inside`` its namespace."""
        key = self.post("keys", name="lab")["key"]
        url = self.get("status")["api_url"]
        return openai.OpenAI(base_url=url, api_key=key, timeout=120, max_retries=0)

    def chain(self) -> dict[str, Any]:
        """The first chain as the coordinator shows it; empty if there is none."""
        chains = self.get("fleet")["chains"]
        return chains[0] if chains else {}

    def until_live(self, stages: int, deadline: float) -> None:
        """Until the chain serves with that many stages."""

        def live(_: AgentProcess) -> bool:
            chain = self.chain()
            return chain.get("state") == "live" and len(chain["assignments"]) == stages

        self.until(live, deadline)

    def state_of(self, other: Host) -> str:
        """What this coordinator shows of another host."""
        device = json.loads((other.home / "device").read_text())
        return str(next(n["state"] for n in self.get("fleet")["nodes"] if n["device_id"] == device))

    def remember(self) -> None:
        """Keep the device id where it can be read while the host is cut off."""
        (self.home / "device").write_text(json.dumps(self.get("status")["device_id"]))

    def said(self, lines: int = 25) -> str:
        """The end of the agent's log."""
        file = self.home / "logs" / "agent.jsonl"
        text = file.read_text("utf-8", "replace") if file.exists() else "(no log)"
        return "\n".join(text.splitlines()[-lines:])


class Lab:
    """Use as a context manager; leaves no process, namespace or device behind.

    Args:
        root: for the state folders.
        hosts: how many; the first is meant to coordinate.
        env: for every agent.
    """

    def __init__(self, root: Path, hosts: int, env: Mapping[str, str] | None = None) -> None:
        name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._names = [f"{name}-{n}" for n in range(1, hosts + 1)]
        self._switch_name = f"{name}-switch"
        self._switch: subprocess.Popen[str] | None = None
        self.hosts = [
            Host(root / f"pc-{n}", space, n, env or {}) for n, space in enumerate(self._names, 1)
        ]

    def __enter__(self) -> Lab:
        sweep()
        try:
            for name in (*self._names, self._switch_name):
                _ip("netns", "add", name)
            self._plug()
        except BaseException:
            self._tear_down()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for host in self.hosts:
                print(f"----- {host.namespace}\n{host.said()}")
        self._tear_down()

    def _plug(self) -> None:
        ports = [{"namespace": h.namespace, "address": f"{h.address}/24"} for h in self.hosts]
        line = [sys.executable, "-m", "tests.netlab.switch", json.dumps(ports)]
        self._switch = subprocess.Popen(
            ["ip", "netns", "exec", self._switch_name, *line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("ready")

    def _expect(self, word: str) -> None:
        assert self._switch is not None
        assert self._switch.stdout is not None
        said = self._switch.stdout.readline().strip()
        assert said == word, f"the switch said {said!r} and not {word!r}"

    def _tear_down(self) -> None:
        for host in self.hosts:
            with contextlib.suppress(AssertionError, OSError):
                host.stop()
        if self._switch is not None:
            assert self._switch.stdin is not None
            self._switch.stdin.close()
            try:
                self._switch.wait(5)
            except subprocess.TimeoutExpired:
                self._switch.kill()
                self._switch.wait(5)
        for name in (*self._names, self._switch_name):
            remove(name)

    # ------------------------------------------------------------------ agents

    def start(self) -> None:
        """Start all agents at once, as in an office in the morning."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            list(pool.map(lambda host: host.start(), self.hosts))

    def form(self, hub: str = "") -> None:
        """Create a fleet on the first host and join the others, who all contribute.

        Args:
            hub: an address of the coordinator to give to those that join; empty: they find it.
        """
        first, *others = self.hosts
        code = first.create()

        def join(host: Host) -> None:
            host.post("fleet/join", code=code, **({"hub_address": hub} if hub else {}))

        with ThreadPoolExecutor(max(len(others), 1)) as pool:
            list(pool.map(join, others))
        for host in self.hosts:
            host.post("contribute", on=True)
            host.remember()

    def serve(self, deadline: float, precision: str = "exact") -> None:
        """Serve the sample model over all hosts, and wait until it is."""
        first, stages = self.hosts[0], len(self.hosts)
        first.post("models/start", model=MODEL, precision=precision, stages=stages)
        first.until_live(stages, deadline)

    # ------------------------------------------------------------------ the network

    def _tell(self, **command: object) -> None:
        assert self._switch is not None
        assert self._switch.stdin is not None
        self._switch.stdin.write(json.dumps(command) + "\n")
        self._switch.stdin.flush()
        self._expect("done")

    def multicast(self, on: bool) -> None:
        """Whether the switch carries multicast; many office networks do not."""
        self._tell(multicast=on)

    def shape(self, shape: Shape, host: Host | None = None, loss: float = 0.0) -> None:
        """What a host's cable (or everybody's) does in each direction; ``loss`` is a share."""
        number = host.number if host is not None else None
        self._tell(host=number, shape=asdict(shape), loss=loss)

    def cut(self, host: Host) -> None:
        """Pull the cable; nobody is told."""
        self._tell(host=host.number, up=False)

    def partition(self, one: Host, other: Host) -> None:
        """These two do not reach each other; everybody else reaches both."""
        self._tell(host=one.number, apart=[other.number])
        self._tell(host=other.number, apart=[one.number])

    def heal(self) -> None:
        """Plug everything in again, as quick and lossless as at first."""
        self._tell(multicast=True, up=True, apart=[], shape=asdict(Shape()), loss=0.0)


def remove(namespace: str) -> None:
    """Delete a namespace, and whatever process still lives in it."""
    found = subprocess.run(
        ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False
    )
    for pid in found.stdout.split():
        with contextlib.suppress(OSError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def sweep() -> None:
    """Remove what labs left behind that were killed before they could."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdecimal() and not psutil.pid_exists(int(owner)):
            remove(name)


def until(true: Any, deadline: float, what: str) -> float:
    """Seconds until ``true()``; fails after ``deadline``."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < deadline, f"not within {deadline:.0f} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - started
