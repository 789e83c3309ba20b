"""A certificate is renewed at half-life, over the wire, by proving the key and nothing else."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509

from fleetapp.agent.joining import Address, ask_for_leaf, proof_of_key
from fleetapp.agent.renewal import LOOK_EVERY, RETRY_EXPIRED, RETRY_MIN, RETRY_VALID, Renewal
from fleetapp.api.serve import HttpServers
from fleetapp.errors import FleetError, NoHub, NotAMember, WrongFleet
from fleetapp.fleet.membership import revoke
from tests.support.control_server import ControlServer, Linked
from tests.support.fleet import TestFleet, TestMember, shown_by

DAY = dt.timedelta(days=1)
ISSUED = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
HALF = (ISSUED + 15 * DAY).timestamp()


class Office:
    """A PC with a certificate of 1 January, a clock, and a coordinator that can be away."""

    def __init__(self, root: Path) -> None:
        self.fleet = TestFleet(root)
        self.member = self.fleet.enrol("anna", issued=ISSUED)
        self.now = ISSUED.timestamp()
        self.hub_clock: Callable[[], float] = lambda: self.now
        self.refusal: FleetError | OSError | None = None
        self.asked = 0
        self.shown = 0
        self.changes = 0
        self.pauses: list[float] = []
        self.renewal = Renewal(
            self.member.store,
            self.member.enrolment.leaf,
            self._ask,
            self._renewed,
            self._changed,
            now=lambda: self.now,
            sleep=self._sleep,
        )

    async def _ask(self) -> bytes:
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        moment = dt.datetime.fromtimestamp(self.hub_clock(), dt.UTC)
        return self.fleet.authority.issue(self.member.identity.csr(), now=moment)

    async def _renewed(self) -> None:
        assert self.on_disk == self.renewal.leaf, "it is on disk before anybody reads it there"
        self.shown += 1

    def _changed(self) -> None:
        self.changes += 1

    async def _sleep(self, seconds: float) -> None:
        """Time passes as fast as it can, until the test has seen enough."""
        self.pauses.append(seconds)
        self.now += seconds
        if self.now > self.end:
            raise asyncio.CancelledError

    async def live(self, days: float) -> None:
        """Run so many days."""
        self.end = self.now + days * 86400
        with pytest.raises(asyncio.CancelledError):
            await self.renewal.run()

    @property
    def on_disk(self) -> x509.Certificate:
        enrolment = self.member.store.load()
        assert enrolment is not None
        return enrolment.leaf


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


async def test_a_year_of_certificates(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetapp.agent.renewal.LOOK_EVERY", 3600.0)
    await office.live(365)
    assert office.asked == office.shown == 365 // 15
    assert office.renewal.trouble == ""
    assert office.changes == 0


async def test_nobody_is_asked_before_half_life(office: Office) -> None:
    office.now = HALF - 3600 - 1  # certificates begin an hour early
    await office.renewal.look()
    assert office.asked == 0
    office.now = HALF + 1
    await office.renewal.look()
    assert (office.asked, office.shown) == (1, 1)
    assert office.on_disk == office.renewal.leaf != office.member.enrolment.leaf
    await office.renewal.look()
    assert office.asked == 1


async def test_the_clock_is_looked_at_again_soon_as_it_may_jump(office: Office) -> None:
    await office.live(0.01)
    assert max(office.pauses) <= LOOK_EVERY


async def test_a_coordinator_that_is_away_is_asked_again_ever_more_rarely(office: Office) -> None:
    office.now = HALF + 1
    office.refusal = NoHub("No coordinator was found.")
    await office.live(0.5)
    assert office.pauses[0] <= RETRY_MIN * 1.3
    assert max(office.pauses) <= RETRY_VALID * 1.3
    assert office.pauses[-1] >= RETRY_VALID * 0.7
    assert office.asked < 30
    assert "could not be renewed: No coordinator was found." in office.renewal.trouble
    assert "valid until 2026-01-31" in office.renewal.trouble
    assert office.changes == 1, "it is said once, not with every attempt"
    office.refusal = None
    await office.renewal.look()
    assert office.renewal.trouble == ""
    assert office.changes == 2
    assert office.pauses


async def test_one_that_has_expired_is_asked_for_often(office: Office) -> None:
    office.now = (ISSUED + 40 * DAY).timestamp()
    office.refusal = NoHub("No coordinator was found.")
    await office.live(0.05)
    assert max(office.pauses) <= RETRY_EXPIRED * 1.3
    assert "has expired on 2026-01-31" in office.renewal.trouble
    office.refusal = None
    await office.renewal.look()
    assert office.shown == 1
    assert not office.renewal.due


@pytest.mark.parametrize("days", [-400, 400])
async def test_clocks_that_differ_are_said_and_do_no_harm(office: Office, days: int) -> None:
    office.now = HALF + 1
    office.hub_clock = lambda: office.now + days * 86400
    await office.live(0.5)
    assert "clock" in office.renewal.trouble
    assert office.asked < 30, "it is not asked for without end"
    assert office.on_disk == office.member.enrolment.leaf, "the one that works is kept"
    office.hub_clock = lambda: office.now
    await office.renewal.look()
    assert office.renewal.trouble == ""


async def test_a_certificate_of_tomorrow_is_exchanged(office: Office) -> None:
    office.now = (ISSUED - 3 * DAY).timestamp()
    assert office.renewal.due
    await office.renewal.look()
    assert office.shown == 1
    assert not office.renewal.due


async def test_what_cannot_be_kept_or_used_is_trouble_and_tried_again(office: Office) -> None:
    office.now = HALF + 1
    other = TestFleet(office.fleet.root / "other")
    issue, office.fleet.authority = office.fleet.authority, other.authority
    await office.renewal.look()
    assert "did not sign" in office.renewal.trouble
    office.fleet.authority = issue
    office.refusal = OSError("no space")
    await office.renewal.look()
    assert "no space" in office.renewal.trouble
    assert office.on_disk == office.member.enrolment.leaf
    office.refusal = None
    await office.renewal.look()
    assert office.renewal.trouble == ""


# ------------------------------------------------------------------ over the wire


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(tmp_path / "ours") as running:
        yield running


def enrol(server: ControlServer, name: str, age: int) -> TestMember:
    """A member whose certificate is so many days old."""
    return server.home.enrol(name, issued=dt.datetime.now(dt.UTC) - age * DAY)


def asking(server: ControlServer, member: TestMember, *addresses: Address) -> Awaitable[bytes]:
    return ask_for_leaf(
        proof_of_key(member.identity, "anna"),
        member.enrolment.credentials.authority_pem,
        member.enrolment.info.fleet_id,
        [server.home.me.identity.device_id],
        addresses or (("127.0.0.1", server.port),),
    )


@pytest.mark.parametrize("age", [20, 90])
async def test_a_new_one_for_an_old_or_an_expired_one(server: ControlServer, age: int) -> None:
    anna = enrol(server, "anna", age)
    leaf = anna.store.save_leaf(await asking(server, anna))
    assert leaf.not_valid_after_utc > dt.datetime.now(dt.UTC) + 29 * DAY


async def test_an_expired_member_comes_back_without_a_restart(server: ControlServer) -> None:
    anna = enrol(server, "anna", 90)
    async with Linked(server, anna) as linked:
        await linked.until_told("may have refused")
        anna.store.save_leaf(await asking(server, anna))
        linked.link.renew()
        await linked.until_connected()


async def test_who_is_asked_and_is_not_the_coordinator_changes_nothing(
    server: ControlServer, tmp_path: Path, unused_tcp_port: int
) -> None:
    anna = enrol(server, "anna", 20)
    dead = ("127.0.0.1", unused_tcp_port)
    with pytest.raises(NoHub, match=str(unused_tcp_port)):
        await asking(server, anna, dead)
    async with ControlServer(tmp_path / "theirs") as other:
        there = ("127.0.0.1", other.port)
        with pytest.raises(WrongFleet):
            await asking(server, anna, there)
        assert await asking(server, anna, dead, there, ("127.0.0.1", server.port))


async def test_a_revoked_member_gets_none(server: ControlServer) -> None:
    anna = enrol(server, "anna", 90)
    server.home.hub.change_membership(lambda m: revoke(m, anna.identity.device_id))
    with pytest.raises(NotAMember, match="removed"):
        await asking(server, anna)


async def test_the_coordinators_own_new_one_is_shown_to_who_connects_next(
    tmp_path: Path, server: ControlServer
) -> None:
    home = server.home
    coordinator = home.me
    coordinator.store.save_leaf(
        home.fleet.authority.issue(
            coordinator.identity.csr(), now=dt.datetime.now(dt.UTC) - 20 * DAY
        )
    )
    bound = await HttpServers().open_control(
        home.hub, home.trust, coordinator.enrolment.credentials, "127.0.0.1", 0
    )
    try:
        before = await shown_by(coordinator, bound.port)
        fresh = coordinator.store.save_leaf(
            home.hub.gate.request(proof_of_key(coordinator.identity, "hub"), "").leaf.encode()
        )
        assert await shown_by(coordinator, bound.port) == before
        bound.renew()
        assert await shown_by(coordinator, bound.port) == fresh != before
    finally:
        await bound.close()
