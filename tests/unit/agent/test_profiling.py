"""When this PC measures, what it remembers, and what it tells the hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from fleetapp.agent.held import LinkedStage
from fleetapp.agent.profiling import (
    FRESH_SECONDS,
    KEPT,
    TIMES,
    Measuring,
    MeteredSource,
    ProfileFile,
    profile_of,
)
from fleetapp.agent.supervisor import RunnerProcess
from fleetapp.engine import pipe
from fleetapp.errors import NoHub, RunnerFailed
from fleetapp.fleet.control import HopMeasurement, ProfileReport
from fleetapp.models.manifest import decode_stage
from fleetapp.types import LayerRange
from fleetapp.wire.meter import Meter
from tests.support.fake_runner import stage_folder

POINTS = (pipe.Point(1, 0.01), pipe.Point(2, 0.011))
FOUND = pipe.Measured(POINTS, POINTS, (pipe.Point(32, 0.1),), complete=True, seconds=1.0)


@dataclass
class Runner:
    """Stands for a process: says what it is told to."""

    found: pipe.Measured = FOUND
    seen: tuple[pipe.Hop, ...] = ()
    asked: int = 0

    async def measure(self, order: pipe.Measure) -> pipe.Measured:
        self.asked += 1
        return self.found

    async def hops(self) -> pipe.Hops:
        return pipe.Hops(self.seen)


@dataclass
class World:
    folder: Path
    runner: Runner = field(default_factory=Runner)
    now: float = 1e9
    allowed: bool = True
    told: list[ProfileReport] = field(default_factory=list)
    hub: bool = True
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        stage = decode_stage((stage_folder(self.folder / "s", 0, 3) / "stage.json").read_bytes())
        runner = cast("RunnerProcess", self.runner)
        self.stage = LinkedStage(runner, stage, "fast", "CPU", "runtime 1")
        self.measuring = self.restarted()

    def restarted(self) -> Measuring:
        self.file = ProfileFile(self.folder / "profiles.json", lambda: self.now)
        return Measuring(
            self.file,
            lambda: [self.stage],
            self.meter.estimates,
            self.send,
            lambda: self.allowed,
        )

    async def send(self, report: ProfileReport) -> None:
        if not self.hub:
            raise NoHub("gone")
        self.told.append(report)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def looks(world: World, count: int = TIMES + 2, pause: float = 20.0) -> None:
    for _ in range(count):
        await world.measuring.look()
        world.now += pause


async def test_a_loaded_stage_is_measured_a_few_times_and_reported(world: World) -> None:
    await looks(world)
    assert world.runner.asked == TIMES
    first, *others = world.told
    assert first.profiles == ()
    assert len(others) == TIMES
    (profile,) = others[-1].profiles
    assert profile.layers == LayerRange(0, 3)
    assert (profile.first, profile.last) == (True, False)
    assert profile.decode == ((1, 0.01), (2, 0.011))


async def test_it_is_remembered_across_restarts_and_told_to_a_new_hub(world: World) -> None:
    await looks(world, TIMES)
    again = world.restarted()
    await again.look()
    assert world.runner.asked == TIMES
    assert [p.age for p in world.told[-1].profiles] == pytest.approx([60.0, 40.0, 20.0])
    again.greeted()
    await again.look()
    assert len(world.told) == TIMES + 3


@pytest.mark.parametrize("what", ["age", "runtime", "layers", "device", "precision"])
async def test_what_is_old_or_other_is_measured_again(world: World, what: str) -> None:
    await looks(world)
    changes: dict[str, Any] = {"runtime": "runtime 2", "device": "GPU", "precision": "exact"}
    if what == "age":
        world.now += FRESH_SECONDS + 1
    elif what == "layers":
        manifest = structs.replace(world.stage.manifest, layers=LayerRange(0, 2))
        world.stage = replace(world.stage, manifest=manifest)
    else:
        world.stage = replace(world.stage, **{what: changes[what]})
    await looks(world)
    assert world.runner.asked == 2 * TIMES


async def test_of_one_shard_the_newest_few_are_kept(world: World) -> None:
    for _ in range(3):
        await looks(world)
        world.now += FRESH_SECONDS + 1
    assert len(world.file.all()) == TIMES
    assert max(p.age for p in world.file.all()) < 2 * FRESH_SECONDS


async def test_a_clock_that_was_put_back_measures_again_and_reports_no_future(world: World) -> None:
    await looks(world)
    world.now -= 1e6
    assert world.file.all() == ()
    await world.measuring.look()
    assert world.runner.asked == TIMES + 1


async def test_nothing_is_measured_while_the_user_needs_the_pc(world: World) -> None:
    world.allowed = False
    await world.measuring.look()
    assert world.runner.asked == 0
    assert world.told == []


async def test_a_disturbed_measurement_is_made_again(world: World) -> None:
    world.runner.found = structs.replace(FOUND, complete=False)
    await world.measuring.look()
    assert [r.profiles for r in world.told] == [()]
    world.runner.found = FOUND
    await world.measuring.look()
    assert world.runner.asked == 2
    assert len(world.told) == 2


async def test_links_are_reported_when_they_are_new_or_have_changed(world: World) -> None:
    await world.measuring.look()
    world.told.clear()
    for rtt in (0.01, 0.0105, 0.02):
        world.runner.seen = (pipe.Hop("b", rtt, 1e6),)
        await world.measuring.look()
    hops = [h for report in world.told for h in report.hops]
    assert hops == [HopMeasurement("b", 0.01, 1e6), HopMeasurement("b", 0.02, 1e6)]


class Pieces:
    """A source that takes half a second for each piece of 512 KiB, after a second's wait."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        self.world.now += 1
        for _ in range(int(sha256)):
            yield b"x" * (1 << 19)
            self.world.now += 0.5


