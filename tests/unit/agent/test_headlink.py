"""A head on another PC answers as one on this: hub and member joined by their own messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from fleetapp.agent.headlink import HeadLink
from fleetapp.engine import pipe
from fleetapp.engine.exchange import RequestEvent
from fleetapp.engine.pipe_io import pack
from fleetapp.errors import Malformed, NotAMember, RunnerFailed
from fleetapp.fleet.control import FromHead, FromHub, FromMember, StageStatus, ToHead
from fleetapp.hub.heads import RemoteHeads
from fleetapp.hub.stage import Candidate, Stage, StagePlan
from fleetapp.types import DeviceId, LayerRange, SamplingParams, Usage

ANNA = DeviceId("anna")


class Runner:
    """Says numbers until it is told to stop."""

    def __init__(self) -> None:
        self.count = 5
        self.gate = asyncio.Event()
        self.gate.set()
        self.open = 0
        self.dies_after: int | None = None
        self.closed = asyncio.Event()

    async def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]:
        self.open += 1
        try:
            yield pipe.Started(request.request_id, 1)
            for i in range(len(request.said), self.count):
                await self.gate.wait()
                if i == self.dies_after:
                    raise RunnerFailed("It died.")
                yield pipe.Delta(request.request_id, f"{i}日", (i,))
            yield pipe.Finished(request.request_id, "stop", Usage(1, self.count))
        finally:
            self.open -= 1
            if not self.open:
                self.closed.set()

    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats:
        return pipe.RunnerStats(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1.0, 11)

    async def trace(self, deadline: float = 5.0) -> pipe.Trace:
        return pipe.Trace(())


class Pair:
    def __init__(self) -> None:
        self.runner: Any = Runner()
        self.connected = True
        self.heads = RemoteHeads(self._to_member)
        self.link = HeadLink(lambda name: self.runner if name == "c.1.0" else None, self._to_hub)
        self.messages = 0

    async def _to_member(self, device: DeviceId, message: FromHub) -> None:
        if not self.connected:
            raise NotAMember("not connected")
        heard = msgspec.json.decode(msgspec.json.encode(message), type=FromHub)
        assert isinstance(heard, ToHead)
        self.link.hear(heard)

    async def _to_hub(self, message: FromHead) -> None:
        self.messages += 1
        heard = msgspec.json.decode(msgspec.json.encode(message), type=FromMember)
        assert isinstance(heard, FromHead)
        self.heads.hear(ANNA, heard)
        await asyncio.sleep(0)

    async def lose(self) -> None:
        self.connected = False
        await self.link.drop()
        self.heads.device_lost(ANNA)


def stage(assignment: str = "c.1.0", session: int = 1) -> Stage:
    candidate = Candidate(ANNA, "ANNA-PC", "spki", (), 1, False, session)
    plan = StagePlan(ANNA, "ANNA-PC", LayerRange(0, 2), 1)
    return Stage(assignment, plan, candidate, 0, 1, StageStatus(assignment, "ready"))


def ask(request_id: str = "r", **more: Any) -> pipe.Generate:
    return pipe.Generate(request_id, SamplingParams(), prompt="x", **more)


async def test_an_answer_comes_whole_and_in_order() -> None:
    pair = Pair()
    events = [e async for e in pair.heads.get(stage()).generate(ask(said=(0, 1)))]
    assert [type(e) for e in events] == [pipe.Started, *[pipe.Delta] * 3, pipe.Finished]
    assert [e.text for e in events if isinstance(e, pipe.Delta)] == ["2日", "3日", "4日"]


async def test_several_answers_do_not_mix() -> None:
    pair = Pair()
    pair.runner.count = 40
    head = pair.heads.get(stage())

    async def answer(name: str) -> list[int]:
        found = [e async for e in head.generate(ask(name))]
        assert {e.request_id for e in found} == {name}
        return [t for e in found if isinstance(e, pipe.Delta) for t in e.token_ids]

    answers = await asyncio.gather(*(answer(str(i)) for i in range(5)))
    assert answers == [list(range(40))] * 5
    assert pair.messages < 5 * 42, "what lies there goes together"


async def test_leaving_early_ends_it_at_the_runner() -> None:
    pair = Pair()
    pair.runner.count = 10_000
    stream = pair.heads.get(stage()).generate(ask())
    assert isinstance(await anext(stream), pipe.Started)
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(pair.runner.closed.wait(), 5)


async def test_a_runner_that_dies_ends_the_answer_with_its_error() -> None:
    pair = Pair()
    pair.runner.dies_after = 2
    events = [e async for e in pair.heads.get(stage()).generate(ask())]
    assert isinstance(events[-1], pipe.Finished)
    assert (events[-1].code, events[-1].message) == ("runner_failed", "It died.")


async def test_a_shard_that_is_not_there_is_said() -> None:
    pair = Pair()
    events = [e async for e in pair.heads.get(stage("c.9.0")).generate(ask())]
    assert [type(e) for e in events] == [pipe.Finished]


async def test_losing_the_member_ends_every_answer_with_its_name() -> None:
    pair = Pair()
    pair.runner.gate.clear()
    head = pair.heads.get(stage())
    stream = head.generate(ask())
    assert isinstance(await anext(stream), pipe.Started)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await pair.lose()
    end = await waiting
    assert isinstance(end, pipe.Finished)
    assert "ANNA-PC" in end.message
    with pytest.raises(RunnerFailed, match="ANNA-PC"):
        await anext(pair.heads.get(stage()).generate(ask("again")))
    assert pair.runner.open == 0


async def test_a_new_connection_is_another_head() -> None:
    pair = Pair()
    first = pair.heads.get(stage())
    assert pair.heads.get(stage()) is first
    assert pair.heads.get(stage(session=2)) is not first


async def test_counters_can_be_asked_for() -> None:
    pair = Pair()
    head = pair.heads.get(stage())
    assert (await head.stats()).rss == 11
    assert (await head.trace()).steps == ()
    pair.runner = None
    with pytest.raises(RunnerFailed, match="in time"):
        await head.stats(0.05)


async def test_only_what_a_hub_may_say_is_heard() -> None:
    pair = Pair()
    pair.link.hear(ToHead("c.1.0", pack(pipe.Unlink("away"))))
    assert pair.runner.open == 0
    for junk in (b"", b"abc", b"\x00\x00\x00\x05abc", pack(ask())[:-1]):
        with pytest.raises(Malformed):
            pair.link.hear(ToHead("c.1.0", junk))
        pair.heads.get(stage())
        with pytest.raises(Malformed):
            pair.heads.hear(ANNA, FromHead("c.1.0", (junk,)))


async def test_another_member_cannot_speak_for_a_head() -> None:
    pair = Pair()
    pair.runner.gate.clear()
    stream = pair.heads.get(stage()).generate(ask())
    await anext(stream)
    forged = pack(pipe.Delta("r", "forged", (1,)))
    pair.heads.hear(DeviceId("mallory"), FromHead("c.1.0", (forged,)))
    pair.runner.gate.set()
    texts = [e.text async for e in stream if isinstance(e, pipe.Delta)]
    assert texts == [f"{i}日" for i in range(5)]
