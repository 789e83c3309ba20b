"""kill -9 of any one process during an answer: the answer goes on, and not one token differs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import openai
import psutil
import pytest

from tests.support.served import MODEL, Served

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

Stream = openai.Stream[openai.types.chat.ChatCompletionChunk]
TOKENS = 96
STORY = [{"role": "user", "content": "Write a long story about a lighthouse."}]


@pytest.fixture(scope="module")
def fleet(library: Path) -> Iterator[Served]:
    with Served(3, "exact", library) as served:
        yield served


@pytest.fixture(scope="module")
def story(fleet: Served) -> list[int]:
    """The undisturbed answer."""
    return fleet.ask(STORY[0]["content"], TOKENS)


class Answer:
    """A long answer of which some tokens have come."""

    def __init__(self, fleet: Served) -> None:
        self.ids: list[int] = []
        self.times: list[float] = []
        self._stream: Stream = fleet.openai().chat.completions.create(
            model=MODEL,
            messages=STORY,
            max_tokens=TOKENS,
            stream=True,
            extra_body={"ignore_eos": True, "return_token_ids": True},
        )
        self.read(8)

    def read(self, until: int = TOKENS) -> list[int]:
        """More of it, to the end if nothing is said."""
        for chunk in self._stream:
            for choice in chunk.choices:
                ids = getattr(choice, "token_ids", None) or []
                self.ids += ids
                self.times += [time.monotonic()] * len(ids)
            if len(self.ids) >= until and until < TOKENS:
                break
        return self.ids

    @property
    def pause(self) -> float:
        """The longest time between two tokens (s)."""
        return max(b - a for a, b in zip(self.times, self.times[1:], strict=False))


def killed(fleet: Served, process: psutil.Process, story: list[int]) -> None:
    answer = Answer(fleet)
    process.kill()
    assert answer.read() == story
    assert answer.pause < 30.0
    fleet.wait_live(3)


@pytest.mark.parametrize("node", ["pc-1", "pc-2", "pc-3"])
def test_a_runner_dies(fleet: Served, story: list[int], node: str) -> None:
    killed(fleet, fleet.runners()[node], story)


def test_an_agent_dies_and_its_runner_with_it(fleet: Served, story: list[int]) -> None:
    runner = fleet.runners()["pc-2"]
    killed(fleet, fleet.agents()["pc-2"], story)
    runner.wait(10)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_pc_is_revoked_and_does_not_play_along(fleet: Served, story: list[int]) -> None:
    device = fleet.local("status", "pc-3")["device_id"]
    agent, runner = fleet.agents()["pc-3"], fleet.runners()["pc-3"]
    answer = Answer(fleet)
    assert ring_of(runner)
    agent.send_signal(signal.SIGSTOP)
    try:
        fleet.local("fleet/revoke", body={"device_id": device})
        revoked = time.monotonic()
        while ring_of(runner) and time.monotonic() < revoked + 5:
            time.sleep(0.01)
        assert time.monotonic() - revoked < 1.0, "the others close their ends at once"
        assert answer.read() == story
        chain = fleet.local("fleet")["chains"][0]
        assert device not in {a["device_id"] for a in chain["assignments"]}
    finally:
        agent.send_signal(signal.SIGCONT)
    # At once if the agent reads why it was cut; if it has slept too long for that, after the time
    # for which runners are kept when the coordinator is lost.
    runner.wait(75)
    fleet.local("fleet/reinstate", body={"device_id": device})
    fleet.wait_live(3)


def ring_of(runner: psutil.Process) -> list[tuple[str, int]]:
    """Who a runner is connected to."""
    found = runner.net_connections("tcp")
    return [tuple(c.raddr) for c in found if c.status == psutil.CONN_ESTABLISHED]


def test_the_coordinator_dies(fleet: Served, story: list[int]) -> None:
    children = psutil.Process(fleet.agents()["pc-1"].pid).children()
    others = {n: p.pid for n, p in fleet.runners().items() if n != "pc-1"}
    answer = Answer(fleet)
    fleet.agents()["pc-1"].kill()
    started = time.monotonic()
    with pytest.raises((openai.APIConnectionError, openai.APIError, OSError, Exception)) as caught:
        answer.read()
    assert time.monotonic() - started < 5.0
    assert not isinstance(caught.value, AssertionError)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == [], "its runner ends with it"
    fleet.wait_live(3)
    assert {n: p.pid for n, p in fleet.runners().items() if n != "pc-1"} == others, (
        "what the others hold is adopted"
    )
    assert fleet.ask(STORY[0]["content"], TOKENS) == story
