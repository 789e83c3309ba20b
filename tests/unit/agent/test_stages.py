"""This PC's runners, as real processes over the fake executor: rings formed, left, formed anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from fleetapp.agent.held import RunnerSetup
from fleetapp.agent.profiling import Measuring, ProfileFile
from fleetapp.agent.stages import Outgoing, StageHost
from fleetapp.agent.supervisor import RunnerProcess
from fleetapp.engine import pipe
from fleetapp.errors import NotFound
from fleetapp.fleet.control import (
    Assign,
    FaultReport,
    LinkStage,
    Neighbour,
    ProfileReport,
    Signed,
    StageStatus,
)
from fleetapp.models.manifest import decode_stage
from fleetapp.models.store import ShardStore
from fleetapp.types import LayerRange, SamplingParams
from tests.support.fake_executor import reference
from tests.support.fake_runner import MODEL, stage_folder
from tests.support.fleet import TestFleet, TestMember, shown_by

DEADLINE = 30.0


class Nothing:
    """A source of chunks that has none: every shard here was made here."""

    async def read(self, sha256: str, offset: int) -> AsyncIterator[bytes]:
        raise NotFound("There is nothing here.")
        yield b""


class PC:
    """One member's stage host, which holds ``start`` to ``stop`` of the fake model's layers."""

    def __init__(self, root: Path, member: TestMember, start: int, stop: int) -> None:
        self.member = member
        self.folder = stage_folder(root / f"made{start}", start, stop)
        self.payload = (self.folder / "stage.json").read_bytes()
        self.start = start
        self.strangers: set[str] = set()
        """Keys of PCs that are members no more."""
        self.said: list[Outgoing] = []
        self.news = asyncio.Event()
        credentials = member.enrolment.credentials
        self.setup = RunnerSetup(
            device="CPU",
            threads=1,
            kv_bytes=1 << 20,
            cache_dir=None,
            listen_host="127.0.0.1",
            listen_port=0,
            cert_path=credentials.leaf_path,
            key_path=credentials.key_path,
            authority_path=credentials.leaf_path.with_name("authority.crt"),
            fleet=credentials.fleet_id,
            device_id=credentials.device_id,
            name=f"PC-{start}",
        )
        self.host = StageHost(
            store=ShardStore(root / f"store{start}"),
            source=Nothing(),
            setup=lambda: self.setup,
            made_here=lambda _: self.folder,
            verify=lambda _: None,
            trusted=lambda spki: spki not in self.strangers,
            report=self._report,
            changed=lambda: None,
            runner=partial(RunnerProcess, module="tests.support.fake_runner"),
        )

    async def _report(self, message: Outgoing) -> None:
        self.said.append(message)
        self.news.set()

    async def until(self, true: Callable[[Outgoing], bool]) -> Outgoing:
        """Wait for a report of which it is true."""
        async with asyncio.timeout(DEADLINE):
            while True:
                for message in self.said:
                    if true(message):
                        return message
                self.news.clear()
                await self.news.wait()

    async def phase(self, phase: str, epoch: int = 0) -> StageStatus:
        found = await self.until(
            lambda m: isinstance(m, StageStatus) and (m.phase, m.epoch) == (phase, epoch)
        )
        assert isinstance(found, StageStatus)
        return found

    @property
    def runner(self) -> RunnerProcess:
        runner = self.host.runner("a")
        assert runner is not None
        return runner

    async def assign(self, index: int, count: int) -> None:
        manifest = decode_stage(self.payload)
        await self.host.assign(
            Assign("a", "c", "fake", index, count, manifest.layers, index == 0,
                   Signed(self.payload, b"", "ab" * 32), "exact", 0, 0, 1)
        )  # fmt: skip

    async def neighbour(self) -> Neighbour:
        port = (await self.phase("ready")).port
        identity = self.member.identity
        return Neighbour(identity.device_id, identity.spki, ("127.0.0.1",), port)

    def link(self, following: PC, neighbour: Neighbour, epoch: int) -> LinkStage:
        return LinkStage("a", "c", epoch, following.start, MODEL, neighbour, neighbour, 256, 8)

    def ring_connections(self) -> int:
        """TCP connections of its runner."""
        found = psutil.Process(self.runner.pid).net_connections("tcp")
        return sum(c.status == psutil.CONN_ESTABLISHED for c in found)


@pytest.fixture
def fleet(tmp_path: Path) -> TestFleet:
    return TestFleet(tmp_path / "fleet")


@pytest.fixture
async def pcs(tmp_path: Path, fleet: TestFleet) -> AsyncIterator[tuple[PC, PC]]:
    made = PC(tmp_path, fleet.enrol("anna"), 0, 3), PC(tmp_path, fleet.enrol("ben"), 3, 6)
    for index, pc in enumerate(made):
        await pc.assign(index, 2)
    yield made
    for pc in made:
        await pc.host.release_all()


async def form(pcs: tuple[PC, PC], epoch: int) -> None:
    first, second = pcs
    where = [await pc.neighbour() for pc in pcs]
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(
            first.host.link(first.link(second, where[1], epoch)),
            second.host.link(second.link(first, where[0], epoch)),
        )
    for pc in pcs:
        await pc.phase("linked", epoch)


async def answer(pc: PC, prompt: str, tokens: int) -> tuple[list[int], pipe.Finished]:
    ids: list[int] = []
    request = pipe.Generate("r", SamplingParams(max_tokens=tokens), prompt=prompt)
    async with asyncio.timeout(DEADLINE), contextlib.aclosing(pc.runner.generate(request)) as said:
        async for event in said:
            if isinstance(event, pipe.Delta):
                ids += event.token_ids
            elif isinstance(event, pipe.Finished):
                return ids, event
    raise AssertionError("no end")


async def test_two_pcs_answer_together(pcs: tuple[PC, PC]) -> None:
    await form(pcs, 1)
    ids, finished = await answer(pcs[0], "hello", 9)
    assert ids == reference(list(b"hello"), 9)
    assert finished.code == ""


async def test_a_ring_with_somebody_who_is_shut_out_is_left_at_once(pcs: tuple[PC, PC]) -> None:
    first, second = pcs
    await form(pcs, 1)
    assert first.ring_connections() == 2
    first.strangers = {second.member.identity.spki}
    await first.host.leave_strangers()
    assert first.host.views()[0].phase == "ready", "its shard stays loaded"
    # The other end sees it and says so, whatever it is.
    fault = await second.until(lambda m: isinstance(m, FaultReport))
    assert isinstance(fault, FaultReport)
    assert fault.device == first.member.identity.device_id
    assert first.ring_connections() == 0
    # A ring with it is not formed again until it is let in again.
    await first.host.link(first.link(second, await second.neighbour(), 2))
    assert (await first.phase("failed")).code == "not_a_member"


async def test_who_is_still_trusted_is_not_disturbed(pcs: tuple[PC, PC]) -> None:
    await form(pcs, 1)
    await pcs[0].host.leave_strangers()
    assert pcs[0].ring_connections() == 2
    ids, _ = await answer(pcs[0], "hello", 9)
    assert ids == reference(list(b"hello"), 9)


async def test_shut_out_while_the_ring_is_being_formed(pcs: tuple[PC, PC]) -> None:
    first, second = pcs
    waiting = asyncio.create_task(first.host.link(first.link(second, await second.neighbour(), 1)))
    await asyncio.sleep(0)
    first.strangers = {second.member.identity.spki}
    await first.host.leave_strangers()
    async with asyncio.timeout(5):
        await waiting
    assert not [m for m in first.said if isinstance(m, StageStatus) and m.phase == "failed"], (
        "it did nothing wrong: the hub must not leave it out of the next plan"
    )
    first.strangers = set()
    await form(pcs, 2)


async def test_an_attempt_that_was_given_up_does_not_end_the_next_one(
    pcs: tuple[PC, PC], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleetapp.agent.stages.LINK_DEADLINE", 4.0)
    first, second = pcs
    # Epoch 1 is never linked by the other side; the hub gives it up and begins epoch 2.
    given_up = asyncio.create_task(first.host.link(first.link(second, await second.neighbour(), 1)))
    await asyncio.sleep(0)
    await form(pcs, 2)
    async with asyncio.timeout(10):
        await given_up
    assert first.host.views()[0].phase == "linked"


async def test_a_new_certificate_reaches_every_runner(pcs: tuple[PC, PC], fleet: TestFleet) -> None:
    second = pcs[1]
    port = (await second.phase("ready")).port
    fresh = second.member.store.save_leaf(fleet.authority.issue(second.member.identity.csr()))
    assert await shown_by(second.member, port) == second.member.enrolment.leaf
    await second.host.renew()
    await second.host.counters()  # answered in order: the message has been heard
    assert await shown_by(second.member, port) == fresh


async def test_the_owner_may_shorten_the_context(pcs: tuple[PC, PC]) -> None:
    pc = pcs[0]
    pc.setup = replace(pc.setup, max_context=96)
    await pc.assign(0, 2)
    assert (await pc.phase("ready")).max_context == 96


async def test_a_guest_leaves_its_ring_and_keeps_its_shard(pcs: tuple[PC, PC]) -> None:
    first, second = pcs
    await form(pcs, 1)
    await second.host.leave_rings(pipe.Unlink("Paused while somebody uses this PC.", hold=True))
    await second.host.counters()  # answered in order: the runner has heard it
    assert second.ring_connections() == 0
    assert second.host.phases() == {"a": "ready"}
    # The neighbour sees it at once and tells the hub.
    fault = await first.until(lambda m: isinstance(m, FaultReport))
    assert isinstance(fault, FaultReport)
    # The user has gone again: the same shards form a ring without being loaded anew.
    await form(pcs, 2)
    ids, _ = await answer(first, "hello", 9)
    assert ids == reference(list(b"hello"), 9)


async def test_linked_stages_are_measured_while_idle_and_answer_as_before(
    pcs: tuple[PC, PC], tmp_path: Path
) -> None:
    told: list[ProfileReport] = []

    async def send(report: ProfileReport) -> None:
        told.append(report)

    first, second = pcs
    measuring = Measuring(
        ProfileFile(tmp_path / "profiles.json"), first.host.linked, lambda: (), send, lambda: True
    )
    await measuring.look()
    assert first.host.linked() == ()
    assert [r.profiles for r in told] == [()], "nothing is in a ring yet"
    await form(pcs, 1)
    async with asyncio.timeout(DEADLINE):
        await measuring.look()
    (profile,) = told[1].profiles
    assert (profile.model, profile.layers, profile.precision) == (MODEL, LayerRange(0, 3), "exact")
    assert [size for size, _ in profile.decode] == [1, 2, 4, 8, 16]
    (hop,) = told[2].hops
    assert hop.peer == second.member.identity.device_id
    assert 0 < hop.rtt < 5
    ids, _ = await answer(first, "hello", 9)
    assert ids == reference(list(b"hello"), 9)
