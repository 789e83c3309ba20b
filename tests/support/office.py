"""A fleet of Linux agents that somebody joins from outside, and what a test asks of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai

from tests.support.agents import AgentProcess
from tests.support.served import MODEL

LIVE_DEADLINE = 240.0


class LinuxOffice:
    """So many agents in one fleet, on 127.0.0.1. Use as a context manager.

    Args:
        folder: their state folders lie below it.
        library: a model library that holds the sample model.
        count: how many agents.
    """

    def __init__(self, folder: Path, library: Path, count: int = 2) -> None:
        self._folder, self._library, self._count = folder, library, count
        self._stack = ExitStack()
        self.agents: list[AgentProcess] = []
        self.key = self.url = ""

    def __enter__(self) -> LinuxOffice:
        with ExitStack() as stack:
            env = {"contribute": "1", "models_dir": str(self._library), "threads": "1"}
            for number in range(1, self._count + 1):
                home = self._folder / f"linux-{number}"
                agent = AgentProcess(home, f"linux-{number}", **env)
                self.agents.append(stack.enter_context(agent))
            code = self.coordinator.create("office")
            for agent in self.agents[1:]:
                agent.post("fleet/join", code=code)
            for agent in self.agents:
                self.until_ready(agent.env["FLEETAPP_NODE_NAME"])
            self.key = str(self.coordinator.post("keys", name="test")["key"])
            self.url = str(self.coordinator.get("status")["api_url"])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def coordinator(self) -> AgentProcess:
        return self.agents[0]

    def code(self) -> str:
        """A fresh join code."""
        return self.coordinator.code()

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The coordinator's view of its members, by name."""
        return {n["name"]: n for n in self.coordinator.get("fleet")["nodes"]}

    def until_ready(self, name: str, deadline: float = 90.0) -> None:
        """Until this member is there and willing."""
        states = ("ready", "contributing", "preparing", "online")
        self.until(lambda: self.nodes().get(name, {}).get("state") in states, name, deadline)

    def until(self, true: Callable[[], object], what: str, deadline: float = 90.0) -> None:
        """Ask until it is so."""
        end = time.monotonic() + deadline
        while not true():
            assert time.monotonic() < end, f"not in time: {what}; {self.nodes()}; {self.chains()}"
            time.sleep(0.1)

    # ------------------------------------------------------------------ serving

    def serve(self, stages: int, precision: str = "exact") -> list[str]:
        """Serve the sample model over so many PCs; their names in order."""
        body = {"model": MODEL, "precision": precision, "stages": stages, "draft": "off"}
        self.coordinator.post("models/start", **body)
        return self.until_live(stages)

    def until_live(self, stages: int, deadline: float = LIVE_DEADLINE) -> list[str]:
        """Until the chain answers on that many PCs; their names in order."""

        def live() -> bool:
            return any(
                c["state"] == "live" and len(c["assignments"]) == stages for c in self.chains()
            )

        self.until(live, f"a live chain of {stages}", deadline)
        found = sorted(self.chains()[0]["assignments"], key=lambda a: a["stage"])
        return [str(a["node"]) for a in found]

    def unserve(self) -> None:
        self.coordinator.post("models/stop", model=MODEL)
        self.until(lambda: not self.chains(), "the chain to end")

    def chains(self) -> list[dict[str, Any]]:
        """What is served, and by whom."""
        return list(self.coordinator.get("fleet")["chains"])

    def ask(self, prompt: str, max_tokens: int = 24, **more: Any) -> list[int]:
        """Token ids of one answer."""
        with openai.OpenAI(base_url=self.url, api_key=self.key, timeout=180, max_retries=0) as api:
            answer = api.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=max_tokens,
                extra_body={"return_token_ids": True, "ignore_eos": True},
                **more,
            )
        return list(answer.choices[0].token_ids)
