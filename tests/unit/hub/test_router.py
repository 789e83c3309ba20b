"""A request finds a chain; its answer goes on elsewhere when that breaks, without a seam."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec import structs

from fleetapp.engine import pipe
from fleetapp.engine.exchange import RequestEvent
from fleetapp.errors import ChainBroken, NoCapacity, NotFound, RunnerFailed
from fleetapp.hub import router as routing
from fleetapp.hub.router import Router
from fleetapp.hub.service import Event, Queued, Served
from fleetapp.hub.stage import Stage
from fleetapp.types import SamplingParams, Usage
from tests.support.fake_hub import FakeHub

ANSWER = tuple(range(100, 112))


class FakeHead:
    """Answers with ``ANSWER``; ``breaks`` says after how many tokens of each attempt it fails."""

    def __init__(self) -> None:
        self.breaks: list[tuple[int, str]] = []
        self.seen: list[pipe.Generate] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.open = 0
        self.refuse = ""

    async def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]:
        self.seen.append(request)
        self.open += 1
        try:
            if self.refuse:
                yield pipe.Finished(
                    request.request_id, "error", Usage(0, 0), None, self.refuse, "No."
                )
                return
            yield pipe.Started(request.request_id, 3)
            await self.gate.wait()
            limit, code = self.breaks.pop(0) if self.breaks else (99, "")
            for count, token in enumerate(ANSWER[len(request.said) :]):
                if count == limit:
                    if code == "raise":
                        raise RunnerFailed("PC-2 left.")
                    yield pipe.Finished(
                        request.request_id, "error", Usage(3, 0), None, code, "It broke."
                    )
                    return
                yield pipe.Delta(request.request_id, chr(token), (token,))
                await asyncio.sleep(0)
            yield pipe.Finished(request.request_id, "stop", Usage(3, len(ANSWER)))
        finally:
            self.open -= 1

    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats:
        raise RunnerFailed("not asked here")

    async def trace(self, deadline: float = 5.0) -> pipe.Trace:
        return pipe.Trace(())


class Desk:
    def __init__(self, *names: str) -> None:
        self.hub = FakeHub(*(names or ("hub", "a")), stages=2)
        self.head = FakeHead()
        self.here = True
        self.router = Router(
            servers=lambda: (self.hub.server,),
            head=self._head,
            nodes_online=lambda: 2,
            created=1,
        )

    def _head(self, stage: Stage) -> FakeHead | None:
        return self.head if self.here else None

    async def live(self) -> None:
        self.hub.server.start()
        assert await self.hub.server.wait_live(5)

    async def answer(self, **more: object) -> list[Event]:
        return [e async for e in self.router.generate("m", ask(**more))]


def ask(request_id: str = "r", **more: object) -> pipe.Generate:
    return structs.replace(pipe.Generate(request_id, SamplingParams(), prompt="x"), **more)


async def keep(stream: AsyncIterator[Event], events: list[Event]) -> None:
    """Also what came before an error."""
    async for event in stream:
        events.append(event)  # noqa: PERF401


def ids(events: list[Event]) -> tuple[int, ...]:
    return tuple(t for e in events if isinstance(e, pipe.Delta) for t in e.token_ids)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    await made.live()
    yield made
    await made.hub.server.stop("done")


async def test_an_answer_is_passed_on_as_it_is(desk: Desk) -> None:
    served, started, *events = await desk.answer()
    assert served == Served("r", ("hub", "a"))
    assert isinstance(started, pipe.Started)
    assert ids(events) == ANSWER
    assert isinstance(events[-1], pipe.Finished)
    assert desk.head.open == 0
    assert desk.hub.chain.running == 0


@pytest.mark.parametrize("code", ["chain_broken", "runner_failed", "raise"])
async def test_an_answer_goes_on_from_the_token_it_had_reached(desk: Desk, code: str) -> None:
    desk.head.breaks = [(4, code), (0, code), (3, code)]
    events = await desk.answer()
    assert ids(events) == ANSWER, "nothing twice, nothing left out"
    assert [len(r.said) for r in desk.head.seen] == [0, 4, 4, 7]
    assert sum(isinstance(e, pipe.Started) for e in events) == 1
    assert isinstance(events[-1], pipe.Finished)
    assert events[-1].reason == "stop"


async def test_every_attempt_has_the_same_seed(desk: Desk) -> None:
    desk.head.breaks = [(2, "chain_broken")]
    await desk.answer()
    first, second = desk.head.seen
    assert first.sampling.seed is not None
    assert first.sampling.seed == second.sampling.seed
    await desk.answer(request_id="other")
    assert desk.head.seen[-1].sampling.seed != first.sampling.seed


async def test_an_error_of_the_request_itself_is_not_tried_again(desk: Desk) -> None:
    desk.head.breaks = [(0, "context_too_long")]
    events = await desk.answer()
    assert isinstance(events[-1], pipe.Finished)
    assert events[-1].code == "context_too_long"
    desk.head.refuse = "bad_request"
    (only,) = await desk.answer(request_id="other")
    assert isinstance(only, pipe.Finished), "an error that comes first comes alone"
    desk.head.refuse = ""
    assert len(desk.head.seen) == 2


async def test_who_took_over_is_told_with_the_end(desk: Desk) -> None:
    desk.head.gate.clear()
    task = asyncio.create_task(desk.answer())
    await asyncio.sleep(0.05)
    desk.hub.lose("a")
    assert await desk.hub.server.wait_live(5)
    desk.head.gate.set()
    events = await task
    assert [e.devices for e in events if isinstance(e, Served)] == [("hub", "a"), ("hub", "hub")]
    assert isinstance(events[-2], Served)


async def test_what_cannot_be_mended_in_time_ends_with_a_sentence(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "WAIT_LIVE", 0.3)
    desk.head.breaks = [(2, "chain_broken")] + [(0, "chain_broken")] * 50
    events: list[Event] = []

    with pytest.raises(ChainBroken, match="It broke") as caught:
        await keep(desk.router.generate("m", ask()), events)
    assert ids(events) == ANSWER[:2]
    assert caught.value.remedy
    assert desk.hub.chain.running == 0


async def test_a_request_waits_for_its_chain_and_hears_why_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routing, "WAIT_LIVE", 0.2)
    desk = Desk("hub")
    desk.hub.server.start()
    with pytest.raises(NoCapacity, match="1 of 2 PCs are ready") as caught:
        await desk.answer()
    assert "let a PC contribute" in caught.value.remedy
    desk.hub.come_back("a", session=9)
    assert ids(await desk.answer()) == ANSWER
    await desk.hub.server.stop("done")


async def test_unknown_models_are_named(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no model 'other'") as told:
        async for _ in desk.router.generate("other", ask()):
            pass
    assert told.value.remedy == f"Ask one that is served: {desk.hub.server.wanted.model_id}."


async def test_more_than_there_is_room_for_wait_in_a_queue_they_see(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing, "PLACES", 2)
    desk.head.gate.clear()
    tasks = [asyncio.create_task(desk.answer(request_id=str(i))) for i in range(4)]
    await asyncio.sleep(0.2)
    assert desk.head.open == 2
    (view,) = desk.hub.server.views()
    assert (view.running, view.waiting) == (2, 2), "the admin sees them, too"
    desk.head.gate.set()
    answers = await asyncio.gather(*tasks)
    assert [ids(a) for a in answers] == [ANSWER] * 4
    places = [[e.place for e in a if isinstance(e, Queued)] for a in answers]
    assert sorted(p[0] for p in places if p) == [1, 2]
    assert desk.hub.chain.running == 0


async def test_a_client_that_goes_away_leaves_nothing_behind(desk: Desk) -> None:
    desk.head.gate.clear()
    stream = desk.router.generate("m", ask())
    assert isinstance(await anext(stream), Served)
    assert isinstance(await anext(stream), pipe.Started)
    await stream.aclose()  # type: ignore[attr-defined]
    assert desk.head.open == 0
    assert desk.hub.chain.running == 0