async def test_downloads_tell_the_rate_of_the_link_from_the_hub(world: World) -> None:
    source = MeteredSource(Pieces(world), world.meter, lambda: "hub", lambda: world.now)
    pieces = [piece async for piece in source.read("9", 0)]
    assert len(pieces) == 9
    await world.measuring.look()
    (hop,) = [h for report in world.told for h in report.hops]
    assert (hop.peer, hop.rtt) == ("hub", 0.0)
    assert hop.bandwidth == pytest.approx(1 << 20, rel=0.5)


async def test_a_short_download_tells_nothing(world: World) -> None:
    source = MeteredSource(Pieces(world), world.meter, lambda: "hub", lambda: world.now)
    assert len([piece async for piece in source.read("1", 0)]) == 1
    assert world.meter.estimates() == ()


async def test_a_hub_that_is_gone_is_told_later(world: World) -> None:
    world.hub = False
    with pytest.raises(NoHub):
        await world.measuring.look()
    world.hub = True
    await world.measuring.look()
    assert len(world.told) == 2


async def test_a_file_that_cannot_be_read_counts_as_none(world: World) -> None:
    (world.folder / "profiles.json").write_bytes(b"{nonsense")
    measuring = world.restarted()
    await measuring.look()
    assert world.runner.asked == 1
    assert len(ProfileFile(world.folder / "profiles.json", lambda: world.now).all()) == 1


def test_only_so_many_are_remembered(world: World) -> None:
    for layer in range(KEPT + 5):
        profile = profile_of(FOUND, world.stage)
        world.file.add(structs.replace(profile, layers=LayerRange(layer, layer + 1)))
    assert len(world.file.all()) == KEPT


async def test_a_real_runner_that_is_gone_says_so() -> None:
    runner = RunnerProcess("x", on_event=lambda _: None, on_exit=lambda _: None)
    with pytest.raises(RunnerFailed):
        await runner.measure(pipe.Measure())
