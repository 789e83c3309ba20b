"""A real agent in a process of its own, asked over its loopback API and watched from outside."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from fleetapp.api.sse import EventParser
from fleetapp.bench.child import environment
from fleetapp.errors import RunnerFailed, from_code
from fleetapp.types import FleetView

_START_DEADLINE: Final = 60.0
_STOP_DEADLINE: Final = 15.0
_CALL_DEADLINE: Final = 60.0
_SAMPLES: Final = 10
"""Of the first and the last memory readings, whose medians are compared."""
_BLOCK: Final = 1 << 16


class Agent:
    """Use as a context manager.

    Args:
        home: its state folder.
        line: what to run instead of ``fleetapp agent``; gets the folder as its last word.

    Raises (from the calls):
        RunnerFailed: it did not start, or ended.
        FleetError: what it answered.
    """

    def __init__(self, home: Path, line: Sequence[str] = ()) -> None:
        self.home = home
        self._line = [sys.executable, *line, str(home)] if line else _agent(home)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._token = ""

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Agent:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("FLEETAPP_")}
        self._process = subprocess.Popen(
            self._line,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env={
                **environment(plain),
                "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
                "FLEETAPP_API_PORT": "0",
                "FLEETAPP_CONTROL_PORT": "0",
                "FLEETAPP_KEYRING": "off",
            },
        )
        end = time.monotonic() + _START_DEADLINE
        while time.monotonic() < end and self._process.poll() is None:
            try:
                found = json.loads((self.home / "agent.json").read_text("utf-8"))
                self._port = int(found["port"])
                self._token = (self.home / "api-token").read_text("ascii").strip()
            except (OSError, ValueError, KeyError):
                time.sleep(0.05)
                continue
            return self
        self.__exit__()
        raise RunnerFailed(f"The agent of {self.home.name} did not start.")

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._errors.close()

    def get(self, path: str) -> Any:
        """An answer of the loopback API."""
        return self._call("GET", path, None)

    def post(self, path: str, **body: object) -> Any:
        """An answer of the loopback API."""
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            with self.open(path, method, data, _CALL_DEADLINE) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as failed:
            error = json.loads(failed.read())["error"]
            raise from_code(error["code"], error["message"], error["remedy"]) from None

    def open(self, path: str, method: str, data: bytes | None, deadline: float) -> Any:
        """The response to one request; ``deadline`` bounds each wait for bytes (s)."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/local/v1/{path}",
            method=method,
            data=data,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        return urllib.request.urlopen(request, timeout=deadline)  # noqa: S310 - our own on loopback


def _agent(home: Path) -> list[str]:
    line = [sys.executable, "-m", "fleetapp.cli", "agent", "--exit-with-stdin"]
    return [*line, "--state", str(home)]


class Watch:
    """Reads an agent's status stream in a thread, until the agent ends, and keeps the newest
    view.
    """

    def __init__(self, agent: Agent) -> None:
        self.events = 0
        self._view: FleetView | None = None
        self._news = threading.Condition()
        self._response = agent.open("fleet/events", "GET", None, _CALL_DEADLINE)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def until(self, true: Callable[[FleetView], bool], deadline: float, what: str) -> float:
        """When the newest view first satisfied ``true``; monotonic seconds.

        Raises:
            RunnerFailed: none did within ``deadline`` seconds.
        """
        with self._news:
            if self._news.wait_for(lambda: self._view is not None and true(self._view), deadline):
                return time.monotonic()
        raise RunnerFailed(f"The status stream did not show within {deadline:g} s: {what}.")

    def _read(self) -> None:
        parser = EventParser()
        try:
            while data := self._response.read1(_BLOCK):
                for event in parser.feed(data):
                    view = msgspec.json.decode(event, type=FleetView)
                    with self._news:
                        self._view, self.events = view, self.events + 1
                        self._news.notify_all()
        except (OSError, ValueError, HTTPException):
            pass  # the agent was killed
        finally:
            self._response.close()


class Usage:
    """Processor time and resident memory of a process, from the operating system."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._since = time.monotonic()
        self._cpu = self._seconds()
        self._rss = [self._resident()]
        self._until, self._used = self._since, self._cpu

    def sample(self) -> None:
        """Read both; call it often and evenly."""
        self._rss.append(self._resident())
        self._until, self._used = time.monotonic(), self._seconds()

    @property
    def seconds(self) -> float:
        """From the beginning to the last sample."""
        return self._until - self._since

    @property
    def cores(self) -> float:
        """Share of one core."""
        return (self._used - self._cpu) / max(self.seconds, 1e-9)

    @property
    def rss(self) -> float:
        """MiB at the end."""
        return statistics.median(self._rss[-_SAMPLES:])

    @property
    def growth(self) -> float:
        """MiB from the first samples to the last."""
        return self.rss - statistics.median(self._rss[:_SAMPLES])

    def _seconds(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _resident(self) -> float:
        return float(self._process.memory_info().rss) / 2**20
