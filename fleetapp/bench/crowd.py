"""Many members in one process, for ``bench control``: real certificates, the real control link.

Only what lies behind the link is made up: no discovery, no runners, hardware out of a hat. They
come and go as PCs in an office do: with a goodbye, without one, frozen for a while, and changing
their minds about contributing. All members of the process share one trust list, or 500 of them
would check every membership list 500 times, which 500 PCs do on 500 processors.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from fleetapp import __version__
from fleetapp.agent.hublink import HubLink
from fleetapp.agent.joining import Joined, join
from fleetapp.errors import FleetError
from fleetapp.fleet import certificates, joincode
from fleetapp.fleet.control import (
    FromHub,
    Heartbeat,
    MemberHello,
    MembershipDelta,
    MembershipUpdate,
    Welcome,
)
from fleetapp.fleet.enrolment import Credentials
from fleetapp.fleet.identity import Identity
from fleetapp.fleet.trust import TrustList
from fleetapp.platform import current
from fleetapp.platform.paths import Paths
from fleetapp.types import PROTOCOL_VERSION, Hardware

JOIN_DEADLINE = 120.0
JOINING_AT_ONCE = 8
FROZEN_SECONDS = 9.0
"""Longer than a hub waits for a silent member."""
AWAY_SECONDS = 3.0
"""A member that left is back after so long, at most."""

Happening = Literal["goodbye", "cut", "freeze", "consent"]
HAPPENINGS: tuple[Happening, ...] = ("goodbye", "cut", "consent", "consent", "freeze")
"""What happens to a member; what stands twice happens twice as often."""


class Job(msgspec.Struct, frozen=True):
    """The members of one process.

    Attributes:
        home: folder for their keys.
        code: a join code with enough uses.
        host, port: of the coordinator's control port.
        first, count: their numbers; names are made of these.
    """

    home: str
    code: str
    host: str
    port: int
    first: int
    count: int


class Ask(msgspec.Struct, frozen=True):
    """What to do next; ``number`` is seconds, or which member, as the word needs it.

    ``join``: all join and stay connected. ``drop``: every connection breaks off and is made anew.
    ``flap``: from now on something happens to each member every ``number`` seconds on average, but
    not to the first ``STEADY``. ``flip``: member ``number`` changes its mind. ``tell``: nothing.
    """

    do: Literal["join", "drop", "flap", "flip", "tell"]
    number: float = 0.0


class Said(msgspec.Struct, frozen=True):
    """The state of the crowd. ``at`` is monotonic seconds, the same clock in every process."""

    at: float
    connected: int
    happened: dict[str, int]
    device: str = ""
    contribute: bool = False


STEADY = 4
"""Members of each process to which nothing happens but what is asked."""


@dataclass(eq=False)
class _Node:
    """One simulated PC."""

    crowd: _Crowd
    identity: Identity
    name: str
    joined: Joined
    leaf: Path
    contribute: bool = False
    link: HubLink | None = None
    task: asyncio.Task[None] | None = None
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    connected: asyncio.Event = field(default_factory=asyncio.Event)

    def come(self) -> None:
        self.awake.set()
        self.link = HubLink(
            credentials=Credentials(
                self.identity.device_id,
                self.joined.info.fleet_id,
                self.identity.key_path,
                self.leaf,
                self.joined.authority,
            ),
            trust=self.crowd.trust,
            addresses=self._addresses,
            hello=self._hello,
            heartbeat=self._heartbeat,
            on_message=self.crowd.heard,
            on_change=self._changed,
        )
        self.task = asyncio.create_task(self.link.run())

    async def go(self, goodbye: bool) -> None:
        """Leave; without a goodbye as a PC does whose cable is pulled or process killed."""
        link, task = self.link, self.task
        assert link is not None
        assert task is not None
        if goodbye:
            await link.goodbye("restarting")
        else:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.connected.clear()

    async def _addresses(self) -> list[tuple[str, int]]:
        return [(self.crowd.job.host, self.crowd.job.port)]

    async def _changed(self, connected: bool, _reason: str) -> None:
        if connected:
            self.connected.set()
        else:
            self.connected.clear()

    def _hello(self) -> MemberHello:
        return MemberHello(
            protocol=PROTOCOL_VERSION,
            app=__version__,
            device_id=self.identity.device_id,
            name=self.name,
            hardware=Hardware(
                cores=8,
                memory_total=16 << 30,
                memory_free=8 << 30,
                disk_free=100 << 30,
                cpu="simulated",
                runtime="none",
            ),
            contribute=self.contribute,
            hosts=("127.0.0.1",),
            holds=self.crowd.trust.fingerprint,
        )

    async def _heartbeat(self, seq: int) -> Heartbeat:
        await self.awake.wait()
        free = self.crowd.dice.randrange(1 << 30, 8 << 30)
        return Heartbeat(seq, free, 100 << 30, self.contribute)


class _Crowd:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.dice = random.Random(job.first)  # noqa: S311 - who flaps when, no secret
        self.trust: TrustList
        self.happened: dict[str, int] = dict.fromkeys(HAPPENINGS, 0)
        self._nodes: list[_Node] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._gate = asyncio.Semaphore(JOINING_AT_ONCE)

    async def obey(self, ask: Ask) -> Said:
        device, contribute = "", False
        if ask.do == "join":
            await asyncio.gather(*(self._join(self.job.first + i) for i in range(self.job.count)))
            await self._all_connected()
        elif ask.do == "drop":
            await asyncio.gather(*(node.go(goodbye=False) for node in self._nodes))
            for node in self._nodes:
                node.come()
            await self._all_connected()
        elif ask.do == "flap":
            for node in self._nodes[STEADY:]:
                self._tasks.append(asyncio.create_task(self._flap(node, ask.number)))
        elif ask.do == "flip":
            node = self._nodes[int(ask.number)]
            await node.connected.wait()
            node.contribute = contribute = not node.contribute
            device = node.identity.device_id
            assert node.link is not None
            node.link.beat()
        at = time.monotonic()
        connected = sum(node.connected.is_set() for node in self._nodes)
        return Said(at, connected, self.happened, device, contribute)

    async def _all_connected(self) -> None:
        async with asyncio.timeout(JOIN_DEADLINE):
            await asyncio.gather(*(node.connected.wait() for node in self._nodes))

    async def _join(self, number: int) -> None:
        home = Path(self.job.home, f"member-{number}")
        async with self._gate:
            identity = Identity.load_or_create(Paths(home), current())
            joined = await join(
                identity,
                joincode.decode(self.job.code),
                [(self.job.host, self.job.port)],
                f"PC-{number}",
                lambda _: None,
                JOIN_DEADLINE,
            )
        if not hasattr(self, "trust"):
            authority = certificates.load_pem(joined.authority)
            self.trust = TrustList(certificates.public_key_of(authority))
        leaf = home / "leaf.crt"
        leaf.write_bytes(joined.leaf)
        self.trust.update(joined.membership)
        node = _Node(self, identity, f"PC-{number}", joined, leaf)
        self._nodes.append(node)
        node.come()

    async def heard(self, message: FromHub) -> None:
        if isinstance(message, Welcome | MembershipUpdate):
            if message.membership is not None:
                self.trust.update(message.membership)
        elif isinstance(message, MembershipDelta):
            membership = self.trust.membership
            assert membership is not None
            if message.base == membership.epoch:  # or another member of this process was quicker
                self.trust.update(self.trust.advanced(message))

    async def _flap(self, node: _Node, every: float) -> None:
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / every))
            happening = self.dice.choice(HAPPENINGS)
            self.happened[happening] += 1
            if happening == "consent":
                node.contribute = not node.contribute
                assert node.link is not None
                node.link.beat()
            elif happening == "freeze":
                node.awake.clear()
                await asyncio.sleep(FROZEN_SECONDS)
                node.awake.set()
            else:
                await node.go(goodbye=happening == "goodbye")
                await asyncio.sleep(self.dice.random() * AWAY_SECONDS)
                node.come()


async def _main() -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    crowd = _Crowd(msgspec.json.decode(await lines.get(), type=Job))
    said = Said(time.monotonic(), 0, {})
    while True:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()
        line = await lines.get()
        if not line:
            return
        said = await crowd.obey(msgspec.json.decode(line, type=Ask))


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except FleetError as exc:
        sys.exit(str(exc))
