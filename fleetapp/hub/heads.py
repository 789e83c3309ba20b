"""Heads of chains on other PCs, as if they were here.

What goes between an agent and its runner over a pipe goes between hub and member over the control
connection. When that ends, every answer asked for over it ends with a typed error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from fleetapp.engine import pipe
from fleetapp.engine.exchange import Exchange, RequestEvent
from fleetapp.engine.pipe_io import pack, unpack_from_runner
from fleetapp.errors import NotAMember, RunnerFailed
from fleetapp.fleet.control import FromHead, FromHub, ToHead
from fleetapp.hub.stage import Stage
from fleetapp.types import DeviceId


class RemoteHead:
    """One head runner on a member's PC."""

    def __init__(self, stage: Stage, send: Callable[[DeviceId, FromHub], Awaitable[None]]) -> None:
        self.session = stage.candidate.session
        self.device_id = stage.candidate.device_id
        self._assignment = stage.assignment
        self._name = stage.candidate.name
        self._send_to = send
        self._exchange = Exchange(self._send, f"the head on {self._name}")

    def generate(self, request: pipe.Generate) -> AsyncIterator[RequestEvent]:
        """Run one request; leaving the iterator early cancels it."""
        return self._exchange.generate(request)

    async def stats(self, deadline: float = 5.0) -> pipe.RunnerStats:
        """Counters; raises RunnerFailed."""
        return await self._exchange.stats(deadline)

    async def trace(self, deadline: float = 5.0) -> pipe.Trace:
        """The most recent steps; raises RunnerFailed."""
        return await self._exchange.trace(deadline)

    def hear(self, message: FromHead) -> None:
        """What the member passes on."""
        for packed in message.messages:
            self._exchange.hear(unpack_from_runner(packed))

    def lost(self) -> None:
        """The member is not connected any more, or has let the shard go."""
        self._exchange.fail(RunnerFailed(f"{self._name}, which had the head, left."))

    async def _send(self, message: pipe.ToRunner) -> None:
        try:
            await self._send_to(self.device_id, ToHead(self._assignment, pack(message)))
        except (NotAMember, OSError) as exc:
            raise RunnerFailed(f"{self._name}, which had the head, left.") from exc


class RemoteHeads:
    """All of them, by assignment.

    Args:
        send: to a member.
    """

    def __init__(self, send: Callable[[DeviceId, FromHub], Awaitable[None]]) -> None:
        self._send = send
        self._heads: dict[str, RemoteHead] = {}

    def get(self, stage: Stage) -> RemoteHead:
        """The head that this stage is."""
        head = self._heads.get(stage.assignment)
        if head is None or head.session != stage.candidate.session:
            if head is not None:
                head.lost()
            head = self._heads[stage.assignment] = RemoteHead(stage, self._send)
        return head

    def hear(self, device_id: DeviceId, message: FromHead) -> None:
        """A member passes on what a head said.

        Raises:
            Malformed: it is no message of a runner.
        """
        head = self._heads.get(message.assignment)
        if head is not None and head.device_id == device_id:
            head.hear(message)

    def device_lost(self, device_id: DeviceId) -> None:
        """Its connection ended."""
        self._drop([a for a, h in self._heads.items() if h.device_id == device_id])

    def released(self, assignment: str) -> None:
        """The member was told to let it go."""
        self._drop([assignment])

    def _drop(self, assignments: list[str]) -> None:
        for assignment in assignments:
            head = self._heads.pop(assignment, None)
            if head is not None:
                head.lost()
