"""A real hub on disk, without HTTP; and members whose connections are lists."""

from __future__ import annotations

import asyncio
import datetime as dt
from pathlib import Path

from fleetapp.fleet.codebook import CodeBook
from fleetapp.fleet.control import FromHub, JoinReply, JoinRequest, MemberHello, Refuse
from fleetapp.fleet.enrolment import Enrolment
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.joincode import decode
from fleetapp.fleet.membership import Member, set_roles, sign_membership
from fleetapp.hub.audit import AuditLog
from fleetapp.hub.clones import CloneWatch
from fleetapp.hub.hub import Hub
from fleetapp.hub.keys import KeyBook
from fleetapp.hub.registry import Session
from fleetapp.hub.state import HubState, StateFile
from fleetapp.models.library import Library
from fleetapp.platform.paths import Paths
from fleetapp.types import PROTOCOL_VERSION, Hardware
from tests.support.fleet import TestFleet, TestMember


class Clock:
    """Wall clock and monotonic clock of a code book, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class TestHub:
    """A fleet whose coordinator is ``me``. ``restart`` forgets everything but the disk."""

    __test__ = False

    def __init__(self, root: Path, name: str = "office") -> None:
        self.fleet = TestFleet(root, name)
        self.platform = self.fleet.platform
        self.clock = Clock()
        self.folder = root / "coordinator" / "hub"
        self.me: TestMember = self.fleet.enrol("hub")
        self._root = root
        self.fleet.membership = set_roles(
            self.fleet.membership,
            self.me.identity.device_id,
            ("coordinator", "admin", "member"),
        )
        self.me.store.save_membership(sign_membership(self.fleet.membership, self.fleet.authority))
        StateFile(self.folder / "state.json", self.platform).save(
            HubState(fleet_id=self.fleet.authority.fleet_id, name=name, created=1.0)
        )
        self.restart()

    def restart(self) -> None:
        enrolment = self.me.store.load()
        assert enrolment is not None
        self.enrolment: Enrolment = enrolment
        self.trust = enrolment.trust()
        self.state = StateFile(self.folder / "state.json", self.platform)
        self.state.load()
        self.codes = CodeBook(
            self.folder / "codes.json",
            self.fleet.authority.spki,
            self.platform,
            clock=self.clock,
            monotonic=self.clock,
        )
        audit = AuditLog(self.folder / "audit.jsonl")
        self.hub = Hub(
            identity=self.me.identity,
            authority=self.fleet.authority,
            trust=self.trust,
            state=self.state,
            codes=self.codes,
            keys=KeyBook(self.folder / "keys.json", self.platform),
            audit=audit,
            clones=lambda registry: CloneWatch(
                self.folder / "seen.json", self.platform, registry, audit
            ),
            library=Library(self._root / "library", self.me.identity),
            head=lambda _: None,
            store_membership=self.me.store.save_membership,
        )

    def enrol(self, name: str, *, issued: dt.datetime | None = None) -> TestMember:
        """A member from before the hub started; ``issued`` is when it got its certificate."""
        member = self.fleet.enrol(name, issued=issued)
        signed = sign_membership(self.fleet.membership, self.fleet.authority)
        self.me.store.save_membership(signed)
        self.trust.update(signed)
        return member

    @property
    def members(self) -> dict[str, Member]:
        assert self.trust.membership is not None
        return dict(self.trust.membership.members)

    def newcomer(self, name: str) -> Identity:
        return Identity.load_or_create(Paths(self._root / name), self.platform)

    def ask(
        self, identity: Identity, code: str, name: str = "PC", source: str = "192.0.2.1"
    ) -> JoinReply:
        """As a PC asks that has been given ``code``."""
        request = JoinRequest(
            protocol=PROTOCOL_VERSION,
            secret=decode(code).secret.hex(),
            csr=identity.csr().decode(),
            name=name,
        )
        return self.hub.gate.request(request, source)


class Line:
    """The hub's end of a member's control connection."""

    def __init__(self, home: TestHub, member: TestMember, *hosts: str, remote: str = "") -> None:
        self.said: list[FromHub] = []
        self.closed = asyncio.Event()
        self.spoken = asyncio.Event()
        self.blocked = False
        identity = member.identity
        self.session: Session = home.hub.attach(
            identity.spki,
            hello(identity, *(hosts or ("192.0.2.7",))),
            remote or (hosts or ("192.0.2.7",))[0],
            send=self._send,
            close=self._close,
        )

    async def _send(self, message: FromHub) -> None:
        if self.blocked:
            await asyncio.Event().wait()
        self.said.append(message)
        self.spoken.set()

    async def _close(self) -> None:
        self.closed.set()

    async def until_closed(self, deadline: float = 5.0) -> None:
        await asyncio.wait_for(self.closed.wait(), deadline)

    @property
    def refusals(self) -> list[Refuse]:
        return [m for m in self.said if isinstance(m, Refuse)]


def hello(
    identity: Identity, *hosts: str, protocol: int = PROTOCOL_VERSION, contribute: bool = True
) -> MemberHello:
    """What a member says first."""
    return MemberHello(
        protocol=protocol,
        app="0.0.1",
        device_id=identity.device_id,
        name="",
        hardware=Hardware(cores=2, memory_total=8 << 30, memory_free=4 << 30, disk_free=9 << 30),
        contribute=contribute,
        hosts=hosts or ("127.0.0.1",),
    )
