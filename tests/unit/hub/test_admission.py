"""Who is let in, in which order, and what those who wait are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from fleetapp.errors import NoCapacity
from fleetapp.hub import admission
from fleetapp.hub.admission import PATIENCE, Admission
from fleetapp.types import Priority


class Desk:
    """``places`` requests may run; those let in do until ``leave``."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.running = 0
        self.queue = Admission(lambda: self.places - self.running)
        self.entered: list[str] = []
        self.told: dict[str, list[int]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def come(self, name: str, priority: Priority = "interactive") -> None:
        self.told[name] = []
        self.tasks[name] = asyncio.create_task(self._enter(name, priority))

    async def _enter(self, name: str, priority: Priority) -> None:
        places: AsyncGenerator[int] = self.queue.enter(priority)
        try:
            async for place in places:
                self.told[name].append(place)
        finally:
            await places.aclose()
        self.entered.append(name)
        self.running += 1
        self.queue.started()

    async def leave(self) -> None:
        self.running -= 1
        self.queue.look()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_those_there_is_room_for_enter_at_once_and_hear_nothing() -> None:
    desk = Desk(2)
    desk.come("a")
    desk.come("b")
    await settle()
    assert desk.entered == ["a", "b"]
    assert desk.told == {"a": [], "b": []}


async def test_the_others_see_their_place_and_how_it_falls() -> None:
    desk = Desk(1)
    for name in "abc":
        desk.come(name)
    await settle()
    assert desk.entered == ["a"]
    assert desk.told == {"a": [], "b": [1], "c": [2]}
    await desk.leave()
    assert desk.entered == ["a", "b"]
    assert desk.told["c"] == [2, 1]


async def test_who_leaves_the_queue_makes_room_for_those_behind() -> None:
    desk = Desk(1)
    for name in "abc":
        desk.come(name)
    await settle()
    desk.tasks["b"].cancel()
    await settle()
    assert desk.told["c"] == [2, 1]
    assert desk.queue.waiting == 1
    await desk.leave()
    assert desk.entered == ["a", "c"]


async def test_people_go_before_batch_work_but_not_for_ever() -> None:
    desk = Desk(1)
    desk.come("first")
    await settle()
    desk.come("batch", "batch")
    for i in range(2 * PATIENCE):
        desk.come(f"person {i}")
    await settle()
    assert desk.told["batch"][-1] == 2 * PATIENCE + 1
    for _ in range(2 * PATIENCE):
        await desk.leave()
    assert "batch" in desk.entered[: PATIENCE + 1]


async def test_room_is_not_given_twice_before_it_is_taken() -> None:
    desk = Desk(1)
    desk.come("a")
    desk.come("b")
    desk.queue.look()
    desk.queue.look()
    await settle()
    assert desk.entered == ["a"]


async def test_a_full_queue_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_WAITING", 2)
    desk = Desk(0)
    desk.come("a")
    desk.come("b")
    await settle()
    with pytest.raises(NoCapacity, match="2 requests are waiting"):
        await anext(desk.queue.enter("interactive"))
    for task in desk.tasks.values():
        task.cancel()
