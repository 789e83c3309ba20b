"""What an admin's window is told: names, certificates, temperatures, what chains do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from fleetapp.engine.pipe import ChainStats, RunnerStats, StageTotals
from fleetapp.errors import BadRequest, NotFound
from fleetapp.fleet.control import Heartbeat, HopMeasurement
from fleetapp.hub.admin import HubAdmin
from fleetapp.hub.links import LinkBook
from fleetapp.hub.loads import Loads, load_between
from fleetapp.hub.service import ChainReport
from fleetapp.types import ChainLoad, ChainView, DeviceId, NodeView
from tests.support.fleet import TestMember
from tests.support.hubs import Line, TestHub, hello


@pytest.fixture
def home(tmp_path: Path) -> TestHub:
    return TestHub(tmp_path)


def seen(home: TestHub, member: TestMember) -> NodeView:
    device = member.identity.device_id
    return next(n for n in home.hub.view().nodes if n.device_id == device)


def beat(**fields: object) -> Heartbeat:
    return Heartbeat(1, 1, 1, True, **fields)  # type: ignore[arg-type]


async def test_certificate_and_temperature_are_shown_and_follow_the_heartbeats(
    home: TestHub,
) -> None:
    anna = home.enrol("anna")
    line = Line(home, anna)
    assert (seen(home, anna).certificate_ends, seen(home, anna).temperature) == (None, None)
    home.hub.received(line.session, beat(certificate_ends=1.8e9, temperature=61.0))
    home.hub.received(line.session, beat(temperature=62.0))
    assert seen(home, anna).certificate_ends == 1.8e9, "told once, not with every heartbeat"
    assert seen(home, anna).temperature == 62.0
    home.hub.received(line.session, beat())
    assert seen(home, anna).temperature is None, "the sensor is gone"
    home.hub.detach(line.session)
    assert seen(home, anna).certificate_ends is None


async def test_a_hello_brings_the_certificates_end(home: TestHub) -> None:
    anna = home.enrol("anna")
    greeting = structs.replace(hello(anna.identity), certificate_ends=1.9e9)

    async def nothing(*_: object) -> None: ...

    home.hub.attach(anna.identity.spki, greeting, "192.0.2.7", nothing, nothing)
    assert seen(home, anna).certificate_ends == 1.9e9


async def test_the_admins_name_for_a_pc_outlives_what_the_pc_says(home: TestHub) -> None:
    anna = home.enrol("anna")
    device = anna.identity.device_id
    admin = HubAdmin(home.hub, "boss")
    await admin.rename(device, " Front desk ")
    await admin.rename(device, "Front desk")
    greeting = structs.replace(hello(anna.identity), name="DESKTOP-8F2A")

    async def nothing(*_: object) -> None: ...

    def connect() -> None:
        home.hub.attach(anna.identity.spki, greeting, "192.0.2.7", nothing, nothing)

    connect()
    assert seen(home, anna).name == "Front desk"
    home.restart()
    connect()
    assert seen(home, anna).name == "Front desk", "after a restart too"
    await HubAdmin(home.hub, "boss").rename(device, "")
    assert seen(home, anna).name == "DESKTOP-8F2A", "its own again, at once: it is connected"
    said = [(e.actor, e.action, e.details["name"]) for e in home.hub.audit.last(9)]
    assert said == [("boss", "renamed", "Front desk"), ("boss", "renamed", "")]


@pytest.mark.parametrize("name", ["two\nlines", "x" * 65, "tab\there"])
async def test_what_is_no_name_is_refused(home: TestHub, name: str) -> None:
    anna = home.enrol("anna")
    with pytest.raises(BadRequest):
        await HubAdmin(home.hub, "local").rename(anna.identity.device_id, name)
    assert seen(home, anna).name == "anna"
    with pytest.raises(NotFound):
        await HubAdmin(home.hub, "local").rename("nobody", "x")


def test_links_tell_what_was_measured_and_nothing_else() -> None:
    book = LinkBook(lambda: 0.0)
    book.add("a", [HopMeasurement("b", rtt=0.002, bandwidth=5e7)])
    a, b, c = DeviceId("a"), DeviceId("b"), DeviceId("c")
    assert book.rtt(a, b) == book.rtt(b, a) == 0.002
    assert (book.rate(b, a), book.rate(a, b)) == (5e7, 0.0), "by direction"
    assert (book.rtt(a, c), book.rate(a, c)) == (0.0, 0.0)


# ---------------------------------------------------------------------- what chains do


def stats(**fields: object) -> ChainStats:
    zero: dict[str, object] = {
        "steps": 0, "sequences": 0, "prefill_tokens": 0, "decode_tokens": 0, "wire_seconds": 0.0,
        "wait_seconds": 0.0, "stages": (StageTotals(0, 0, 0), StageTotals(0, 0, 0)),
    }  # fmt: skip
    return ChainStats(**(zero | fields))  # type: ignore[arg-type]


def test_rates_are_those_of_the_time_between_two_counts() -> None:
    now = stats(
        steps=10, sequences=20, decode_tokens=60, wire_seconds=0.1, wait_seconds=0.05,
        stages=(StageTotals(0.0, 0.2, 0.1), StageTotals(0.1, 0.4, 0.0)),
        drafted=(20, 20), accepted=(15, 5),
    )  # fmt: skip
    load = load_between(stats(), now, 2.0, ChainLoad())
    assert load.tokens_per_second == 20.0, "60 positions, 20 of them wrong guesses, in 2 s"
    assert (load.step, load.wire, load.stages) == (0.095, 0.01, (0.03, 0.05))
    assert (load.width, load.acceptance) == (2.0, 0.5)


@pytest.mark.parametrize(
    ("earlier", "now", "seconds"),
    [
        (stats(steps=5), stats(steps=5), 1.0),
        (stats(steps=5, decode_tokens=99), stats(steps=1, decode_tokens=1), 1.0),
        (stats(), stats(steps=9, decode_tokens=9), 30.0),
        (stats(), stats(steps=9, decode_tokens=9), 0.0),
        (stats(stages=()), stats(steps=9, decode_tokens=9), 1.0),
    ],
    ids=["rest", "a new head", "long ago", "no time", "another chain"],
)
def test_a_chain_at_rest_keeps_its_times_and_makes_nothing(
    earlier: ChainStats, now: ChainStats, seconds: float
) -> None:
    last = ChainLoad(9.0, 0.5, (0.2, 0.2), 0.1, 3.0, 0.7)
    assert load_between(earlier, now, seconds, last) == ChainLoad(0.0, 0.5, (0.2, 0.2), 0.1)


async def test_heads_are_asked_once_however_many_watch_and_only_news_is_told() -> None:
    counts = iter([stats(), stats(steps=2, decode_tokens=8), stats(steps=2, decode_tokens=8)])
    asked, news, now = [], [], [100.0]
    chain = ChainView("c", "m", "fast", 1, "live", "")

    async def reports() -> list[ChainReport]:
        asked.append(now[0])
        counted = RunnerStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, next(counts))
        return [ChainReport(chain, counted), ChainReport(structs.replace(chain, chain="no head"))]

    loads = Loads(reports, lambda: news.append(loads.of("c")), clock=lambda: now[0])
    for _ in range(3):
        for _ in range(3):
            loads.look()
        await asyncio.sleep(0.01)
        now[0] += 1.0
    assert len(asked) == 3
    first, second, third = news
    assert first == ChainLoad()
    assert second is not None
    assert second.tokens_per_second == 8.0
    assert third is not None
    assert third.tokens_per_second == 0.0
    assert loads.of("no head") is None
    await loads.stop()
