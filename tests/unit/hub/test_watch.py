"""The admin's view comes by itself with every change, and not without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from fleetapp.fleet.control import SUSPECT_AFTER, Heartbeat
from fleetapp.hub import watch
from fleetapp.types import FleetView
from tests.support.hubs import Line, TestHub


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


async def following(views: AsyncIterator[FleetView]) -> FleetView:
    return await asyncio.wait_for(anext(views), 5)


def state(view: FleetView, name: str) -> tuple[str, bool]:
    return next((n.state, n.contribute) for n in view.nodes if n.name == name)


def beat(contribute: bool) -> Heartbeat:
    return Heartbeat(1, 1 << 30, 1 << 30, contribute)


async def test_a_change_is_shown_and_a_heartbeat_is_none(home: TestHub) -> None:
    anna = home.enrol("anna")
    async with aclosing(watch.views(home.hub, lambda: False, pause=0.01)) as views:
        assert state(await following(views), "anna") == ("offline", False)
        line = Line(home, anna)
        assert state(await following(views), "anna") == ("online", True)
        waiting = asyncio.ensure_future(anext(views))
        for _ in range(3):
            home.hub.received(line.session, beat(True))
            await asyncio.sleep(0.05)
        assert not waiting.done(), "nothing that people see has changed"
        home.hub.received(line.session, beat(False))
        assert state(await asyncio.wait_for(waiting, 5), "anna") == ("online", False)


async def test_who_falls_silent_is_shown_although_nobody_reports_it(home: TestHub) -> None:
    line = Line(home, home.enrol("anna"))
    async with aclosing(watch.views(home.hub, lambda: False, pause=0.01)) as views:
        await following(views)
        line.session.last_heard -= SUSPECT_AFTER + 0.5
        assert state(await following(views), "anna")[0] == "suspected"


async def test_who_asks_to_be_let_in_is_shown(home: TestHub) -> None:
    code = home.codes.create(hours=1.0, uses=1, approve=True)
    async with aclosing(watch.views(home.hub, lambda: False, pause=0.01)) as views:
        await following(views)
        assert home.ask(home.newcomer("carl"), code.code, "carl").pending
        assert state(await following(views), "carl")[0] == "pending"


async def test_figures_that_nobody_reports_are_shown_after_a_while(
    home: TestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "REFRESH", 0.2)
    monkeypatch.setattr(watch, "LOOK_EVERY", 0.05)
    line = Line(home, home.enrol("anna"))
    async with aclosing(watch.views(home.hub, lambda: False, pause=0.01)) as views:
        await following(views)
        home.hub.received(line.session, msgspec.structs.replace(beat(True), temperature=70.0))
        heat = {n.name: n.temperature for n in (await following(views)).nodes}
        assert heat["anna"] == 70.0


async def test_a_burst_is_shown_once(home: TestHub) -> None:
    members = [home.enrol(f"pc-{n}") for n in range(20)]
    async with aclosing(watch.views(home.hub, lambda: False, pause=0.1)) as views:
        await following(views)
        for member in members:
            Line(home, member)
        shown = await following(views)
        assert sum(n.state == "online" for n in shown.nodes) == 20


async def test_it_ends_when_it_is_over(home: TestHub) -> None:
    over = False
    views = watch.views(home.hub, lambda: over, pause=0.01)
    await following(views)
    over = True
    with pytest.raises(StopAsyncIteration):
        await following(views)
    assert home.hub._listeners == set()


async def test_a_view_of_500_members_stays_small(home: TestHub) -> None:
    """The stream sends it whole with each change; so much is still nothing on loopback."""
    anna = home.enrol("anna")
    Line(home, anna)
    [alone] = [n for n in home.hub.view().nodes if n.name == "anna"]
    size = len(msgspec.json.encode(alone))
    assert 500 * size < 512 * 1024, size
