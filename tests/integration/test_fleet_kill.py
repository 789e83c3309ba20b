"""kill -9 of any one process during an answer: a typed error at once, then business as usual."""

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


@pytest.fixture(scope="module")
def fleet(library: Path) -> Iterator[Served]:
    with Served(3, "fast", library) as served:
        yield served


def begin(fleet: Served) -> openai.Stream[openai.types.chat.ChatCompletionChunk]:
    """A long answer of which some tokens have come."""
    stream = fleet.openai().chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Write a long story about a lighthouse."}],
        max_tokens=1500,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    for index, _ in enumerate(stream):
        if index == 8:
            break
    return stream


def rest(stream: openai.Stream[openai.types.chat.ChatCompletionChunk]) -> float:
    """Seconds from now until the stream has ended, however."""
    started = time.monotonic()
    for _ in stream:
        pass
    return time.monotonic() - started


def answers_again(fleet: Served) -> None:
    answer = fleet.openai(timeout=60).chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        max_tokens=24,
    )
    assert "Paris" in (answer.choices[0].message.content or "")


def killed(fleet: Served, process: psutil.Process, codes: set[str]) -> None:
    stream = begin(fleet)
    process.kill()
    started = time.monotonic()
    with pytest.raises(openai.APIError) as caught:
        rest(stream)
    assert time.monotonic() - started < 5.0
    assert caught.value.code in codes, caught.value
    assert str(caught.value), "a sentence for people"
    answers_again(fleet)
    fleet.wait_live(3)


@pytest.mark.parametrize("node", ["pc-1", "pc-2", "pc-3"])
def test_a_runner_dies(fleet: Served, node: str) -> None:
    killed(fleet, fleet.runners()[node], {"chain_broken", "runner_failed"})


def test_an_agent_dies_and_its_runner_with_it(fleet: Served) -> None:
    runner = fleet.runners()["pc-2"]
    killed(fleet, fleet.agents()["pc-2"], {"chain_broken", "runner_failed"})
    runner.wait(10)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_pc_is_revoked_and_does_not_play_along(fleet: Served) -> None:
    device = fleet.local("status", "pc-3")["device_id"]
    agent, runner = fleet.agents()["pc-3"], fleet.runners()["pc-3"]
    stream = begin(fleet)
    assert ring_of(runner)
    agent.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        fleet.local("fleet/revoke", body={"device_id": device})
        cut = seconds_until_alone(runner, started)
        with pytest.raises(openai.APIError) as caught:
            rest(stream)
        assert time.monotonic() - started < 5.0
        assert cut < 1.0, "the others have closed their ends of the data connections"
        assert caught.value.code == "chain_broken"
        chain = fleet.wait_live(2)
        assert device not in {a["device_id"] for a in chain["assignments"]}
        assert ring_of(runner) == []
        answers_again(fleet)
    finally:
        agent.send_signal(signal.SIGCONT)
    # At once if the agent reads why it was cut; if it has slept too long for that, after the ten
    # seconds for which runners are kept when the coordinator is lost.
    runner.wait(25)
    fleet.local("fleet/reinstate", body={"device_id": device})
    fleet.wait_live(3)
    answers_again(fleet)


def seconds_until_alone(runner: psutil.Process, started: float) -> float:
    """How long after ``started`` nobody was connected to a runner any more."""
    while ring_of(runner):
        assert time.monotonic() - started < 20.0, "still connected"
        time.sleep(0.01)
    return time.monotonic() - started


def ring_of(runner: psutil.Process) -> list[tuple[str, int]]:
    """Who a runner is connected to."""
    found = runner.net_connections("tcp")
    return [tuple(c.raddr) for c in found if c.status == psutil.CONN_ESTABLISHED]


def test_the_coordinator_dies(fleet: Served) -> None:
    children = psutil.Process(fleet.agents()["pc-1"].pid).children()
    stream = begin(fleet)
    fleet.agents()["pc-1"].kill()
    started = time.monotonic()
    with pytest.raises((openai.APIConnectionError, openai.APIError, OSError, Exception)) as caught:
        rest(stream)
    assert time.monotonic() - started < 5.0
    assert not isinstance(caught.value, AssertionError)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == [], "its runner ends with it"
    fleet.wait_live(3)
    answers_again(fleet)
