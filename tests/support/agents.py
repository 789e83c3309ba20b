"""Real agent processes of their own, without any model; started, asked, killed by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleetapp.bench.throwaway import NO_GUEST
from fleetapp.errors import from_code

START_DEADLINE = 60.0
STOP_DEADLINE = 20.0


class AgentProcess:
    """One agent on a state folder of its own. Use as a context manager.

    Args:
        home: its state folder; made by the agent.
        name: shown to the fleet.
        env: more settings, as FLEETAPP_… variables without the prefix.
    """

    def __init__(self, home: Path, name: str = "pc", **env: str) -> None:
        self.home = home
        self.variables = {
            **NO_GUEST,  # whatever else this machine is doing
            "FLEETAPP_MDNS_INTERFACES": "127.0.0.1",
            "FLEETAPP_API_PORT": "0",
            "FLEETAPP_CONTROL_PORT": "0",
            "FLEETAPP_KEYRING": "off",
            "FLEETAPP_DEVICES": "CPU",
            "FLEETAPP_NODE_NAME": name,
            **{f"FLEETAPP_{key.upper()}": value for key, value in env.items()},
        }
        """What is special about it, for whoever else starts it."""
        self.env = {**os.environ, **self.variables}
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._token = ""

    def __enter__(self) -> AgentProcess:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> AgentProcess:
        """Start, and wait until it answers."""
        (self.home / "agent.json").unlink(missing_ok=True)
        self._process = self._spawn()
        end = time.monotonic() + START_DEADLINE
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise AssertionError(f"the agent ended while starting: {self._said()}")
            try:
                found = json.loads((self.home / "agent.json").read_text("utf-8"))
                self._port = int(found["port"])
                self._token = (self.home / "api-token").read_text("ascii").strip()
            except (OSError, ValueError, KeyError):
                time.sleep(0.05)
                continue
            return self
        raise AssertionError("the agent did not start in time")

    def run(self) -> tuple[int, str]:
        """Start one that is expected to end by itself: its exit code and what it said."""
        process = self._spawn()
        try:
            _, said = process.communicate(timeout=START_DEADLINE)
        finally:
            process.kill()
        return process.returncode, said.decode("utf-8", "replace")

    def _line(self) -> list[str]:
        line = [sys.executable, "-m", "fleetapp.cli", "agent", "--state", str(self.home)]
        return [*line, "--exit-with-stdin"]

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._line(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=self.env,
        )

    def _said(self) -> str:
        assert self._process is not None
        assert self._process.stderr is not None
        return self._process.stderr.read().decode("utf-8", "replace")

    def stop(self) -> None:
        """As whoever started it would: by closing its stdin."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        try:
            process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
            raise AssertionError("the agent did not end with its stdin") from None
        finally:
            process.stderr.close()
            self._process = None

    def kill(self) -> None:
        """kill -9: no goodbye, nothing tidied up."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(5)

    # ------------------------------------------------------------------ what may be asked

    def get(self, path: str) -> Any:
        return self._call("GET", f"local/v1/{path}", None)

    def post(self, path: str, /, **body: object) -> Any:
        """Raises the FleetError that the agent answers with."""
        return self._call("POST", f"local/v1/{path}", body)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Any path of the loopback address."""
        return self._call(method, path, body)

    def _call(self, method: str, path: str, body: object) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as failed:
            error = json.loads(failed.read())["error"]
            raise from_code(error["code"], error["message"], error["remedy"]) from None

    def create(self, name: str = "office") -> str:
        """Create a fleet; its first code."""
        return str(self.post("fleet/create", name=name)["code"])

    def code(self, **options: object) -> str:
        return str(self.post("fleet/codes", **options)["code"])

    def members(self) -> dict[str, str]:
        """State of each member of the fleet by name."""
        return {n["name"]: n["state"] for n in self.get("fleet")["nodes"]}

    def until(self, true: Callable[[AgentProcess], bool], deadline: float = 30.0) -> None:
        """Ask until it is so; the agent is another process and tells nobody by itself."""
        end = time.monotonic() + deadline
        while not true(self):
            assert time.monotonic() < end, f"not in time: {self.get('status')}"
            time.sleep(0.05)

    def until_member_is(self, name: str, state: str) -> None:
        self.until(lambda a: a.members().get(name) == state)

    @property
    def hub_address(self) -> str:
        """Of the control port of the coordinator it is connected to."""
        self.until(lambda a: bool(a.get("status")["hub"]))
        return str(self.get("status")["hub"]).removeprefix("https://")
