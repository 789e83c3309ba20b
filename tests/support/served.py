"""``fleetapp demo --serve`` as a person would run it, and what a test may ask of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from pathlib import Path
from typing import Any

import openai
import psutil

MODEL = "smollm2-135m-instruct"
READY_DEADLINE = 240.0
STOP_DEADLINE = 25.0

PROMPTS = {
    "short fact": "What is the capital of France?",
    "reasoning": "A train leaves Chicago at 60 mph and another leaves New York at 70 mph, 790 "
    "miles apart. When do they meet?",
    "code": "def fibonacci(n):\n    ",
    "list": "List five inventions of the 20th century.",
    "creative": "Once upon a time in a kingdom far away,",
    "technical": "Explain how HTTP/2 multiplexing works.",
    "chat": "User: What is recursion?\nAssistant:",
    "translation": "Translate to French: Good morning, how are you?",
}
"""The eight kinds of the Pipeline Shards paper, section 5.3."""


class Served:
    """Use as a context manager.

    Args:
        nodes: agents in the fleet.
        precision: "exact" or "fast".
        library: a model library that holds the sample model.
    """

    def __init__(self, nodes: int, precision: str, library: Path, **env: str) -> None:
        self.nodes = nodes
        self._args = ["--nodes", str(nodes), "--precision", precision, "--serve"]
        self._env = {**os.environ, "FLEETAPP_MODELS_DIR": str(library), **env}
        self._lines: deque[str] = deque(maxlen=200)
        self._ready = threading.Event()
        self.url = ""
        self.key = ""
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Served:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleetapp.cli", "demo", *self._args],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        threading.Thread(target=self._read, daemon=True).start()
        if not self._ready.wait(READY_DEADLINE) or not self.url:
            self.stop()
            raise AssertionError("the demo did not get ready:\n" + self.output)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line.rstrip())
            if line.startswith("READY "):
                _, self.url, self.key = line.split()
                self._ready.set()
        self._ready.set()

    @property
    def output(self) -> str:
        """What it has said."""
        return "\n".join(self._lines)

    def stop(self) -> int:
        """Ctrl+C, and wait."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(STOP_DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
                raise AssertionError("the demo did not stop on Ctrl+C:\n" + self.output) from None
        return self.process.returncode

    @property
    def folder(self) -> Path:
        """Where its agents keep their state."""
        assert self.process is not None
        pattern = f"fleetapp-demo-{self.process.pid}-*"
        return next(Path(tempfile.gettempdir()).glob(pattern))

    def openai(self, **more: Any) -> openai.OpenAI:
        """The official client."""
        options = {"timeout": 120, "max_retries": 0, **more}
        return openai.OpenAI(base_url=self.url, api_key=self.key, **options)

    def agents(self) -> dict[str, psutil.Process]:
        """Agent processes by node name, the coordinator is pc-1."""
        assert self.process is not None
        found = {}
        for child in psutil.Process(self.process.pid).children():
            line = _line(child)
            if "agent" in line and "--state" in line:
                found[Path(line[line.index("--state") + 1]).name] = child
        return found

    def runners(self) -> dict[str, psutil.Process]:
        """Runner processes by node name."""
        found = {}
        for name, agent in self.agents().items():
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in agent.children():
                    if "fleetapp.engine.runner" in _line(child):
                        found[name] = child
        return found

    def local(self, path: str, node: str = "pc-1", body: object = None) -> Any:
        """GET of a node's loopback API; POST with a body."""
        home = self.folder / node
        port = json.loads((home / "agent.json").read_text("utf-8"))["port"]
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/local/v1/{path}", data)
        request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"Bearer {(home / 'api-token').read_text('ascii')}")
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read())

    def wait_live(self, stages: int, deadline: float = 60.0) -> dict[str, Any]:
        """Until the chain serves on that many PCs."""
        end = time.monotonic() + deadline
        chain: dict[str, Any] = {}
        while time.monotonic() < end:
            try:
                chain = self.local("fleet")["chains"][0]
            except (OSError, LookupError, ValueError):
                chain = {}
            devices = {a["device_id"] for a in chain.get("assignments", ())}
            if chain.get("state") == "live" and len(devices) == stages:
                return chain
            time.sleep(0.1)
        raise AssertionError(f"not live with {stages} stages: {chain}\n{self.output}")

    def ask(self, prompt: str, max_tokens: int = 32, **more: Any) -> list[int]:
        """Token ids of one chat answer."""
        extra = {"return_token_ids": True, "ignore_eos": True, **more.pop("extra", {})}
        answer = self.openai().chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=max_tokens,
            extra_body=extra,
            **more,
        )
        return list(answer.choices[0].token_ids)


def _line(process: psutil.Process) -> list[str]:
    """Its command line; empty of one that has ended and is not buried yet."""
    with contextlib.suppress(psutil.NoSuchProcess):
        line: list[str] = process.cmdline()
        return line
    return []
